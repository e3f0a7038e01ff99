//! What a store of keys and certificates has in it, whichever its format; which format that is; and the limits.
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::error::{Place, StoreError, TlsError};
use super::pbe::{self, Budget};
use super::{jks, pem, pkcs12};

/// Entries and certificates that a store may have: the roots of an operating system are some hundreds.
pub const MAX_ENTRIES: usize = 10_000;
/// Certificates that a chain may have: usually two or three.
pub const MAX_CHAIN: usize = 32;
/// Rounds of hashing that a store's passwords may take, in all: keytool and OpenSSL write some thousands, and this is a few seconds.
pub const MAX_ITERATIONS: u64 = 5_000_000;

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreType {
    /// Text.
    Pem,
    /// Java's own, until Java 8.
    Jks,
    /// Java's since then, and OpenSSL's.
    Pkcs12,
}

impl StoreType {
    /// Reads the value of the setting `option`.
    pub fn parse(option: &'static str, text: &str) -> Result<Self, TlsError> {
        match text.to_ascii_uppercase().as_str() {
            "PEM" => Ok(Self::Pem),
            "JKS" => Ok(Self::Jks),
            "PKCS12" | "P12" | "PFX" => Ok(Self::Pkcs12),
            _ => Err(TlsError::UnknownStoreType { option, given: text.into() }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pem => "PEM",
            Self::Jks => "JKS",
            Self::Pkcs12 => "PKCS12",
        }
    }

    /// What `bytes` look like.
    fn of(bytes: &[u8]) -> Option<Self> {
        if jks::is_jks(bytes) {
            Some(Self::Jks)
        } else if pkcs12::is_pkcs12(bytes) {
            Some(Self::Pkcs12)
        } else if pem::is_pem(bytes) {
            Some(Self::Pem)
        } else {
            None
        }
    }

    /// The format of `bytes`, which are said to be `given`. As in Java, JKS and PKCS12 stand for each other.
    fn decide(given: Option<Self>, bytes: &[u8]) -> Result<Self, StoreError> {
        if bytes.is_empty() {
            return Err(StoreError::damaged("it is empty"));
        }
        if bytes.starts_with(&[0xce, 0xce, 0xce, 0xce]) {
            let what =
                "is a store of type JCEKS: write it anew with keytool -importkeystore -deststoretype PKCS12";
            return Err(StoreError::Unsupported(what.into()));
        }
        match (given, Self::of(bytes)) {
            (None | Some(Self::Jks | Self::Pkcs12), Some(found @ (Self::Jks | Self::Pkcs12))) => Ok(found),
            (None | Some(Self::Pem), Some(Self::Pem)) => Ok(Self::Pem),
            (Some(given), Some(found)) => Err(StoreError::damaged(format!(
                "it is said to be {}, and is {}",
                given.name(),
                found.name()
            ))),
            (Some(given), None) => {
                Err(StoreError::damaged(format!("it is said to be {}, and is not", given.name())))
            }
            (None, None) => Err(StoreError::damaged("it is neither PEM nor JKS nor PKCS12")),
        }
    }
}

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

impl KeyEntry {
    /// The key, opened with the first of `passwords` that does.
    pub(crate) fn open(
        &self,
        passwords: &[&str],
        budget: &mut Budget,
    ) -> Result<PrivateKeyDer<'static>, StoreError> {
        if let Protected::Plain(key) = &self.protected {
            return Ok(key.clone_key());
        }
        let mut result = Err(StoreError::PasswordMissing);
        for password in passwords {
            let opened = match &self.protected {
                Protected::Pkcs8(bytes) => pbe::open_pkcs8(bytes, password, budget),
                Protected::Jks(bytes) => jks::open_key(bytes, password),
                Protected::Plain(key) => return Ok(key.clone_key()),
            };
            result = opened.map(|key| PrivateKeyDer::Pkcs8(key.to_vec().into()));
            if !matches!(result, Err(StoreError::PasswordWrong)) {
                break;
            }
        }
        result
    }
}

/// What is in a store.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) keys: Vec<KeyEntry>,
    /// Certificates that no key claims: of a trust store those that are trusted.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.keys.len() + self.certificates.len()
    }

    /// Reads a store. Keys stay encrypted until they are opened. Without a password its integrity is not checked, as in Kafka.
    pub(crate) fn read(
        bytes: &[u8],
        given: Option<StoreType>,
        password: Option<&str>,
        budget: &mut Budget,
    ) -> Result<Self, StoreError> {
        match StoreType::decide(given, bytes)? {
            StoreType::Pem => pem::read(bytes),
            StoreType::Jks => jks::read(bytes, password),
            StoreType::Pkcs12 => pkcs12::read(bytes, password, budget),
        }
    }

    /// The same of a file or text, with its name in the error.
    pub(crate) fn read_at(
        place: &Place,
        bytes: &[u8],
        given: Option<StoreType>,
        (option, password): (&'static str, Option<&str>),
        budget: &mut Budget,
    ) -> Result<Self, TlsError> {
        Self::read(bytes, given, password, budget).map_err(|error| error.at(place, option))
    }
}
