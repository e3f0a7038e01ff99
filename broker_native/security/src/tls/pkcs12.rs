//! PKCS#12 stores (RFC 7292) as keytool, OpenSSL and their likes write them: DER, protected by a password.
//!
//! ```text
//! PFX           3, AuthenticatedSafe in an OCTET STRING, MAC over it (with a password of two forms, or PBMAC1 of RFC 9579)
//! AuthenticatedSafe   ContentInfo: bags in the open, or encrypted
//! bag           a certificate | a key | an encrypted key; with attributes: which key it belongs to, whether it is trusted (Java's own)
//! ```
//!
//! A certificate of a key, and what issued it, are the key's chain. Of the others those are trusted that Java marked so, or all where
//! there are neither marks nor keys, as in a store of `openssl pkcs12 -export -nokeys`. Other bags are passed over.
use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::hmac;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::certificate;
use super::contents::{Contents, KeyEntry, MAX_CHAIN, Protected, bounded};
use super::der::{CONTEXT_0, CONTEXT_0_BYTES, Elements, INTEGER, OCTET_STRING, OID, SEQUENCE, SET};
use super::error::StoreError;
use super::pbe::{self, Budget, Hash, Password, Purpose};

const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const ENCRYPTED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x06];
/// The kinds of bags, but for their last number.
const BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01];
const X509_CERTIFICATE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x16, 0x01];
const LOCAL_KEY_ID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x15];
/// Java's 2.16.840.1.113894.746875.1.1.
const TRUSTED_KEY_USAGE: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 0x01, 0x01];
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// SHA-2, but for its last number.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
const PBMAC1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0e];
const HMAC_WITH: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];

/// Whether `bytes` begin as such a store does: a sequence that begins with a number, as no certificate does.
pub(crate) fn is_pkcs12(bytes: &[u8]) -> bool {
    let first = match bytes {
        [SEQUENCE, length @ 0x81..=0x84, rest @ ..] => rest.get(usize::from(length & 0x7f)),
        [SEQUENCE, _, rest @ ..] => rest.first(),
        _ => None,
    };
    first == Some(&INTEGER)
}

/// Reads a store; with a password also whether it is whole. What is encrypted cannot be read without one.
pub(crate) fn read(
    bytes: &[u8],
    password: Option<&str>,
    budget: &mut Budget,
) -> Result<Contents, StoreError> {
    let mut pfx = Elements::new(bytes).sequence()?;
    if pfx.number()? != 3 {
        return Err(StoreError::damaged("it is no PKCS#12 store of version 3"));
    }
    let safe = content(&mut pfx.sequence()?)?;
    let password = match (password, pfx.optional(SEQUENCE)?) {
        (Some(text), Some(mac)) => Some(proven(text, mac, safe, budget)?),
        (text, _) => text.map(Password::new),
    };
    let mut bags = Bags::default();
    let mut contents = Elements::new(safe).sequence()?;
    while !contents.is_empty() {
        let mut info = contents.sequence()?;
        match info.expect(OID)? {
            DATA => bags.read(Elements::new(info.expect(CONTEXT_0)?).expect(OCTET_STRING)?)?,
            ENCRYPTED_DATA => {
                let password = password.as_ref().ok_or(StoreError::PasswordMissing)?;
                bags.read(&decrypted(info.expect(CONTEXT_0)?, password, budget)?)?;
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "is encrypted to a certificate, not by a password".into(),
                ));
            }
        }
    }
    bags.sorted()
}

/// The bytes of a `ContentInfo` that is plain data.
fn content<'a>(info: &mut Elements<'a>) -> Result<&'a [u8], StoreError> {
    if info.expect(OID)? != DATA {
        return Err(StoreError::Unsupported("is signed, not protected by a password".into()));
    }
    Elements::new(info.expect(CONTEXT_0)?).expect(OCTET_STRING)
}

/// What is in an `EncryptedData`.
fn decrypted(
    data: &[u8],
    password: &Password,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut data = Elements::new(data).sequence()?;
    data.number()?;
    let mut info = data.sequence()?;
    info.expect(OID)?;
    let algorithm = info.sequence()?;
    pbe::decrypt(algorithm, info.expect(CONTEXT_0_BYTES)?, password, budget)
}

/// `text` in the form that the MAC proves: an empty password has two.
fn proven(text: &str, mac: &[u8], safe: &[u8], budget: &mut Budget) -> Result<Password, StoreError> {
    let password = Password::new(text);
    match check_mac(mac, safe, &password, budget) {
        Err(StoreError::PasswordWrong) if text.is_empty() => {
            let none = Password::none();
            check_mac(mac, safe, &none, budget).map(|()| none)
        }
        checked => checked.map(|()| password),
    }
}

fn check_mac(mac: &[u8], safe: &[u8], password: &Password, budget: &mut Budget) -> Result<(), StoreError> {
    let mut mac = Elements::new(mac);
    let mut info = mac.sequence()?;
    let mut algorithm = info.sequence()?;
    let expected = info.expect(OCTET_STRING)?;
    let salt = mac.expect(OCTET_STRING)?;
    let rounds = if mac.is_empty() { 1 } else { mac.number()? };
    let oid = algorithm.expect(OID)?;
    if oid == PBMAC1 {
        let mut parameters = algorithm.sequence()?;
        let mut derivation = parameters.sequence()?;
        let (algorithm, length) = match parameters.sequence()?.expect(OID)? {
            [with @ .., 9] if with == HMAC_WITH => (hmac::HMAC_SHA256, 32),
            [with @ .., 11] if with == HMAC_WITH => (hmac::HMAC_SHA512, 64),
            _ => return Err(StoreError::Unsupported("has a MAC that is not read".into())),
        };
        let key = pbe::pbkdf2_key(&mut derivation, password, length, budget)?;
        let key = hmac::Key::new(algorithm, &key);
        return hmac::verify(&key, safe, expected).map_err(|_| StoreError::PasswordWrong);
    }
    let (algorithm, hash) = match oid {
        SHA1 => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, Hash::SHA1),
        [sha2 @ .., 1] if sha2 == SHA2 => (hmac::HMAC_SHA256, Hash::SHA256),
        [sha2 @ .., 2] if sha2 == SHA2 => (hmac::HMAC_SHA384, Hash::SHA384),
        [sha2 @ .., 3] if sha2 == SHA2 => (hmac::HMAC_SHA512, Hash::SHA512),
        _ => {
            return Err(StoreError::Unsupported(
                "has a MAC that is not read: write it anew with SHA-256".into(),
            ));
        }
    };
    let key = pbe::pkcs12_key(&hash, Purpose::Mac, password, salt, rounds, hash.output, budget)?;
    hmac::verify(&hmac::Key::new(algorithm, &key), safe, expected).map_err(|_| StoreError::PasswordWrong)
}

/// What bags say, in the order of the store.
#[derive(Default)]
struct Bags {
    keys: Vec<(Protected, Option<Vec<u8>>)>,
    certificates: Vec<Certificate>,
}

struct Certificate {
    der: CertificateDer<'static>,
    key: Option<Vec<u8>>,
    trusted: bool,
}

#[derive(Default)]
struct Attributes {
    key: Option<Vec<u8>>,
    trusted: bool,
}

impl Bags {
    fn read(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let mut bags = Elements::new(bytes).sequence()?;
        while !bags.is_empty() {
            let mut bag = bags.sequence()?;
            let kind = bag.expect(OID)?;
            let value = bag.expect(CONTEXT_0)?;
            let attributes = attributes(bag)?;
            match kind {
                [id @ .., 1] if id == BAG => {
                    let key = Zeroizing::new(PrivateKeyDer::Pkcs8(value.to_vec().into()));
                    self.keys.push((Protected::Plain(key), attributes.key));
                }
                [id @ .., 2] if id == BAG => {
                    self.keys.push((Protected::Pkcs8(Zeroizing::new(value.to_vec())), attributes.key));
                }
                [id @ .., 3] if id == BAG => {
                    let mut bag = Elements::new(value).sequence()?;
                    if bag.expect(OID)? == X509_CERTIFICATE {
                        let der = Elements::new(bag.expect(CONTEXT_0)?).expect(OCTET_STRING)?.to_vec().into();
                        self.certificates.push(Certificate {
                            der,
                            key: attributes.key,
                            trusted: attributes.trusted,
                        });
                    }
                }
                _ => {}
            }
            bounded(self.keys.len() + self.certificates.len(), 0)?;
        }
        Ok(())
    }

    /// The keys with their chains, and the certificates that are trusted.
    fn sorted(self) -> Result<Contents, StoreError> {
        let issuers = self.issuers();
        // The first one wins, so they are entered from the last.
        let own = self.certificates.iter().enumerate().rev().filter(|(_, found)| !found.trusted);
        let by_key: HashMap<_, _> = own.map(|(at, found)| (found.key.clone(), at)).collect();
        let all = self.keys.is_empty() && !self.certificates.iter().any(|found| found.trusted);
        let mut contents = Contents::default();
        let mut shared = Vec::with_capacity(self.certificates.len());
        for found in self.certificates {
            if all || found.trusted {
                contents.certificates.push(found.der);
                shared.push(None);
            } else {
                shared.push(Some(Arc::new(found.der)));
            }
        }
        let mut chained = 0;
        for (protected, id) in self.keys {
            let chain = chain(by_key.get(&id).copied(), &issuers);
            chained += chain.len();
            bounded(0, chained)?;
            let chain = chain.into_iter().filter_map(|at| shared[at].clone()).collect();
            contents.keys.push(KeyEntry { protected, chain });
        }
        Ok(contents)
    }

    /// For each certificate the one that issued it, if it is here; none that is trusted: those are in no chain.
    fn issuers(&self) -> Vec<Option<usize>> {
        let names: Vec<_> = self.certificates.iter().map(|found| certificate::names(&found.der)).collect();
        let mut by_subject = HashMap::new();
        // The first one wins.
        for (at, _) in self.certificates.iter().enumerate().rev().filter(|(_, found)| !found.trusted) {
            if let Some((_, subject)) = &names[at] {
                by_subject.insert(subject, at);
            }
        }
        names.iter().map(|names| by_subject.get(&names.as_ref()?.0).copied()).collect()
    }
}

/// A key's certificate, what issued it, and so on.
fn chain(own: Option<usize>, issuers: &[Option<usize>]) -> Vec<usize> {
    let mut chain = Vec::new();
    let mut next = own;
    while let Some(at) = next.filter(|at| chain.len() < MAX_CHAIN && !chain.contains(at)) {
        chain.push(at);
        next = issuers[at];
    }
    chain
}

fn attributes(mut bag: Elements<'_>) -> Result<Attributes, StoreError> {
    let mut found = Attributes::default();
    let Some(set) = bag.optional(SET)? else { return Ok(found) };
    let mut set = Elements::new(set);
    while !set.is_empty() {
        let mut attribute = set.sequence()?;
        match attribute.expect(OID)? {
            LOCAL_KEY_ID => {
                found.key = Some(Elements::new(attribute.expect(SET)?).expect(OCTET_STRING)?.to_vec())
            }
            TRUSTED_KEY_USAGE => found.trusted = true,
            _ => {}
        }
    }
    Ok(found)
}
