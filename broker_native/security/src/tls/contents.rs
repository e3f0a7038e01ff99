//! What a store of keys and certificates has in it, whichever its format, and how much that may be.
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::error::StoreError;

/// Entries and certificates that a store may have: the roots of an operating system are some hundreds.
pub const MAX_ENTRIES: usize = 10_000;
/// Certificates that a chain may have: usually two or three.
pub const MAX_CHAIN: usize = 32;
/// Certificates that the chains of all keys of a store may have together. Keys may share them, so this is not limited by its bytes.
pub const MAX_CHAINED: usize = 10_000;

/// A private key as it lies in a store.
pub(crate) enum Protected {
    Plain(Zeroizing<PrivateKeyDer<'static>>),
    /// Encrypted PKCS#8.
    Pkcs8(Zeroizing<Vec<u8>>),
    /// Sun's own protection.
    Jks(Zeroizing<Vec<u8>>),
}

/// A private key, and its certificates where the store says which they are. Keys of which a store says that they have the same
/// certificate share it.
pub(crate) struct KeyEntry {
    pub(crate) protected: Protected,
    pub(crate) chain: Vec<Arc<CertificateDer<'static>>>,
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

/// Refuses more keys and certificates, and more certificates in chains, than a store may have.
pub(crate) fn bounded(entries: usize, chained: usize) -> Result<(), StoreError> {
    if entries > MAX_ENTRIES {
        return Err(StoreError::TooMuchWork("it has too many entries"));
    }
    if chained > MAX_CHAINED {
        return Err(StoreError::TooMuchWork("the chains of its keys have too many certificates"));
    }
    Ok(())
}
