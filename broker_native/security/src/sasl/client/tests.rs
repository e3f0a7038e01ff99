//! A client in front of a broker that lies: its messages are real ones with changes, or of no login at all.
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::sasl::credentials::{Credentials, DECOY_KEY_BYTES, DecoyKey};
use crate::sasl::scram::derive;
use crate::sasl::server::{Exchange, Step};

const NOW_MS: i64 = 1_700_000_000_000;
/// Messages that a broker sends to one client; no mechanism has so many.
const MESSAGES: usize = 5;

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| {
    let password = Secret::new("swordfish");
    let user =
        |hash| ("alice".to_owned(), hash, derive(hash, &password, b"0123456789abcdef", 4_096).unwrap());
    Credentials::of_users(Hash::ALL.map(user), DecoyKey::new([3; DECOY_KEY_BYTES]))
});

fn login(mechanism: Mechanism) -> Login {
    match mechanism {
        Mechanism::OauthBearer => Login::with_token(Secret::new("swordfish"), Vec::new()).unwrap(),
        other => Login::with_password(other, "alice", Secret::new("swordfish")).unwrap(),
    }
}

/// What becomes of a broker's message on its way.
#[derive(Debug, Clone)]
enum Change {
    None,
    Byte(usize, u8),
    Cut(usize),
    Into(usize, Vec<u8>),
    Instead(Vec<u8>),
}

impl Change {
    fn of(&self, message: &[u8]) -> Vec<u8> {
        let mut changed = message.to_vec();
        let at = |at: &usize| at % (message.len() + 1);
        match self {
            Self::None => {}
            Self::Byte(place, byte) => {
                if let Some(old) = changed.get_mut(at(place)) {
                    *old = *byte;
                }
            }
            Self::Cut(place) => changed.truncate(at(place)),
            Self::Into(place, bytes) => {
                changed.splice(at(place)..at(place), bytes.iter().copied());
            }
            Self::Instead(bytes) => changed.clone_from(bytes),
        }
        changed
    }
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = || {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            prop::sample::select(vec![
                ",m=x", ",a=b", "=", ",", "0", "9", "r=x,", "e=no", "v=", "v=AAAA", "\0"
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
        ]
    };
    prop_oneof![
        4 => Just(Change::None),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => any::<usize>().prop_map(Change::Cut),
        1 => (any::<usize>(), bytes()).prop_map(|(at, bytes)| Change::Into(at, bytes)),
        1 => bytes().prop_map(Change::Instead),
    ]
}

proptest! {
    #[test]
    fn mutated_challenges_never_log_a_client_in_without_the_brokers_own_signature(
        mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
        changes in prop::collection::vec(change(), MESSAGES),
    ) {
        let (mut login, mut exchange) = (login(mechanism), Exchange::new(mechanism));
        let mut message = login.step(b"").unwrap();
        let (mut is_honest, mut is_first) = (true, true);
        for change in &changes {
            let (real, is_last) = match exchange.step(&message, &CREDENTIALS, NOW_MS) {
                Step::Challenge(challenge) | Step::Refused { bytes: challenge, .. } => (challenge, false),
                Step::Done { bytes, .. } => (bytes, true),
                Step::Failed(failure) => (failure.sentence(mechanism, false).into_bytes(), false),
            };
            let challenge = change.of(&real);
            let answer = login.step(&challenge);
            if login.is_done() {
                let proof = |bytes: &[u8]| bytes.split(|byte| *byte == b',').next().map(<[u8]>::to_vec);
                match Hash::of(mechanism) {
                    Some(_) => prop_assert!(is_honest && is_last && proof(&challenge) == proof(&real)),
                    None => prop_assert!(is_first && challenge.is_empty()),
                }
            }
            let Ok(next) = answer else { break };
            prop_assert!(next.len() <= 2 * challenge.len() + 300, "{} bytes", next.len());
            is_honest &= challenge == real;
            is_first = false;
            message = next;
        }
    }

    #[test]
    fn random_challenges_never_log_a_client_in_and_their_errors_are_short(
        mechanism in prop::sample::select(Mechanism::ALL.to_vec()),
        challenges in prop::collection::vec(
            prop_oneof![prop::collection::vec(any::<u8>(), 1..2_000), "(r=|s=|i=|e=|v=|m=|,|[ -~]){1,40}".prop_map(String::into_bytes)],
            1..MESSAGES,
        ),
    ) {
        let mut login = login(mechanism);
        login.step(b"").unwrap();
        for challenge in &challenges {
            if let Err(error) = login.step(challenge) {
                let error = error.to_string();
                prop_assert!(error.len() < 6_000 && !error.contains(char::is_control), "{}", error);
            }
            prop_assert!(!login.is_done());
        }
    }
}

#[test]
fn a_broker_that_says_the_password_back_does_not_get_it_into_an_error() {
    for mechanism in Mechanism::ALL {
        let mut login = login(mechanism);
        let mut message = login.step(b"").unwrap();
        if Hash::of(mechanism).is_some() {
            let mut exchange = Exchange::new(mechanism);
            let Step::Challenge(challenge) = exchange.step(&message, &CREDENTIALS, NOW_MS) else {
                panic!("no challenge")
            };
            message = login.step(&challenge).unwrap();
        }
        assert!(!message.is_empty());
        let mut errors = Vec::new();
        for _ in 0..2 {
            errors.extend(login.step(b"e=you said swordfish").err().map(|error| error.to_string()));
        }
        assert!(!errors.is_empty() && !errors.concat().contains("swordfish"), "{errors:?}");
        assert!(!login.said("swordfish").contains("swordfish"));
    }
}
