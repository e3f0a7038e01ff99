//! SCRAM (RFC 5802; RFC 7677 for SHA-256): both sides prove to each other that they know the password, and neither sends it.
//!
//! | file | what it owns |
//! |---|---|
//! | here | the hashes; what a broker stores of a password |
//! | [`messages`] | the four messages |
//! | [`client`], [`server`] | the two sides |
//!
//! ```text
//! salted password = PBKDF2(hash, password, salt, iterations)
//! client key      = HMAC(salted password, "Client Key")       stored key = H(client key)
//! server key      = HMAC(salted password, "Server Key")
//! proof           = client key XOR HMAC(stored key, messages)  signature  = HMAC(server key, messages)
//! ```
//! A broker stores salt, iterations, stored key and server key: with them nobody can log in, but can pretend to be the broker. No channel
//! binding. Passwords are used as they are, in UTF-8, without SASLprep, as all of Kafka's clients do it.
pub mod client;
pub mod messages;
pub mod server;

use std::fmt;
use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2, rand};
use zeroize::Zeroizing;

use super::mechanism::Mechanism;
use crate::secret::Secret;

/// Fewest iterations of a stored credential (Kafka's bound, of RFC 7677); with fewer a password is guessed too quickly.
pub const ITERATIONS_MIN: u32 = 4_096;
/// Most iterations of a stored credential (Kafka's bound).
pub const ITERATIONS_MAX: u32 = 16_384;
/// Most iterations that a client computes for a broker. More than Kafka stores today: brokers before KIP-554 had no bound, and their
/// users keep what they have. About a second of work.
pub const CLIENT_ITERATIONS_MAX: u32 = 1_000_000;
/// Longest salt.
pub const SALT_MAX_BYTES: usize = 1_024;
/// Bytes of a new salt.
const SALT_BYTES: usize = 24;
/// Random bytes of a nonce; written in base64, 32 characters.
const NONCE_BYTES: usize = 24;

/// The hash of a SCRAM mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hash {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

impl Hash {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// That of `mechanism`; `None` for one that is not SCRAM.
    pub fn of(mechanism: Mechanism) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.mechanism() == mechanism)
    }

    /// Its mechanism.
    pub fn mechanism(self) -> Mechanism {
        match self {
            Self::Sha256 => Mechanism::ScramSha256,
            Self::Sha512 => Mechanism::ScramSha512,
        }
    }

    /// Bytes of a digest, and of each key.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Sha256 => digest::SHA256_OUTPUT_LEN,
            Self::Sha512 => digest::SHA512_OUTPUT_LEN,
        }
    }

    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    pub(crate) fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), bytes).as_ref().to_vec()
    }

    /// The salted password; takes as long as `iterations` say.
    pub(crate) fn salted(self, password: &Secret, salt: &[u8], iterations: NonZeroU32) -> Zeroizing<Vec<u8>> {
        let algorithm = match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        };
        let mut salted = Zeroizing::new(vec![0; self.key_bytes()]);
        pbkdf2::derive(algorithm, iterations, salt, password.reveal().as_bytes(), &mut salted);
        salted
    }
}

/// Why something is no SCRAM credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Out of bounds.
    #[error("{0} iterations are not within [{ITERATIONS_MIN}, {ITERATIONS_MAX}]")]
    Iterations(i64),
    /// Out of bounds.
    #[error("a salt has 1 to {SALT_MAX_BYTES} bytes, not {0}")]
    Salt(usize),
    /// Not a digest of the mechanism.
    #[error("a key of {mechanism} has {expected} bytes, not {found}")]
    Key {
        /// Whose key.
        mechanism: Mechanism,
        /// Bytes it must have.
        expected: usize,
        /// Bytes it has.
        found: usize,
    },
    /// No random bytes.
    #[error("the system gives no random bytes")]
    Random,
}

/// What a broker stores of a user's password. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Makes equal passwords look different.
    pub salt: Vec<u8>,
    /// How often the password is hashed.
    pub iterations: u32,
    /// The hash of what the client proves to know.
    pub stored_key: Vec<u8>,
    /// What the broker proves to know.
    pub server_key: Vec<u8>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl Credential {
    /// As it was stored.
    ///
    /// # Errors
    /// [`CredentialError`]: out of Kafka's bounds, or keys of another mechanism.
    pub fn stored(
        hash: Hash,
        salt: Vec<u8>,
        iterations: i64,
        stored_key: Vec<u8>,
        server_key: Vec<u8>,
    ) -> Result<Self, CredentialError> {
        let (iterations, _) = bounded(&salt, iterations)?;
        for key in [&stored_key, &server_key] {
            check_key(hash, key)?;
        }
        Ok(Self { salt, iterations, stored_key, server_key })
    }

    /// Of a password that the client has salted (AlterUserScramCredentials).
    ///
    /// # Errors
    /// [`CredentialError`].
    pub fn from_salted(
        hash: Hash,
        salt: Vec<u8>,
        iterations: i64,
        salted_password: &[u8],
    ) -> Result<Self, CredentialError> {
        let (iterations, _) = bounded(&salt, iterations)?;
        check_key(hash, salted_password)?;
        let stored_key = hash.digest(&client_key(hash, salted_password));
        Ok(Self { salt, iterations, stored_key, server_key: server_key(hash, salted_password) })
    }
}

/// What a broker stores of `password`. Takes as long as `iterations` say.
///
/// # Errors
/// [`CredentialError`]: out of Kafka's bounds.
pub fn derive(
    hash: Hash,
    password: &Secret,
    salt: &[u8],
    iterations: i64,
) -> Result<Credential, CredentialError> {
    let (_, count) = bounded(salt, iterations)?;
    let salted = hash.salted(password, salt, count);
    Credential::from_salted(hash, salt.to_vec(), iterations, &salted)
}

/// A salt for a new password.
///
/// # Errors
/// [`CredentialError::Random`].
pub fn new_salt() -> Result<Vec<u8>, CredentialError> {
    let mut salt = vec![0; SALT_BYTES];
    rand::fill(&mut salt).map_err(|_| CredentialError::Random)?;
    Ok(salt)
}

fn bounded(salt: &[u8], iterations: i64) -> Result<(u32, NonZeroU32), CredentialError> {
    if !(1..=SALT_MAX_BYTES).contains(&salt.len()) {
        return Err(CredentialError::Salt(salt.len()));
    }
    let count =
        u32::try_from(iterations).ok().filter(|count| (ITERATIONS_MIN..=ITERATIONS_MAX).contains(count));
    let count = count.and_then(NonZeroU32::new).ok_or(CredentialError::Iterations(iterations))?;
    Ok((count.get(), count))
}

fn check_key(hash: Hash, key: &[u8]) -> Result<(), CredentialError> {
    let expected = hash.key_bytes();
    if key.len() != expected {
        return Err(CredentialError::Key { mechanism: hash.mechanism(), expected, found: key.len() });
    }
    Ok(())
}

pub(crate) fn client_key(hash: Hash, salted_password: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(hash.hmac(salted_password, b"Client Key"))
}

pub(crate) fn server_key(hash: Hash, salted_password: &[u8]) -> Vec<u8> {
    hash.hmac(salted_password, b"Server Key")
}

/// Both must be equally long; the shorter one's length counts.
pub(crate) fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// A text that nobody guesses and that is never the same: printable, without a comma.
pub(crate) fn new_nonce() -> Option<String> {
    use base64::Engine;
    let mut bytes = [0; NONCE_BYTES];
    rand::fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests;
