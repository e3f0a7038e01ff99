//! A client's side of SCRAM.
use std::num::NonZeroU32;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::messages::{ClientFinal, ClientFirst, ServerFinal, ServerFirst, auth_message};
use super::{CLIENT_ITERATIONS_MAX, Hash, ITERATIONS_MIN, client_key, new_nonce, server_key, xor};
use crate::sasl::SaslError;
use crate::sasl::shown::said;
use crate::secret::Secret;

/// A login that goes on: what is known after each message.
#[derive(Debug)]
pub struct ScramClient {
    hash: Hash,
    password: Secret,
    first: ClientFirst,
    state: State,
}

#[derive(Debug)]
enum State {
    Begun,
    /// What the broker must sign; kept as the signature that is expected.
    Proved(Vec<u8>),
    Done,
}

impl ScramClient {
    /// Of `user`. No message is sent yet.
    ///
    /// # Errors
    /// [`SaslError::Unusable`], [`SaslError::Random`].
    pub fn new(hash: Hash, user: &str, password: Secret) -> Result<Self, SaslError> {
        let nonce = new_nonce().ok_or(SaslError::Random)?;
        Self::with_nonce(hash, user, password, &nonce)
    }

    pub(crate) fn with_nonce(
        hash: Hash,
        user: &str,
        password: Secret,
        nonce: &str,
    ) -> Result<Self, SaslError> {
        if user.is_empty() || user.contains('\0') {
            return Err(SaslError::Unusable(hash.mechanism(), "the user name is empty or has a NUL"));
        }
        Ok(Self { hash, password, first: ClientFirst::new(user, nonce), state: State::Begun })
    }

    /// The message that it begins with.
    pub fn first(&self) -> Vec<u8> {
        self.first.encode()
    }

    /// What is answered to the broker's `challenge`; nothing when it is done. Hashes the password as often as the broker asks.
    ///
    /// # Errors
    /// [`SaslError`].
    pub fn step(&mut self, challenge: &[u8]) -> Result<Vec<u8>, SaslError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Begun => self.prove(challenge),
            State::Proved(signature) => self.verify(challenge, &signature),
            State::Done => Err(SaslError::Over(self.hash.mechanism())),
        }
    }

    fn prove(&mut self, challenge: &[u8]) -> Result<Vec<u8>, SaslError> {
        let mechanism = self.hash.mechanism();
        let server_first =
            ServerFirst::parse(challenge).map_err(|why| SaslError::Malformed(mechanism, why))?;
        let longer = server_first.nonce.strip_prefix(&self.first.nonce).is_some_and(|more| !more.is_empty());
        if !longer {
            return Err(SaslError::Nonce(mechanism));
        }
        let bounds = ITERATIONS_MIN..=CLIENT_ITERATIONS_MAX;
        let count = u32::try_from(server_first.iterations).ok().filter(|count| bounds.contains(count));
        let count = count.and_then(NonZeroU32::new).ok_or(SaslError::Iterations {
            mechanism,
            iterations: server_first.iterations,
            min: ITERATIONS_MIN,
            max: CLIENT_ITERATIONS_MAX,
        })?;
        let salted = self.hash.salted(&self.password, &server_first.salt, count);
        let mut last = ClientFinal::new(&self.first.gs2_header, &server_first.nonce);
        let message = auth_message(&self.first.bare, &server_first.text, &last.without_proof);
        let client_key = client_key(self.hash, &salted);
        let client_signature = self.hash.hmac(&self.hash.digest(&client_key), message.as_bytes());
        last.proof = xor(&client_key, &client_signature);
        let signature = self.hash.hmac(&server_key(self.hash, &salted), message.as_bytes());
        self.state = State::Proved(signature);
        Ok(last.encode())
    }

    fn verify(&mut self, challenge: &[u8], expected: &[u8]) -> Result<Vec<u8>, SaslError> {
        let mechanism = self.hash.mechanism();
        match ServerFinal::parse(challenge).map_err(|why| SaslError::Malformed(mechanism, why))? {
            ServerFinal::Error(error) => Err(SaslError::Refused(mechanism, said(&error, &self.password))),
            ServerFinal::Signature(signature) => match verify_slices_are_equal(&signature, expected) {
                Ok(()) => Ok(Vec::new()),
                Err(_) => Err(SaslError::ServerSignature(mechanism)),
            },
        }
    }
}
