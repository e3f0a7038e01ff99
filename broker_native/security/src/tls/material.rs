//! What a side of TLS shows and what it trusts: [`Identity`], [`Trust`], read from the settings.
//!
//! The rules are Kafka's: text of a PEM store excludes its location, a PEM store has no password of its own, the password of a key store
//! opens its key too unless `ssl.key.password` is set. Of several keys in a store the first is taken. In a trust store with keys, the
//! first certificate of each is trusted too, as in Java. Without a trust store a client trusts the system's roots.
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use super::certificate::Summary;
use super::contents::{Contents, KeyEntry, MAX_CHAIN};
use super::error::{Place, StoreError, TlsError};
use super::files::Files;
use super::pbe::Budget;
use super::settings::TlsSettings;
use super::store::{self, StoreType};
use crate::secret::Secret;

const KEYSTORE_TYPE: &str = "ssl.keystore.type";
const KEYSTORE_LOCATION: &str = "ssl.keystore.location";
const KEYSTORE_PASSWORD: &str = "ssl.keystore.password";
const KEY_PASSWORD: &str = "ssl.key.password";
const KEYSTORE_CHAIN: &str = "ssl.keystore.certificate.chain";
const KEYSTORE_KEY: &str = "ssl.keystore.key";
const CERTIFICATE_LOCATION: &str = "ssl.certificate.location";
const KEY_LOCATION: &str = "ssl.key.location";
const TRUSTSTORE_TYPE: &str = "ssl.truststore.type";
const TRUSTSTORE_LOCATION: &str = "ssl.truststore.location";
const TRUSTSTORE_PASSWORD: &str = "ssl.truststore.password";
const TRUSTSTORE_CERTIFICATES: &str = "ssl.truststore.certificates";

/// A certificate chain, one's own certificate first, and its private key. Debug shows no key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Zeroizing<PrivateKeyDer<'static>>,
    place: Place,
    summary: Summary,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("place", &self.place)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads it where the settings have one; the files are noted in `files`.
    pub fn read(settings: &TlsSettings, files: &mut Files) -> Result<Option<Self>, TlsError> {
        let kind = settings
            .keystore_type
            .as_deref()
            .map(|text| StoreType::parse(KEYSTORE_TYPE, text))
            .transpose()?;
        let texts = settings.keystore_key.is_some() || settings.keystore_certificate_chain.is_some();
        let parts = settings.certificate_location.is_some() || settings.key_location.is_some();
        if [texts, parts, settings.keystore_location.is_some()].into_iter().filter(|&given| given).count() > 1
        {
            return Err(TlsError::Settings(format!(
                "A certificate comes from {KEYSTORE_LOCATION}, or from {KEYSTORE_CHAIN} and {KEYSTORE_KEY}, or from \
                 {CERTIFICATE_LOCATION} and {KEY_LOCATION}: set one of them only"
            )));
        }
        if texts {
            from_texts(settings, kind).map(Some)
        } else if parts {
            from_two_files(settings, files).map(Some)
        } else if let Some(path) = &settings.keystore_location {
            from_store(settings, kind, path, files).map(Some)
        } else if settings.keystore_password.is_some() {
            Err(TlsError::Settings(format!(
                "{KEYSTORE_PASSWORD} is set, and there is no key store: set {KEYSTORE_LOCATION}"
            )))
        } else {
            Ok(None)
        }
    }

    /// Its chain, as it is shown to the other side.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Whose certificate it is, and when it is valid.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Where it came from.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What rustls signs with; an error when the key is of a kind that it does not know, or of another certificate.
    pub(crate) fn certified(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let place = self.place.clone();
        // Not `CertifiedKey::from_der`: it takes a copy of the key, which nobody wipes.
        let key = any_supported_type(&self.key).map(|key| CertifiedKey::new(self.chain.clone(), key));
        match key.and_then(|key| key.keys_match().map(|()| key)) {
            Ok(key) => Ok(Arc::new(key)),
            Err(rustls::Error::InconsistentKeys(_)) => Err(TlsError::KeyMismatch { place }),
            Err(rustls::Error::InvalidCertificate(error)) => {
                Err(TlsError::Certificate { place, what: super::handshake::certificate(&error) })
            }
            Err(_) => Err(TlsError::Key {
                place,
                what: "it is no RSA key of 2048 to 8192 bits, ECDSA or Ed25519 key".into(),
            }),
        }
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: Zeroizing<PrivateKeyDer<'static>>,
        place: Place,
    ) -> Result<Self, TlsError> {
        let Some(own) = chain.first() else { return Err(TlsError::NoCertificate { place }) };
        if chain.len() > MAX_CHAIN {
            return Err(TlsError::TooMuchWork { place, what: "its chain has too many certificates" });
        }
        let summary =
            Summary::of(own).map_err(|what| TlsError::Certificate { place: place.clone(), what })?;
        Ok(Self { chain, key, place, summary })
    }
}

fn from_texts(settings: &TlsSettings, kind: Option<StoreType>) -> Result<Identity, TlsError> {
    if kind.is_some_and(|kind| kind != StoreType::Pem) {
        return Err(TlsError::Settings(format!(
            "{KEYSTORE_CHAIN} and {KEYSTORE_KEY} are PEM: set {KEYSTORE_TYPE} to PEM"
        )));
    }
    no_password(&settings.keystore_password, KEYSTORE_PASSWORD)?;
    let (Some(chain), Some(key)) = (&settings.keystore_certificate_chain, &settings.keystore_key) else {
        return Err(TlsError::Settings(format!(
            "{KEYSTORE_CHAIN} and {KEYSTORE_KEY} belong together: set both"
        )));
    };
    let chain = pem(&Place::text(KEYSTORE_CHAIN), chain.as_bytes())?;
    let place = Place::text(KEYSTORE_KEY);
    let key = the_key(&pem(&place, key.reveal().as_bytes())?, &place, &settings.key_password)?;
    Identity::new(chain.certificates, key, Place::text(KEYSTORE_CHAIN))
}

fn from_two_files(settings: &TlsSettings, files: &mut Files) -> Result<Identity, TlsError> {
    let Some(certificate) = &settings.certificate_location else {
        return Err(TlsError::Settings(format!(
            "{KEY_LOCATION} is set without {CERTIFICATE_LOCATION}: set both"
        )));
    };
    let mut read = |option, path: &str| pem(&Place::file(option, path), &files.read(option, path)?);
    let chain = read(CERTIFICATE_LOCATION, certificate)?;
    let place = Place::file(CERTIFICATE_LOCATION, certificate);
    let key = match &settings.key_location {
        Some(path) => {
            the_key(&read(KEY_LOCATION, path)?, &Place::file(KEY_LOCATION, path), &settings.key_password)?
        }
        None => the_key(&chain, &place, &settings.key_password)?,
    };
    Identity::new(chain.certificates, key, place)
}

fn from_store(
    settings: &TlsSettings,
    kind: Option<StoreType>,
    path: &str,
    files: &mut Files,
) -> Result<Identity, TlsError> {
    let place = Place::file(KEYSTORE_LOCATION, path);
    let bytes = files.read(KEYSTORE_LOCATION, path)?;
    let password = settings.keystore_password.as_ref().map(Secret::reveal);
    let mut budget = Budget::new();
    let contents = store::read_at(&place, &bytes, kind, (KEYSTORE_PASSWORD, password), &mut budget)?;
    if contents.is_pem {
        no_password(&settings.keystore_password, KEYSTORE_PASSWORD)?;
        let key = the_key(&contents, &place, &settings.key_password)?;
        return Identity::new(contents.certificates, key, place);
    }
    let Some(entry) = contents.keys.first() else { return Err(TlsError::NoPrivateKey { place }) };
    let own = settings.key_password.as_ref().map(Secret::reveal);
    let passwords: Vec<_> = own.into_iter().chain(password).collect();
    let key = store::open_key(entry, &passwords, &mut budget).map_err(|error| match error {
        StoreError::PasswordWrong if own.is_none() => TlsError::KeyPassword { place: place.clone() },
        _ => error.at(&place, if own.is_some() { KEY_PASSWORD } else { KEYSTORE_PASSWORD }),
    })?;
    Identity::new(entry.chain.iter().map(|found| CertificateDer::clone(found)).collect(), key, place)
}

/// The one private key of a PEM text or file.
fn the_key(
    contents: &Contents,
    place: &Place,
    password: &Option<Secret>,
) -> Result<Zeroizing<PrivateKeyDer<'static>>, TlsError> {
    let place = place.clone();
    match &contents.keys[..] {
        [] => Err(TlsError::NoPrivateKey { place }),
        [entry] => open(entry, password).map_err(|error| error.at(&place, KEY_PASSWORD)),
        _ => {
            Err(TlsError::Settings(format!("{place} has several private keys: leave the one that is meant")))
        }
    }
}

fn open(
    entry: &KeyEntry,
    password: &Option<Secret>,
) -> Result<Zeroizing<PrivateKeyDer<'static>>, StoreError> {
    let passwords: Vec<_> = password.iter().map(Secret::reveal).collect();
    store::open_key(entry, &passwords, &mut Budget::new())
}

fn pem(place: &Place, bytes: &[u8]) -> Result<Contents, TlsError> {
    store::read_at(place, bytes, Some(StoreType::Pem), (KEY_PASSWORD, None), &mut Budget::new())
}

fn no_password(password: &Option<Secret>, option: &str) -> Result<(), TlsError> {
    match password {
        None => Ok(()),
        Some(_) => Err(TlsError::Settings(format!(
            "{option} is set for a PEM store, which has no password of its own: leave it out; that of a private key is {KEY_PASSWORD}"
        ))),
    }
}

/// Roots that chains may end in, and certificates that are trusted themselves.
#[derive(Clone)]
pub struct Trust {
    roots: Arc<RootCertStore>,
    /// The same certificates, for who shows one of them itself.
    themselves: Arc<HashSet<Vec<u8>>>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trust({} certificates)", self.roots.len())
    }
}

impl Trust {
    /// Reads a trust store where the settings have one; its file is noted in `files`.
    pub fn read(settings: &TlsSettings, files: &mut Files) -> Result<Option<Self>, TlsError> {
        let kind = settings
            .truststore_type
            .as_deref()
            .map(|text| StoreType::parse(TRUSTSTORE_TYPE, text))
            .transpose()?;
        let password = settings.truststore_password.as_ref().map(Secret::reveal);
        match (&settings.truststore_certificates, &settings.truststore_location) {
            (Some(_), Some(_)) => Err(TlsError::Settings(format!(
                "{TRUSTSTORE_CERTIFICATES} and {TRUSTSTORE_LOCATION} exclude each other: set one of them"
            ))),
            (Some(_), None) if kind.is_some_and(|kind| kind != StoreType::Pem) => Err(TlsError::Settings(
                format!("{TRUSTSTORE_CERTIFICATES} is PEM: set {TRUSTSTORE_TYPE} to PEM"),
            )),
            (Some(text), None) => {
                no_password(&settings.truststore_password, TRUSTSTORE_PASSWORD)?;
                let place = Place::text(TRUSTSTORE_CERTIFICATES);
                Self::of(&pem(&place, text.as_bytes())?, place).map(Some)
            }
            (None, Some(path)) => {
                let place = Place::file(TRUSTSTORE_LOCATION, path);
                let bytes = files.read(TRUSTSTORE_LOCATION, path)?;
                let password = (TRUSTSTORE_PASSWORD, password);
                let contents = store::read_at(&place, &bytes, kind, password, &mut Budget::new())?;
                Self::of(&contents, place).map(Some)
            }
            (None, None) if password.is_some() => Err(TlsError::Settings(format!(
                "{TRUSTSTORE_PASSWORD} is set, and there is no trust store: set {TRUSTSTORE_LOCATION}"
            ))),
            (None, None) => Ok(None),
        }
    }

    /// What the operating system trusts.
    pub fn system() -> Result<Self, TlsError> {
        let (found, error) = super::system::roots();
        let mut roots = RootCertStore::empty();
        // Old systems have roots that no one can read any more: as many as can be are taken.
        roots.add_parsable_certificates(found);
        if roots.is_empty() {
            let reason = error.map_or_else(String::new, |error| format!(" ({error})"));
            return Err(TlsError::Settings(format!(
                "This system has no trusted root certificates{reason}: set {TRUSTSTORE_LOCATION}, or install the package ca-certificates"
            )));
        }
        Ok(Self { roots: Arc::new(roots), themselves: Arc::default() })
    }

    fn of(contents: &Contents, place: Place) -> Result<Self, TlsError> {
        // Very many keys may share a certificate: it is looked at once.
        let mut seen = HashSet::new();
        let firsts = contents.keys.iter().filter_map(|key| key.chain.first());
        let firsts = firsts.filter(|first| seen.insert(Arc::as_ptr(first))).map(AsRef::as_ref);
        let mut roots = RootCertStore::empty();
        let mut themselves = HashSet::new();
        for certificate in contents.certificates.iter().chain(firsts) {
            super::certificate::parse(certificate)
                .map_err(|what| TlsError::Certificate { place: place.clone(), what })?;
            // A few of the hundreds in Java's own store are so old that rustls does not take them as roots: nothing is signed by them now.
            roots.add_parsable_certificates([certificate.clone()]);
            themselves.insert(certificate.to_vec());
        }
        if roots.is_empty() {
            return Err(TlsError::NoCertificate { place });
        }
        Ok(Self { roots: Arc::new(roots), themselves: Arc::new(themselves) })
    }

    /// The roots.
    pub fn roots(&self) -> &Arc<RootCertStore> {
        &self.roots
    }

    /// Whether `certificate` itself is in the trust store.
    pub(crate) fn has(&self, certificate: &CertificateDer<'_>) -> bool {
        self.themselves.contains(certificate.as_ref())
    }
}
