use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::sasl::SaslError;
use crate::sasl::client::Login;
use crate::sasl::credentials::{DECOY_KEY_BYTES, DecoyKey};
use crate::sasl::scram::derive;
use crate::secret::Secret;

const NOW_MS: i64 = 1_700_000_000_000;

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(credentials);

fn credentials() -> Credentials {
    let password = Secret::new("swordfish");
    let users = Hash::ALL
        .map(|hash| ("alice".to_owned(), hash, derive(hash, &password, b"0123456789abcdef", 4_096).unwrap()));
    Credentials::of_users(users, DecoyKey::new([3; DECOY_KEY_BYTES]))
}

/// Plays both sides until one has an end.
fn play(login: &mut Login, exchange: &mut Exchange, credentials: &Credentials) -> Result<Step, SaslError> {
    let mut message = login.step(b"")?;
    loop {
        match exchange.step(&message, credentials, NOW_MS) {
            Step::Challenge(challenge) | Step::Refused { bytes: challenge, .. } => {
                message = login.step(&challenge)?;
            }
            Step::Done { principal, bytes, lifetime_ms } => {
                login.step(&bytes)?;
                assert!(login.is_done());
                return Ok(Step::Done { principal, bytes, lifetime_ms });
            }
            failed => return Ok(failed),
        }
    }
}

fn with_password(mechanism: Mechanism, user: &str, password: &str) -> Step {
    let mut login = Login::with_password(mechanism, user, Secret::new(password)).unwrap();
    play(&mut login, &mut Exchange::new(mechanism), &credentials()).unwrap()
}

fn failure(step: Step) -> Failure {
    match step {
        Step::Failed(failure) => failure,
        step => panic!("{step:?}"),
    }
}

const BY_PASSWORD: [Mechanism; 3] = [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512];

#[test]
fn who_knows_the_password_is_logged_in_by_each_mechanism() {
    for mechanism in BY_PASSWORD {
        let done = with_password(mechanism, "alice", "swordfish");
        let Step::Done { principal, lifetime_ms, .. } = done else { panic!("{mechanism}: {done:?}") };
        assert_eq!((principal.to_string().as_str(), lifetime_ms), ("User:alice", None));
    }
}

#[test]
fn an_unknown_user_and_a_wrong_password_get_the_same_sentence() {
    for mechanism in BY_PASSWORD {
        let wrong = failure(with_password(mechanism, "alice", "swordfisch"));
        let unknown = failure(with_password(mechanism, "mallory", "swordfish"));
        for again in [false, true] {
            assert_eq!(wrong.sentence(mechanism, again), unknown.sentence(mechanism, again));
        }
        assert!(!format!("{wrong:?}{unknown:?}").contains("swordfi"));
    }
    let wrong = failure(with_password(Mechanism::ScramSha512, "alice", "x"));
    assert_eq!(
        wrong.sentence(Mechanism::ScramSha512, false),
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
    );
    let wrong = failure(with_password(Mechanism::Plain, "alice", "x"));
    assert_eq!(wrong.sentence(Mechanism::Plain, true), "Authentication failed: Invalid username or password");
}

#[test]
fn nobody_acts_as_another_user() {
    let sentence =
        "Authentication failed: Client requested an authorization id that is different from username";
    let messages: [(Mechanism, &[u8]); 2] = [
        (Mechanism::Plain, b"root\0alice\0swordfish"),
        (Mechanism::ScramSha256, b"n,a=root,n=alice,r=nonce"),
    ];
    for (mechanism, message) in messages {
        let failed = failure(Exchange::new(mechanism).step(message, &credentials(), NOW_MS));
        assert_eq!(failed.sentence(mechanism, false), sentence);
        assert!(failed.cause.as_deref().is_some_and(|cause| cause.contains("root")), "{failed:?}");
    }
    let mut itself = Exchange::new(Mechanism::Plain);
    let done = itself.step(b"alice\0alice\0swordfish", &credentials(), NOW_MS);
    assert!(matches!(done, Step::Done { .. }));
}

#[test]
fn an_exchange_that_is_over_stays_over() {
    let credentials = credentials();
    for message in [&b"\0alice\0wrong"[..], b"\0alice\0swordfish"] {
        let mut exchange = Exchange::new(Mechanism::Plain);
        exchange.step(message, &credentials, NOW_MS);
        failure(exchange.step(b"\0alice\0swordfish", &credentials, NOW_MS));
    }
    // A proof that is sent twice.
    let mut login = Login::with_password(Mechanism::ScramSha256, "alice", Secret::new("swordfish")).unwrap();
    let mut exchange = Exchange::new(Mechanism::ScramSha256);
    let first = login.step(b"").unwrap();
    let Step::Challenge(challenge) = exchange.step(&first, &credentials, NOW_MS) else {
        panic!("no challenge")
    };
    let proof = login.step(&challenge).unwrap();
    assert!(matches!(exchange.step(&proof, &credentials, NOW_MS), Step::Done { .. }));
    failure(exchange.step(&proof, &credentials, NOW_MS));
    let mut another = Exchange::new(Mechanism::ScramSha256);
    another.step(&first, &credentials, NOW_MS);
    failure(another.step(&proof, &credentials, NOW_MS));
}

#[test]
fn a_token_without_keys_to_check_it_is_refused_as_kafka_refuses_tokens() {
    let mut login = Login::with_token(Secret::new("a.b.c"), Vec::new()).unwrap();
    let mut exchange = Exchange::new(Mechanism::OauthBearer);
    let refused = exchange.step(&login.step(b"").unwrap(), &credentials(), NOW_MS);
    let Step::Refused { bytes, cause } = refused else { panic!("{refused:?}") };
    assert!(cause.contains("jwks"), "{cause}");
    let failed = failure(exchange.step(&login.step(&bytes).unwrap(), &credentials(), NOW_MS));
    assert_eq!(failed.sentence(Mechanism::OauthBearer, false), r#"{"status":"invalid_token"}"#);
    // It was said when the token came.
    assert_eq!(failed.cause, None);
    assert!(!login.is_done());
}

#[test]
fn names_in_causes_are_escaped() {
    let failed = failure(Exchange::new(Mechanism::Plain).step(b"\0a\nINFO b\0x", &credentials(), NOW_MS));
    assert!(failed.cause.as_deref().is_some_and(|cause| !cause.contains('\n')), "{failed:?}");
}

/// A client's message: of random bytes, or of the form of one that there is. None has the password.
fn message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..100),
        "\\PC{0,8}\0(alice|mallory|)\0\\PC{0,12}".prop_map(String::into_bytes),
        "n,(a=(alice|root))?,n=(alice|mallory),r=[!-+--~]{0,24}(,[a-z]=[a-z]{0,4})?"
            .prop_map(String::into_bytes),
        "c=(biws|[A-Za-z0-9+/]{0,8}),r=[!-+--~]{0,60},p=[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="
            .prop_map(String::into_bytes),
        "n,(a=alice)?,\u{1}auth=Bearer [-._~+/a-zA-Z0-9]{0,40}\u{1}(\\w{0,4}=\\w{0,4}\u{1})?\u{1}"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn random_messages_never_log_in_and_never_panic(
        messages in proptest::collection::vec(message(), 1..4),
        mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
    ) {
        let mut exchange = Exchange::new(mechanism);
        for message in &messages {
            let step = exchange.step(message, &CREDENTIALS, NOW_MS);
            let cause = match &step {
                Step::Failed(Failure { cause: Some(cause), .. }) | Step::Refused { cause, .. } => cause,
                _ => "",
            };
            prop_assert!(!cause.contains(char::is_control), "{cause}");
            let is_in = matches!(step, Step::Done { .. });
            prop_assert!(!is_in);
        }
    }

    #[test]
    fn mutated_proofs_never_log_in(
        hash in prop::sample::select(Hash::ALL.to_vec()),
        at in any::<usize>(),
        byte in any::<u8>(),
    ) {
        let mechanism = hash.mechanism();
        let mut login = Login::with_password(mechanism, "alice", Secret::new("swordfish")).unwrap();
        let mut exchange = Exchange::new(mechanism);
        let Step::Challenge(challenge) = exchange.step(&login.step(b"").unwrap(), &CREDENTIALS, NOW_MS) else {
            panic!("no challenge")
        };
        let mut proof = login.step(&challenge).unwrap();
        let at = at % proof.len();
        let is_whole = proof[at] == byte;
        proof[at] = byte;
        let is_in = matches!(exchange.step(&proof, &CREDENTIALS, NOW_MS), Step::Done { .. });
        prop_assert_eq!(is_in, is_whole);
    }
}
