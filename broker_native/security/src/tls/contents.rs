//! What a store of keys and certificates has in it, whichever its format, and how much that may be.
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

/// Entries and certificates that a store may have: the roots of an operating system are some hundreds.
pub const MAX_ENTRIES: usize = 10_000;
/// Certificates that a chain may have: usually two or three.
pub const MAX_CHAIN: usize = 32;

/// A private key as it lies in a store.
pub(crate) enum Protected {
    Plain(PrivateKeyDer<'static>),
    /// Encrypted PKCS#8.
    Pkcs8(Zeroizing<Vec<u8>>),
    /// Sun's own protection.
    Jks(Zeroizing<Vec<u8>>),
}

/// A private key, and its certificates where the store says which they are.
pub(crate) struct KeyEntry {
    pub(crate) protected: Protected,
    pub(crate) chain: Vec<CertificateDer<'static>>,
}

/// What is in a store.
#[derive(Default)]
pub(crate) struct Contents {
    /// Whether it is PEM, where it is up to who reads which certificates belong to a key.
    pub(crate) is_pem: bool,
    pub(crate) keys: Vec<KeyEntry>,
    /// Certificates that no key claims: of a trust store those that are trusted.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.keys.len() + self.certificates.len()
    }
}
