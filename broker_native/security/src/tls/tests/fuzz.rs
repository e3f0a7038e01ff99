//! Hostile stores: random bytes, and real stores with damage. They are read or refused, without a panic, within the bounds.
use proptest::prelude::*;

use super::stores::fixture;
use crate::tls::error::StoreError;
use crate::tls::name::rfc2253;
use crate::tls::pbe::Budget;
use crate::tls::principal::MappingRules;
use crate::tls::store;

/// Rounds of hashing that a case may take: what the fixtures need, so that each is opened.
const ROUNDS: u64 = 100_000;

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

/// Reads a store, and every key in it.
fn read(bytes: &[u8], password: Option<&str>) {
    let mut budget = Budget::of(ROUNDS);
    if let Ok(contents) = store::read(bytes, None, password, &mut budget) {
        let bytes_of = |certificates: &[rustls::pki_types::CertificateDer<'_>]| {
            certificates.iter().map(|one| one.len()).sum::<usize>()
        };
        assert!(bytes_of(&contents.certificates) <= bytes.len());
        for key in &contents.keys {
            let _ = store::open_key(key, &["changeit", "keypass"], &mut budget);
            let _ = store::open_key(key, &[], &mut budget);
        }
    }
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

proptest! {
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
