//! Hostile stores: random bytes, real stores with damage, stores of random bags. They are read or refused, without a panic, within the bounds.
//!
//! The damage to PKCS#12 is done once as anybody could, and once with a MAC that is made anew, as by somebody who knows the password:
//! what is behind the MAC is not reached otherwise.
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use aws_lc_rs::cipher::{AES_128, EncryptionContext, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::{hmac, iv, pbkdf2};
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;

use super::bags::{self, element};
use super::stores::fixture;
use crate::tls::contents::{Contents, MAX_CHAINED, Protected};
use crate::tls::der::{CONTEXT_0, CONTEXT_0_BYTES, Elements, INTEGER, OCTET_STRING, OID, SEQUENCE};
use crate::tls::error::StoreError;
use crate::tls::name::rfc2253;
use crate::tls::pbe::{Budget, Hash, Password, Purpose, pkcs12_key};
use crate::tls::principal::MappingRules;
use crate::tls::store;

const PASSWORD: &str = "changeit";

/// Rounds of hashing that a case may take: what the fixtures need, so that each is opened.
const ROUNDS: u64 = 400_000;

const JKS: [&str; 3] = ["java17-ec.jks", "java17-keypass.jks", "java17-trust.jks"];
const PKCS12: [&str; 9] = [
    "java17.p12",
    "java17-legacy.p12",
    "java17-chain.p12",
    "java17-trust-open.p12",
    "openssl.p12",
    "openssl-legacy.p12",
    "openssl-nomac.p12",
    "openssl-open.p12",
    "openssl-sha384.p12",
];
const PEM: [&str; 6] =
    ["rsa-aes256.key", "rsa-v1-3des.key", "rsa-pkcs1.key", "rsa-pkcs1-aes.key", "ec.crt", "ec-sec1.key"];

/// Reads a store, and every key in it. What is read takes no more bytes than the store has.
fn read(bytes: &[u8], password: Option<&str>) -> Option<Contents> {
    let mut budget = Budget::of(ROUNDS);
    let contents = store::read(bytes, None, password, &mut budget).ok()?;
    let held = bytes_of(&contents);
    assert!(held <= bytes.len(), "{held} bytes of a store of {}", bytes.len());
    assert!(contents.keys.iter().map(|key| key.chain.len()).sum::<usize>() <= MAX_CHAINED);
    for key in &contents.keys {
        let _ = store::open_key(key, &[PASSWORD, "keypass"], &mut budget);
        let _ = store::open_key(key, &[], &mut budget);
    }
    Some(contents)
}

/// Bytes of all keys and certificates; what several keys share counts once.
fn bytes_of(contents: &Contents) -> usize {
    let mut seen = HashSet::new();
    let chained = contents.keys.iter().flat_map(|key| &key.chain);
    let chained = chained.filter(|found| seen.insert(Arc::as_ptr(found)));
    let chained: usize = chained.map(|found| found.len()).sum();
    let certificates: usize = contents.certificates.iter().map(|found| found.len()).sum();
    let keys = contents.keys.iter().map(|key| match &key.protected {
        Protected::Plain(key) => key.secret_der().len(),
        Protected::Pkcs8(key) | Protected::Jks(key) => key.len(),
    });
    certificates + chained + keys.sum::<usize>()
}

/// A store of `names` with bytes overwritten, a piece taken out and the rest cut off.
fn damaged(
    names: &[&str],
    which: usize,
    places: &[(usize, u8)],
    piece: (usize, usize),
    cut: Option<usize>,
) -> Vec<u8> {
    let mut bytes = std::fs::read(fixture(names[which % names.len()])).unwrap();
    for (at, byte) in places {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    let from = piece.0 % bytes.len();
    bytes.drain(from..(from + piece.1 % 40).min(bytes.len()));
    if let Some(cut) = cut {
        bytes.truncate(cut % (bytes.len() + 1));
    }
    bytes
}

/// The arguments of [`damaged`].
type Damage = (usize, Vec<(usize, u8)>, (usize, usize), Option<usize>);

fn damage() -> impl Strategy<Value = Damage> {
    let places = prop::collection::vec((any::<usize>(), any::<u8>()), 0..5);
    let piece = prop_oneof![3 => Just((0, 0)), 1 => any::<(usize, usize)>()];
    (any::<usize>(), places, piece, prop_oneof![3 => Just(None), 1 => any::<usize>().prop_map(Some)])
}

/// What is behind the MAC of a real store.
fn safe_of(store: &[u8]) -> Vec<u8> {
    let mut pfx = Elements::new(store).sequence().unwrap();
    pfx.number().unwrap();
    let mut info = pfx.sequence().unwrap();
    info.expect(OID).unwrap();
    Elements::new(info.expect(CONTEXT_0).unwrap()).expect(OCTET_STRING).unwrap().to_vec()
}

/// A store of `safe` with a MAC by [`PASSWORD`].
fn with_mac(safe: &[u8]) -> Vec<u8> {
    const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
    let (salt, password) = (b"a salt", Password::new(PASSWORD));
    let key =
        pkcs12_key(&Hash::SHA256, Purpose::Mac, &password, salt, 1, 32, &mut Budget::of(ROUNDS)).unwrap();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), safe);
    let algorithm = element(SEQUENCE, &[&element(OID, &[SHA256])]);
    let digest = element(SEQUENCE, &[&algorithm, &element(OCTET_STRING, &[mac.as_ref()])]);
    let mac = element(SEQUENCE, &[&digest, &element(OCTET_STRING, &[salt]), &element(INTEGER, &[&[1]])]);
    bags::store(safe, &mac)
}

/// An AuthenticatedSafe whose one part is `content`, encrypted by [`PASSWORD`].
fn encrypted(content: &[u8]) -> Vec<u8> {
    const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
    const ENCRYPTED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x06];
    const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
    const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
    const AES_128_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02];
    let (salt, start, mut key) = (b"a salt", [7; 16], [0; 16]);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, NonZeroU32::MIN, salt, PASSWORD.as_bytes(), &mut key);
    let key = PaddedBlockEncryptingKey::cbc_pkcs7(UnboundCipherKey::new(&AES_128, &key).unwrap()).unwrap();
    let mut sealed = content.to_vec();
    let context = EncryptionContext::Iv128(iv::FixedLength::from(&start));
    key.less_safe_encrypt(&mut sealed, context).unwrap();
    let parameters = element(SEQUENCE, &[&element(OCTET_STRING, &[salt]), &element(INTEGER, &[&[1]])]);
    let derivation = element(SEQUENCE, &[&element(OID, &[PBKDF2]), &parameters]);
    let cipher = element(SEQUENCE, &[&element(OID, &[AES_128_CBC]), &element(OCTET_STRING, &[&start])]);
    let scheme = element(SEQUENCE, &[&derivation, &cipher]);
    let algorithm = element(SEQUENCE, &[&element(OID, &[PBES2]), &scheme]);
    let sealed = element(CONTEXT_0_BYTES, &[&sealed]);
    let content = element(SEQUENCE, &[&element(OID, &[DATA]), &algorithm, &sealed]);
    let data = element(CONTEXT_0, &[&element(SEQUENCE, &[&element(INTEGER, &[&[0]]), &content])]);
    element(SEQUENCE, &[&element(SEQUENCE, &[&element(OID, &[ENCRYPTED_DATA]), &data])])
}

/// Three certificates that were issued by each other.
fn chain() -> Vec<CertificateDer<'static>> {
    let bytes = std::fs::read(fixture("java17-chain.p12")).unwrap();
    let contents = read(&bytes, Some(PASSWORD)).unwrap();
    contents.keys[0].chain.iter().map(|found| found.as_ref().clone()).collect()
}

/// Bags of keys and certificates: of a real chain of three, and such that are none; few ids, so that many belong together.
fn some_bags() -> impl Strategy<Value = Vec<Vec<u8>>> {
    thread_local!(static CHAIN: Vec<CertificateDer<'static>> = chain());
    let bag = (any::<bool>(), 0..4_usize, prop::option::of(0..3_u8)).prop_map(|(is_key, which, id)| {
        let id = id.map(|id| vec![id]);
        let der = CHAIN.with(|chain| chain.get(which).map_or(b"none".to_vec(), |found| found.to_vec()));
        if is_key { bags::key(&der, id.as_deref()) } else { bags::certificate(&der, id.as_deref()) }
    });
    prop::collection::vec(bag, 0..24)
}

proptest! {
    #[test]
    fn random_bags_take_no_more_than_their_store(
        all in some_bags(),
        places in prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec((any::<usize>(), any::<u8>()), 1..4)],
        is_encrypted in any::<bool>(),
        has_mac in any::<bool>(),
    ) {
        let mut safe = bags::safe(&all);
        let is_whole = places.is_empty();
        for (at, byte) in places {
            let at = at % safe.len();
            safe[at] = byte;
        }
        if is_encrypted && is_whole {
            let bags: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            safe = encrypted(&element(SEQUENCE, &bags));
        }
        let store = if has_mac { with_mac(&safe) } else { bags::store(&safe, &[]) };
        let contents = read(&store, Some(PASSWORD));
        prop_assert!(contents.is_some() || !is_whole, "a whole store is refused");
    }

    #[test]
    fn mutated_pkcs12_stores_never_panic_behind_their_mac(
        which in any::<usize>(),
        places in prop::collection::vec((any::<usize>(), any::<u8>()), 0..5),
    ) {
        let store = std::fs::read(fixture(PKCS12[which % PKCS12.len()])).unwrap();
        let mut safe = safe_of(&store);
        let is_whole = places.is_empty();
        for (at, byte) in places {
            let at = at % safe.len();
            safe[at] = byte;
        }
        let contents = read(&with_mac(&safe), Some(PASSWORD));
        prop_assert!(contents.is_some() || !is_whole, "a whole store is refused");
    }

    #[test]
    fn random_stores_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), head in 0..5_usize) {
        let heads: [&[u8]; 5] = [
            &[],
            &[0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2],
            &[0x30, 0x82, 1, 40, 2, 1, 3, 0x30],
            b"-----BEGIN CERTIFICATE-----\n",
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----",
        ];
        let bytes = [heads[head], &bytes].concat();
        read(&bytes, Some("changeit"));
        read(&bytes, None);
        rfc2253(&bytes);
    }

    #[test]
    fn mutated_jks_stores_never_panic((which, places, piece, cut) in damage()) {
        let bytes = damaged(&JKS, which, &places, piece, cut);
        read(&bytes, None);
        read(&bytes, Some("changeit"));
    }

    #[test]
    fn mutated_pkcs12_stores_never_panic((which, places, piece, cut) in damage()) {
        let bytes = damaged(&PKCS12, which, &places, piece, cut);
        read(&bytes, None);
        read(&bytes, Some("changeit"));
    }

    #[test]
    fn mutated_pem_files_never_panic((which, places, piece, cut) in damage()) {
        read(&damaged(&PEM, which, &places, piece, cut), None);
    }

    #[test]
    fn random_mapping_rules_never_panic(
        rules in "(RULE:[a-zA-Z(){}\\[\\]*+?.$^\\\\0-9,=|é ]{0,20}/[$0-9a-z\\\\{}]{0,8}/[LU]?,? ?|DEFAULT,?){0,3}",
        name in "(CN=[a-zé0-9]{0,8},?){0,3}",
    ) {
        if let Ok(rules) = MappingRules::parse(&rules) {
            rules.apply(&name);
        }
    }
}

#[test]
fn a_jks_store_that_was_changed_anywhere_does_not_open_with_its_password() {
    let whole = std::fs::read(fixture("java17-ec.jks")).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(store::read(&bytes, None, Some("changeit"), &mut Budget::of(ROUNDS)).is_err(), "byte {at}");
    }
}

#[test]
fn keys_whose_chains_have_very_many_certificates_together_are_refused() {
    let with_keys = |count: usize| {
        let mut all: Vec<_> = chain().iter().map(|der| bags::certificate(der, Some(b"shared"))).collect();
        all.extend(vec![bags::key(&[], Some(b"shared")); count]);
        let bytes = bags::store(&bags::safe(&all), &[]);
        store::read(&bytes, None, None, &mut Budget::of(ROUNDS)).map(|contents| contents.keys.len())
    };
    let most = MAX_CHAINED / 3;
    assert_eq!(with_keys(most), Ok(most));
    assert!(matches!(with_keys(most + 1), Err(StoreError::TooMuchWork(_))));
}

#[test]
fn stores_that_would_take_minutes_are_refused_at_once() {
    // The number of rounds stands behind the salt of the MAC, at the end of the store.
    let mut bytes = std::fs::read(fixture("java17.p12")).unwrap();
    let at = bytes.len() - 4;
    assert_eq!(bytes[at..], [0x02, 0x02, 0x27, 0x10]);
    bytes[at + 2..].copy_from_slice(&[0x7f, 0xff]);
    let mut budget = Budget::of(30_000);
    assert!(matches!(
        store::read(&bytes, None, Some("changeit"), &mut budget),
        Err(StoreError::TooMuchWork(_))
    ));
    let key = std::fs::read(fixture("openssl-rounds.p12")).unwrap();
    let mut budget = Budget::of(1_000_000);
    assert!(matches!(
        store::read(&key, None, Some("changeit"), &mut budget),
        Err(StoreError::TooMuchWork(_))
    ));
}
