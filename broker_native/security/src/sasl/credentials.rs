//! What a broker knows of its users: their SCRAM credentials, and how it judges tokens.
//!
//! A name that no user has gets a credential that is made up: of a secret and the name, so that it is the same each time that somebody
//! asks, and alike those of the users (as many iterations and as long a salt as one of theirs has). It is made for known names, too: both
//! take equally long.
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::jwt::TokenValidator;
use super::mechanism::Mechanism;
use super::scram::{Credential, CredentialError, Hash, ITERATIONS_MIN};
use super::shown::shown;
use crate::secret::Secret;

/// Bytes of the secret that made-up credentials are made of.
pub const DECOY_KEY_BYTES: usize = 32;
/// A salt as Kafka's clients make it: this many digits to the base 36.
const DEFAULT_SHAPE: Shape = Shape { iterations: ITERATIONS_MIN, salt_bytes: 25, base36: true };

/// What a credential looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    iterations: u32,
    salt_bytes: usize,
    /// Its salt consists of digits and lower-case letters.
    base36: bool,
}

impl Shape {
    fn of(credential: &Credential) -> Self {
        let base36 = credential.salt.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        Self { iterations: credential.iterations, salt_bytes: credential.salt.len(), base36 }
    }
}

/// The credentials of one user.
#[derive(Debug, Default)]
struct User {
    sha256: Option<Credential>,
    sha512: Option<Credential>,
}

impl User {
    fn of(&self, hash: Hash) -> Option<&Credential> {
        match hash {
            Hash::Sha256 => self.sha256.as_ref(),
            Hash::Sha512 => self.sha512.as_ref(),
        }
    }

    /// What a password that was sent is compared with.
    fn preferred(&self) -> Option<(Hash, &Credential)> {
        [Hash::Sha512, Hash::Sha256].into_iter().find_map(|hash| self.of(hash).map(|found| (hash, found)))
    }
}

/// A user's credential as Python hands it down; bytes in base64.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    user: String,
    mechanism: String,
    salt: String,
    stored_key: String,
    server_key: String,
    iterations: i64,
}

/// A stored credential that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the SCRAM credential of {user} cannot be used: {why}")]
pub struct Unusable {
    user: String,
    why: String,
}

impl Stored {
    /// Its user, its hash and itself.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn read(self) -> Result<(String, Hash, Credential), Unusable> {
        let (user, read) = (shown(&self.user), self.credential());
        read.map_err(|why| Unusable { user, why })
    }

    fn credential(self) -> Result<(String, Hash, Credential), String> {
        let hash = self.mechanism.parse::<Mechanism>().ok().and_then(Hash::of);
        let hash = hash.ok_or_else(|| format!("its mechanism is {}", shown(&self.mechanism)))?;
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| "it is not base64".to_owned());
        let (salt, stored_key, server_key) =
            (bytes(&self.salt)?, bytes(&self.stored_key)?, bytes(&self.server_key)?);
        let credential = Credential::stored(hash, salt, self.iterations, stored_key, server_key);
        Ok((self.user, hash, credential.map_err(|error| error.to_string())?))
    }
}

/// What a broker knows: its users, and who judges tokens. Cheap to clone; never changed: a new one takes its place.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Who logs in with a password.
    pub users: Arc<Users>,
    /// Who judges tokens; `None`: no token is valid.
    pub tokens: Option<Arc<TokenValidator>>,
}

impl Credentials {
    /// Of `users` (name, hash, credential) and nobody who judges tokens.
    pub fn of_users(
        users: impl IntoIterator<Item = (String, Hash, Credential)>,
        decoy_key: DecoyKey,
    ) -> Self {
        Self { users: Arc::new(Users::new(users, decoy_key)), tokens: None }
    }
}

/// Who logs in with a password.
#[derive(Debug)]
pub struct Users {
    users: BTreeMap<String, User>,
    /// By hash: what the users' credentials look like.
    sha256: Vec<Shape>,
    sha512: Vec<Shape>,
    /// What passwords that were sent are compared with.
    plain: Vec<(Hash, Shape)>,
    decoy_key: DecoyKey,
}

/// The secret that made-up credentials are made of. All brokers of a cluster should have the same one, and keep it: else a name whose
/// salt differs from broker to broker is one that no user has.
#[derive(Clone)]
pub struct DecoyKey([u8; DECOY_KEY_BYTES]);

impl DecoyKey {
    /// As it was kept.
    pub fn new(bytes: [u8; DECOY_KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// A new one, from the system's generator: that of aws-lc measures the processor's jitter for 20 ms before its first byte, and each
    /// broker makes a key when it starts.
    ///
    /// # Errors
    /// [`CredentialError::Random`].
    pub fn random() -> Result<Self, CredentialError> {
        let mut bytes = [0; DECOY_KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| CredentialError::Random)?;
        Ok(Self(bytes))
    }
}

impl fmt::Debug for DecoyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Users {
    /// Of name, hash and credential.
    pub fn new(users: impl IntoIterator<Item = (String, Hash, Credential)>, decoy_key: DecoyKey) -> Self {
        let mut known: BTreeMap<String, User> = BTreeMap::new();
        for (name, hash, credential) in users {
            let user = known.entry(name).or_default();
            match hash {
                Hash::Sha256 => user.sha256 = Some(credential),
                Hash::Sha512 => user.sha512 = Some(credential),
            }
        }
        let shapes = |hash| known.values().filter_map(|user| user.of(hash)).map(Shape::of).collect();
        let preferred = known.values().filter_map(User::preferred);
        Self {
            sha256: shapes(Hash::Sha256),
            sha512: shapes(Hash::Sha512),
            plain: preferred.map(|(hash, found)| (hash, Shape::of(found))).collect(),
            users: known,
            decoy_key,
        }
    }

    /// The credential of `user`, and whether it is a user's; else it is made up.
    pub fn scram(&self, hash: Hash, user: &str) -> (Credential, bool) {
        let made_up = self.decoy(hash, user);
        let found = self.users.get(user).and_then(|user| user.of(hash)).cloned();
        let known = found.is_some();
        (found.unwrap_or(made_up), known)
    }

    /// Whether this is the password of `user`. Hashes it as often as its credential says, also for a name that no user has: milliseconds.
    pub fn is_password(&self, user: &str, password: &Secret) -> bool {
        let (made_up_hash, made_up) = self.plain_decoy(user);
        let found = self.users.get(user).and_then(User::preferred);
        let (hash, credential) = found.unwrap_or((made_up_hash, &made_up));
        let Some(iterations) = NonZeroU32::new(credential.iterations) else { return false };
        let salted = hash.salted(password, &credential.salt, iterations);
        let stored_key = hash.digest(&super::scram::client_key(hash, &salted));
        verify_slices_are_equal(&stored_key, &credential.stored_key).is_ok() && found.is_some()
    }

    fn decoy(&self, hash: Hash, user: &str) -> Credential {
        let shapes = match hash {
            Hash::Sha256 => &self.sha256,
            Hash::Sha512 => &self.sha512,
        };
        let seed = self.seed(hash.mechanism().name(), user);
        let shape = shapes.get(chosen(&seed, shapes.len())).copied().unwrap_or(DEFAULT_SHAPE);
        made_up(hash, shape, &seed)
    }

    fn plain_decoy(&self, user: &str) -> (Hash, Credential) {
        let seed = self.seed("PLAIN", user);
        let chosen = self.plain.get(chosen(&seed, self.plain.len()));
        let (hash, shape) = chosen.copied().unwrap_or((Hash::Sha512, DEFAULT_SHAPE));
        (hash, made_up(hash, shape, &seed))
    }

    fn seed(&self, mechanism: &str, user: &str) -> Vec<u8> {
        Hash::Sha512.hmac(&self.decoy_key.0, format!("{mechanism}\0{user}").as_bytes())
    }
}

/// Which of `count` things belongs to a seed.
fn chosen(seed: &[u8], count: usize) -> usize {
    let number = seed.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    usize::try_from(number % (count.max(1) as u64)).unwrap_or(0)
}

fn made_up(hash: Hash, shape: Shape, seed: &[u8]) -> Credential {
    let mut salt = Vec::with_capacity(shape.salt_bytes);
    let mut block = 0_u32;
    while salt.len() < shape.salt_bytes {
        let bytes = Hash::Sha512.hmac(seed, &block.to_be_bytes());
        salt.extend_from_slice(
            bytes.get(..bytes.len().min(shape.salt_bytes - salt.len())).unwrap_or_default(),
        );
        block += 1;
    }
    if shape.base36 {
        salt.iter_mut()
            .for_each(|byte| *byte = b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::from(*byte % 36)]);
    }
    let (stored_key, server_key) = (hash.hmac(seed, b"stored"), hash.hmac(seed, b"server"));
    Credential { salt, iterations: shape.iterations, stored_key, server_key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sasl::scram::derive;

    fn credentials() -> Users {
        let password = Secret::new("pencil");
        let user = |name: &str, hash, salt: &[u8], iterations| {
            (name.to_owned(), hash, derive(hash, &password, salt, iterations).unwrap())
        };
        let users = [
            user("alice", Hash::Sha256, b"0123456789abcdefghijklmnop", 4_096),
            user("alice", Hash::Sha512, &[0x81; 16], 8_192),
            user("bob", Hash::Sha256, b"zzzzzzzzzzzzzzzzzzzzzzzzzz", 4_096),
        ];
        Users::new(users, DecoyKey::new([7; DECOY_KEY_BYTES]))
    }

    #[test]
    fn a_made_up_credential_looks_like_a_users_and_is_the_same_each_time() {
        let (known, other) = (credentials(), credentials());
        for name in ["mallory", "trent", "x"] {
            let (made_up, is_known) = known.scram(Hash::Sha256, name);
            assert!(!is_known);
            assert_eq!(made_up, other.scram(Hash::Sha256, name).0);
            assert_eq!((made_up.iterations, made_up.salt.len()), (4_096, 26));
            assert!(made_up.salt.iter().all(u8::is_ascii_alphanumeric));
            let (longer, _) = known.scram(Hash::Sha512, name);
            assert_eq!((longer.iterations, longer.salt.len()), (8_192, 16));
            assert_ne!(longer.salt, known.scram(Hash::Sha512, "bob").0.salt);
        }
        let another = Users::new([], DecoyKey::new([8; DECOY_KEY_BYTES]));
        assert_ne!(another.scram(Hash::Sha256, "mallory").0, known.scram(Hash::Sha256, "mallory").0);
    }

    #[test]
    fn a_password_is_right_for_its_user_alone() {
        let credentials = credentials();
        let right = Secret::new("pencil");
        assert!(credentials.is_password("alice", &right));
        assert!(credentials.is_password("bob", &right));
        assert!(!credentials.is_password("mallory", &right));
        assert!(!credentials.is_password("", &right));
        for wrong in ["pencil ", "", "PENCIL"] {
            assert!(!credentials.is_password("alice", &Secret::new(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn a_stored_credential_is_read_or_refused_with_its_users_name() {
        let read = |changes: &[(&str, serde_json::Value)]| {
            let key = STANDARD.encode([1; 32]);
            let mut stored = serde_json::json!({
                "user": "al\nice", "mechanism": "SCRAM-SHA-256", "salt": "c2FsdA==", "stored_key": key,
                "server_key": key, "iterations": 4096,
            });
            for (name, value) in changes {
                stored[*name] = value.clone();
            }
            serde_json::from_value::<Stored>(stored).unwrap().read()
        };
        let (user, hash, credential) = read(&[]).unwrap();
        assert_eq!(
            (user.as_str(), hash, credential.salt.as_slice()),
            ("al\nice", Hash::Sha256, b"salt".as_slice())
        );
        for (name, value) in [
            ("mechanism", serde_json::json!("PLAIN")),
            ("mechanism", serde_json::json!("SCRAM-SHA-512")),
            ("salt", serde_json::json!("?")),
            ("iterations", serde_json::json!(1)),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains("al\\nice") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let shown = format!("{:?}", credentials());
        assert!(!shown.contains("stored_key") && !shown.contains("[7, 7"), "{shown}");
    }
}
