//! The one message of PLAIN (RFC 4616): `authorization id NUL user NUL password`, in UTF-8.
//!
//! Both names may differ by the RFC; Kafka's brokers demand that the first is empty or the same as the second, and so do ours.
use crate::secret::Secret;

/// What a client says.
#[derive(Debug)]
pub struct PlainMessage {
    /// As whom it wants to act; empty: as the user.
    pub authorization_id: String,
    /// Who it says it is.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// Why a message is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedPlain {
    /// Not UTF-8.
    #[error("Invalid SASL/PLAIN response: it is not UTF-8")]
    NotText,
    /// Not three parts; Kafka's sentence.
    #[error("Invalid SASL/PLAIN response: expected 3 tokens, got {0}")]
    Parts(usize),
    /// No user; Kafka's sentence.
    #[error("Authentication failed: username not specified")]
    NoUser,
    /// No password; Kafka's sentence.
    #[error("Authentication failed: password not specified")]
    NoPassword,
}

/// More parts are not counted.
const PARTS_COUNTED: usize = 4;

impl PlainMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// [`MalformedPlain`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedPlain> {
        let text = std::str::from_utf8(bytes).map_err(|_| MalformedPlain::NotText)?;
        let parts: Vec<&str> = text.splitn(PARTS_COUNTED, '\0').collect();
        let &[authorization_id, user, password] = parts.as_slice() else {
            return Err(MalformedPlain::Parts(parts.len()));
        };
        if user.is_empty() {
            return Err(MalformedPlain::NoUser);
        }
        if password.is_empty() {
            return Err(MalformedPlain::NoPassword);
        }
        let (authorization_id, user) = (authorization_id.to_owned(), user.to_owned());
        Ok(Self { authorization_id, user, password: Secret::new(password) })
    }

    /// Its bytes, for a user and a password without NUL.
    pub fn encode(&self) -> Vec<u8> {
        [&self.authorization_id, &self.user, self.password.reveal()].join("\0").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_of_other_than_three_parts_is_refused_with_kafkas_sentence() {
        for (bytes, parts) in [(&b"alice"[..], 1), (b"", 1), (b"\0alice", 2), (b"\0a\0b\0c\0d", 4)] {
            let error = PlainMessage::parse(bytes).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("Invalid SASL/PLAIN response: expected 3 tokens, got {parts}")
            );
        }
        assert_eq!(PlainMessage::parse(b"\0\0secret").unwrap_err(), MalformedPlain::NoUser);
        assert_eq!(PlainMessage::parse(b"\0alice\0").unwrap_err(), MalformedPlain::NoPassword);
        assert_eq!(PlainMessage::parse(b"\0al\xffice\0x").unwrap_err(), MalformedPlain::NotText);
    }

    #[test]
    fn a_message_that_is_shown_hides_the_password() {
        let message = PlainMessage::parse(b"\0alice\0swordfish").unwrap();
        assert!(!format!("{message:?}").contains("swordfish"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(user in "[^\0]{1,20}", password in "[^\0]{1,20}", acts_as in "[^\0]{0,20}") {
            let message = PlainMessage { authorization_id: acts_as, user, password: Secret::new(password) };
            let read = PlainMessage::parse(&message.encode()).unwrap();
            prop_assert_eq!(read.encode(), message.encode());
        }

        #[test]
        fn random_bytes_of_plain_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let parsed = PlainMessage::parse(&bytes);
            prop_assert!(parsed.is_err() || bytes.iter().filter(|byte| **byte == 0).count() == 2);
        }
    }
}
