use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::client::ScramClient;
use super::messages::{ClientFinal, ClientFirst, ServerFinal, ServerFirst};
use super::server::ScramServer;
use super::*;
use crate::sasl::SaslError;

const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
const BOTH: &str = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

/// The example of RFC 7677; for SHA-512, which has none, what Python's hashlib computes of the same.
const VECTORS: [(Hash, &str, &str); 2] = [
    (
        Hash::Sha256,
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
    (
        Hash::Sha512,
        "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
        "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
    ),
];

fn client(hash: Hash, password: &str) -> ScramClient {
    ScramClient::with_nonce(hash, "user", Secret::new(password), CLIENT_NONCE).unwrap()
}

fn server(hash: Hash, first: &[u8], known: bool) -> ScramServer {
    let salt = STANDARD.decode(SALT).unwrap();
    let credential = derive(hash, &Secret::new("pencil"), &salt, 4_096).unwrap();
    ScramServer::new(hash, ClientFirst::parse(first).unwrap(), credential, known, SERVER_NONCE)
}

#[test]
fn both_sides_write_the_messages_of_the_rfcs_example() {
    for (hash, proof, signature) in VECTORS {
        let mut client = client(hash, "pencil");
        assert_eq!(client.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = server(hash, &client.first(), true);
        assert_eq!(server.challenge(), format!("r={BOTH},s={SALT},i=4096").into_bytes());
        let last = client.step(&server.challenge()).unwrap();
        assert_eq!(last, format!("c=biws,r={BOTH},p={proof}").into_bytes());
        let signed = server.finish(&last).unwrap();
        assert_eq!(signed, format!("v={signature}").into_bytes());
        assert_eq!(client.step(&signed).unwrap(), b"");
        assert!(matches!(client.step(&signed), Err(SaslError::Over(_))));
    }
}

#[test]
fn the_nonce_may_have_the_clients_in_front_twice_as_older_librdkafkas_write_it() {
    let hash = Hash::Sha256;
    let server = server(hash, &client(hash, "pencil").first(), true);
    let salted =
        hash.salted(&Secret::new("pencil"), &STANDARD.decode(SALT).unwrap(), NonZeroU32::new(4_096).unwrap());
    let mut last = ClientFinal::new("n,,", &format!("{CLIENT_NONCE}{BOTH}"));
    let challenge = String::from_utf8(server.challenge()).unwrap();
    let signed = format!("n=user,r={CLIENT_NONCE},{challenge},{}", last.without_proof);
    let key = client_key(hash, &salted);
    last.proof = xor(&key, &hash.hmac(&hash.digest(&key), signed.as_bytes()));
    assert!(server.finish(&last.encode()).is_ok());
}

#[test]
fn a_wrong_password_or_a_made_up_user_never_gets_in() {
    let mut wrong = client(Hash::Sha256, "pencils");
    let known = server(Hash::Sha256, &wrong.first(), true);
    let last = wrong.step(&known.challenge()).unwrap();
    assert!(known.finish(&last).is_err());
    // Not even by the keys of the made-up credential.
    let mut right = client(Hash::Sha256, "pencil");
    let unknown = server(Hash::Sha256, &right.first(), false);
    let last = right.step(&unknown.challenge()).unwrap();
    assert!(unknown.finish(&last).unwrap_err().contains("no such user"));
}

#[test]
fn a_last_message_of_another_login_is_refused() {
    let mut client = client(Hash::Sha256, "pencil");
    let server = server(Hash::Sha256, &client.first(), true);
    let last = client.step(&server.challenge()).unwrap();
    let first = ClientFirst::parse(&client.first()).unwrap();
    let salt = STANDARD.decode(SALT).unwrap();
    let credential = derive(Hash::Sha256, &Secret::new("pencil"), &salt, 4_096).unwrap();
    // The same proof to a broker that has another nonce: overheard, and sent again.
    let later = ScramServer::new(Hash::Sha256, first, credential, true, "another");
    assert_eq!(later.finish(&last), Err("the nonce is not of this login"));
    // The same with the right nonce put in: the proof is of another text.
    let text = String::from_utf8(last).unwrap();
    let mended = text.replace(SERVER_NONCE, "another");
    assert_eq!(later.finish(mended.as_bytes()), Err("the password is wrong"));
    // The header of the first message, changed in between.
    let proof = text.split_once(",p=").unwrap().1;
    let bound = STANDARD.encode("n,a=root,");
    let other = format!("c={bound},r={BOTH},p={proof}");
    assert_eq!(server.finish(other.as_bytes()), Err("its header is not the one of its first message"));
    for short in ["", "AA==", "AAAA"] {
        assert!(server.finish(format!("c=biws,r={BOTH},p={short}").as_bytes()).is_err());
    }
}

#[test]
fn a_client_refuses_a_broker_that_is_not_the_right_one() {
    let refused = |challenge: &str| client(Hash::Sha256, "pencil").step(challenge.as_bytes()).unwrap_err();
    let mechanism = Mechanism::ScramSha256;
    for nonce in ["other", CLIENT_NONCE, "rOprNGfwEbeRWgbNEkq", "x-rOprNGfwEbeRWgbNEkqO"] {
        assert_eq!(refused(&format!("r={nonce},s={SALT},i=4096")), SaslError::Nonce(mechanism), "{nonce}");
    }
    for iterations in ["0", "1", "4095", "1000001", "2147483648", "4294967297", "99999999999999999999999"] {
        let error = refused(&format!("r={BOTH},s={SALT},i={iterations}"));
        assert!(matches!(error, SaslError::Iterations { .. }), "{iterations}: {error}");
    }
    for challenge in [
        "",
        "r=x",
        &format!("r={BOTH},s=?,i=4096"),
        &format!("r={BOTH},s={SALT},i=-1"),
        &format!("m=x,r={BOTH},s={SALT},i=4096"),
        &format!("r={BOTH},s={SALT},i=4096,m=x"),
    ] {
        assert!(matches!(refused(challenge), SaslError::Malformed(..)), "{challenge}");
    }
    let mut asked = client(Hash::Sha256, "pencil");
    asked.step(format!("r={BOTH},s={SALT},i=4096").as_bytes()).unwrap();
    let error = asked.step(b"v=AAAA").unwrap_err();
    assert_eq!(error, SaslError::ServerSignature(mechanism));
    let mut asked = client(Hash::Sha256, "pencil");
    asked.step(format!("r={BOTH},s={SALT},i=4096").as_bytes()).unwrap();
    let error = asked.step(b"e=other-error").unwrap_err();
    assert_eq!(error, SaslError::Refused(mechanism, "other-error".into()));
}

#[test]
fn names_with_commas_and_equals_signs_are_escaped() {
    let first = ClientFirst::new("a=b,c", "nonce");
    assert_eq!(first.encode(), b"n,,n=a=3Db=2Cc,r=nonce");
    assert_eq!(ClientFirst::parse(&first.encode()).unwrap(), first);
    let acting = ClientFirst::parse(b"n,a=al=2Cice,n=al=2Cice,r=x,ext=1").unwrap();
    assert_eq!((acting.authorization_id.as_str(), acting.user.as_str()), ("al,ice", "al,ice"));
    assert_eq!((acting.gs2_header.as_str(), acting.bare.as_str()), ("n,a=al=2Cice,", "n=al=2Cice,r=x,ext=1"));
}

#[test]
fn first_messages_that_kafka_refuses_are_refused() {
    for message in [
        "",
        "n,,",
        "y,,n=user,r=x",
        "p=tls-unique,,n=user,r=x",
        "n,,n=,r=x",
        "n,,n=user",
        "n,,n=user,r=",
        "n,,r=x,n=user",
        "n,,n=us=er,r=x",
        "n,,n=user=2c,r=x",
        "n,b=x,n=user,r=x",
        "n,a=,n=user,r=x",
        "n,,m=must,n=user,r=x",
        "n,,n=user,r=x,m=must",
        "n,,n=user,r=x,tokenauth=true",
        "n,,n=user,r=x,ext",
        "n,,n=user,r=x,",
        "n,,n=us\0er,r=x",
        "n,,n=user,r=a b",
    ] {
        assert!(ClientFirst::parse(message.as_bytes()).is_err(), "{message:?}");
    }
    assert!(ClientFirst::parse(b"n,,n=us\xffer,r=x").is_err());
}

#[test]
fn a_credential_outside_kafkas_bounds_is_refused() {
    let password = Secret::new("pencil");
    for iterations in [i64::MIN, -1, 0, 1, 4_095, 16_385, 1 << 31, 1 << 32, (1 << 32) + 4_096, i64::MAX] {
        let refused = derive(Hash::Sha256, &password, b"salt", iterations);
        assert_eq!(refused.unwrap_err(), CredentialError::Iterations(iterations));
    }
    assert_eq!(derive(Hash::Sha256, &password, b"", 4_096).unwrap_err(), CredentialError::Salt(0));
    let key = vec![0; 32];
    assert!(Credential::stored(Hash::Sha512, vec![1], 4_096, key.clone(), key.clone()).is_err());
    assert!(Credential::stored(Hash::Sha256, vec![1], 4_096, key.clone(), key).is_ok());
}

#[test]
fn a_password_that_the_client_salted_gives_the_same_credential() {
    for hash in Hash::ALL {
        let password = Secret::new("pencil");
        let salted = hash.salted(&password, b"salt", NonZeroU32::new(5_000).unwrap());
        let credential = Credential::from_salted(hash, b"salt".to_vec(), 5_000, &salted).unwrap();
        assert_eq!(credential, derive(hash, &password, b"salt", 5_000).unwrap());
    }
}

#[test]
fn nonces_and_salts_are_never_the_same() {
    assert_ne!(new_nonce().unwrap(), new_nonce().unwrap());
    assert_ne!(new_salt().unwrap(), new_salt().unwrap());
    let nonce = new_nonce().unwrap();
    assert!(nonce.len() == 32 && !nonce.contains(','), "{nonce}");
}

/// Text of SCRAM's own signs, so that parsers come far.
fn alike() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("n,"),
        Just("n=u"),
        Just(","),
        Just("r=x"),
        Just("s=AAAA"),
        Just("i=4096"),
        Just("c=biws"),
        Just("p=AAAA"),
        Just("v="),
        Just("e=no"),
        Just("=2C"),
        Just("=3D"),
        Just("m=x"),
        Just("a=u"),
        Just("\u{e9}"),
        Just("\0"),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn names_are_read_back_as_they_were_written(user in "[^\0]{1,30}") {
        let first = ClientFirst::new(&user, "nonce");
        prop_assert_eq!(ClientFirst::parse(&first.encode()).unwrap().user, user);
    }

    #[test]
    fn random_bytes_of_scram_never_panic(
        bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..200), alike()],
    ) {
        if let Ok(first) = ClientFirst::parse(&bytes) {
            prop_assert_eq!(format!("{}{}", first.gs2_header, first.bare).into_bytes(), bytes.clone());
        }
        if let Ok(last) = ClientFinal::parse(&bytes) {
            prop_assert!(bytes.starts_with(last.without_proof.as_bytes()));
        }
        prop_assert!(ServerFirst::parse(&bytes).is_ok_and(|first| first.text.as_bytes() == bytes) || ServerFirst::parse(&bytes).is_err());
        let _ = ServerFinal::parse(&bytes);
    }
}
