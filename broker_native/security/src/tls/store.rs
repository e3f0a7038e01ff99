//! Reads a store of keys and certificates in whichever format it has, and opens the keys in it.
use rustls::pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

use super::contents::{Contents, KeyEntry, Protected};
use super::error::{Place, StoreError, TlsError};
use super::pbe::{self, Budget};
use super::{jks, pem, pkcs12};

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

/// The key of `entry`, opened with the first of `passwords` that does.
pub(crate) fn open_key(
    entry: &KeyEntry,
    passwords: &[&str],
    budget: &mut Budget,
) -> Result<Zeroizing<PrivateKeyDer<'static>>, StoreError> {
    let mut result = Err(StoreError::PasswordMissing);
    for password in passwords {
        let opened = match &entry.protected {
            Protected::Plain(_) => break,
            Protected::Pkcs8(bytes) => pbe::open_pkcs8(bytes, password, budget),
            Protected::Jks(bytes) => jks::open_key(bytes, password),
        };
        result = opened.map(|mut key| Zeroizing::new(PrivateKeyDer::Pkcs8(std::mem::take(&mut *key).into())));
        if !matches!(result, Err(StoreError::PasswordWrong)) {
            break;
        }
    }
    match &entry.protected {
        Protected::Plain(key) => Ok(Zeroizing::new(key.clone_key())),
        Protected::Pkcs8(_) | Protected::Jks(_) => result,
    }
}

/// Reads a store. Keys stay encrypted until they are opened. Without a password its integrity is not checked, as in Kafka.
pub(crate) fn read(
    bytes: &[u8],
    given: Option<StoreType>,
    password: Option<&str>,
    budget: &mut Budget,
) -> Result<Contents, StoreError> {
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
) -> Result<Contents, TlsError> {
    read(bytes, given, password, budget).map_err(|error| error.at(place, option))
}
