//! A broker's side of SCRAM.
use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::messages::{ClientFinal, ClientFirst, ServerFinal, ServerFirst, auth_message};
use super::{Credential, Hash, xor};

/// A login whose first two messages were exchanged.
#[derive(Debug)]
pub struct ScramServer {
    hash: Hash,
    first: ClientFirst,
    server_first: ServerFirst,
    credential: Credential,
    /// Whether there is such a user; else the credential is made up, and no proof is right.
    known: bool,
}

impl ScramServer {
    /// Goes on with a client that has said who it is; `nonce` is the broker's own. `known`: the credential is a user's, and not made up.
    pub fn new(hash: Hash, first: ClientFirst, credential: Credential, known: bool, nonce: &str) -> Self {
        let server_first =
            ServerFirst::new(format!("{}{nonce}", first.nonce), &credential.salt, credential.iterations);
        Self { hash, first, server_first, credential, known }
    }

    /// What is sent to the client.
    pub fn challenge(&self) -> Vec<u8> {
        self.server_first.text.clone().into_bytes()
    }

    /// Who the client says it is.
    pub fn user(&self) -> &str {
        &self.first.user
    }

    /// Judges the client's last message: the broker's last one, or why the login fails.
    ///
    /// # Errors
    /// Why, for the log.
    pub fn finish(&self, message: &[u8]) -> Result<Vec<u8>, &'static str> {
        let last = ClientFinal::parse(message)?;
        // librdkafka before 2.6.1 puts its own nonce in front once more, which Kafka takes; the proof is of what was sent all the same.
        if !last.nonce.ends_with(&self.server_first.nonce) {
            return Err("the nonce is not of this login");
        }
        if last.gs2_header != self.first.gs2_header.as_bytes() {
            return Err("its header is not the one of its first message");
        }
        if last.proof.len() != self.hash.key_bytes() {
            return Err("its proof has a wrong length");
        }
        let signed = auth_message(&self.first.bare, &self.server_first.text, &last.without_proof);
        let client_signature = self.hash.hmac(&self.credential.stored_key, signed.as_bytes());
        let stored_key = self.hash.digest(&xor(&client_signature, &last.proof));
        let proved = verify_slices_are_equal(&stored_key, &self.credential.stored_key).is_ok();
        let signature = self.hash.hmac(&self.credential.server_key, signed.as_bytes());
        match (self.known, proved) {
            (true, true) => Ok(ServerFinal::Signature(signature).encode()),
            (true, false) => Err("the password is wrong"),
            (false, _) => Err("there is no such user, or it has no credential of this mechanism"),
        }
    }
}
