//! What can be wrong with TLS settings, their files and a handshake: one sentence each, which names the setting, and never a secret.
use std::fmt;
use std::path::{Path, PathBuf};

/// Where bytes came from: a setting, and the file that it names, if it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    option: &'static str,
    path: Option<PathBuf>,
}

impl Place {
    /// The text of the setting `option` itself.
    pub fn text(option: &'static str) -> Self {
        Self { option, path: None }
    }

    /// The file that `option` names.
    pub fn file(option: &'static str, path: impl AsRef<Path>) -> Self {
        Self { option, path: Some(path.as_ref().to_owned()) }
    }

    /// The name of the setting.
    pub fn option(&self) -> &'static str {
        self.option
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{} ({})", path.display(), self.option),
            None => write!(f, "The text of {}", self.option),
        }
    }
}

/// What is wrong with TLS settings, a file that they name, or a handshake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// Settings that exclude each other, or a value that there is not.
    #[error("{0}")]
    Settings(String),
    /// A store type that there is not.
    #[error("{option} is {given:?}: use PEM, JKS or PKCS12, or leave it out")]
    UnknownStoreType {
        /// The setting.
        option: &'static str,
        /// Its value.
        given: String,
    },
    /// A file that cannot be opened or read.
    #[error("{place} cannot be read: {reason}")]
    Unreadable {
        /// Where.
        place: Place,
        /// What the operating system says.
        reason: String,
    },
    /// More bytes than any store has.
    #[error("{place} has more than {limit} bytes: that is no store of keys or certificates")]
    TooLarge {
        /// Where.
        place: Place,
        /// The limit.
        limit: usize,
    },
    /// A password is needed and not given.
    #[error("{place} is encrypted: set {option}")]
    PasswordMissing {
        /// Where.
        place: Place,
        /// What to set.
        option: &'static str,
    },
    /// A password that does not open it.
    #[error(
        "{place} does not open with the password in {option}: the password is wrong, or the file was changed"
    )]
    PasswordWrong {
        /// Where.
        place: Place,
        /// The setting of the password.
        option: &'static str,
    },
    /// A store that opens, and a key in it that does not.
    #[error(
        "The private key in {place} does not open with the password in ssl.keystore.password: if it has one of its own, set ssl.key.password"
    )]
    KeyPassword {
        /// Where.
        place: Place,
    },
    /// Bytes that are not what they are said to be.
    #[error("{place} cannot be understood: {what}")]
    Damaged {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// A format that is not read.
    #[error("{place} {what}")]
    Unsupported {
        /// Where.
        place: Place,
        /// What it has, and what to do.
        what: String,
    },
    /// Rounds of hashing, entries or certificates beyond the limits.
    #[error("{place} asks for more work than any honest store does: {what}")]
    TooMuchWork {
        /// Where.
        place: Place,
        /// Which limit.
        what: &'static str,
    },
    /// No certificate where one is needed.
    #[error("{place} has no certificate")]
    NoCertificate {
        /// Where.
        place: Place,
    },
    /// No private key where one is needed.
    #[error(
        "{place} has no private key: a key store has the key and its certificates, a trust store has certificates only"
    )]
    NoPrivateKey {
        /// Where.
        place: Place,
    },
    /// A certificate that cannot be used.
    #[error("A certificate in {place} cannot be used: {what}")]
    Certificate {
        /// Where.
        place: Place,
        /// Why.
        what: String,
    },
    /// A private key that cannot be used.
    #[error("The private key in {place} cannot be used: {what}")]
    Key {
        /// Where.
        place: Place,
        /// Why.
        what: String,
    },
    /// A key of another certificate.
    #[error(
        "The private key in {place} does not belong to its first certificate: put the certificate of this key first"
    )]
    KeyMismatch {
        /// Where.
        place: Place,
    },
    /// A handshake that failed.
    #[error("TLS with {peer} failed: {why}")]
    Handshake {
        /// The other side.
        peer: String,
        /// What was wrong, and what to do.
        why: String,
    },
}

/// What is wrong with the bytes of a store; whoever knows where they came from makes a [`TlsError`] of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreError {
    Damaged(String),
    PasswordMissing,
    PasswordWrong,
    Unsupported(String),
    TooMuchWork(&'static str),
}

impl StoreError {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    /// The error of `place`, whose password stands in `password`.
    pub(crate) fn at(self, place: &Place, password: &'static str) -> TlsError {
        let place = place.clone();
        match self {
            Self::Damaged(what) => TlsError::Damaged { place, what },
            Self::PasswordMissing => TlsError::PasswordMissing { place, option: password },
            Self::PasswordWrong => TlsError::PasswordWrong { place, option: password },
            Self::Unsupported(what) => TlsError::Unsupported { place, what },
            Self::TooMuchWork(what) => TlsError::TooMuchWork { place, what },
        }
    }
}
