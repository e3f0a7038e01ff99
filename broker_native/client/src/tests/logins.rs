//! Logins of one connection, against a broker that answers as told: when they happen, and what their failure means.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fake::{Answer, Asked, FakeBroker, metadata};
use crate::config::Settings;
use crate::net::connection::Connection;
use crate::net::stop::Stop;
use pylog_wire::AnyRequest;
use pylog_wire::messages::{MetadataRequest, SaslAuthenticateResponse, SaslHandshakeResponse};

const PLAIN: [(&str, &str); 4] = [
    ("security.protocol", "SASL_PLAINTEXT"),
    ("sasl.mechanism", "PLAIN"),
    ("sasl.username", "alice"),
    ("sasl.password", "swordfish"),
];

/// A broker whose logins last `lifetime_ms`, and how many there were.
fn broker(lifetime_ms: i64) -> (FakeBroker, Arc<AtomicUsize>) {
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = logins.clone();
    let broker = FakeBroker::start(move |asked| match &asked.request {
        AnyRequest::SaslHandshake(request) => {
            assert_eq!((asked.header.api_version, request.mechanism.as_str()), (1, "PLAIN"));
            asked.answer(&SaslHandshakeResponse { mechanisms: vec!["PLAIN".into()], ..Default::default() })
        }
        AnyRequest::SaslAuthenticate(request) => {
            assert_eq!(&request.auth_bytes[..], b"\0alice\0swordfish");
            counted.fetch_add(1, Ordering::SeqCst);
            asked.answer(&SaslAuthenticateResponse { session_lifetime_ms: lifetime_ms, ..Default::default() })
        }
        _ if counted.load(Ordering::SeqCst) == 0 => None,
        AnyRequest::Metadata(_) => asked.answer(&metadata(asked.header.correlation_id as u16)),
        _ => None,
    });
    (broker, logins)
}

fn connect(broker: &FakeBroker) -> crate::error::Result<Connection> {
    Connection::open("127.0.0.1", broker.port, &settings(broker), &Stop::default())
}

fn settings(broker: &FakeBroker) -> Settings {
    broker.settings(&PLAIN)
}

#[test]
fn a_login_comes_before_the_first_request_and_is_not_repeated_where_it_does_not_end() {
    let (broker, logins) = broker(0);
    let mut connection = connect(&broker).unwrap();
    for _ in 0..3 {
        connection.call(&MetadataRequest::default()).unwrap();
    }
    assert_eq!(logins.load(Ordering::SeqCst), 1);
}

#[test]
fn a_login_that_ends_is_repeated_between_requests_and_no_answer_is_lost_or_out_of_order() {
    let (broker, logins) = broker(200);
    let mut connection = connect(&broker).unwrap();
    let first: Vec<_> = (0..3).map(|_| connection.send(&MetadataRequest::default()).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(200));
    let last = connection.send(&MetadataRequest::default()).unwrap();
    assert_eq!(logins.load(Ordering::SeqCst), 2);
    assert!(connection.has_waiting());
    let ports: Vec<i32> = first
        .into_iter()
        .chain([last])
        .map(|sent| connection.receive::<MetadataRequest>(sent).unwrap().brokers[0].port)
        .collect();
    assert!(ports.is_sorted() && ports.windows(2).all(|pair| pair[0] < pair[1]), "{ports:?}");
    assert!(!connection.has_waiting());
}

#[test]
fn a_refused_login_is_final_and_says_what_the_broker_said() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let answer = move |asked: &Asked| -> Answer {
        match &asked.request {
            AnyRequest::SaslHandshake(_) => asked.answer(&SaslHandshakeResponse::default()),
            _ => {
                counted.fetch_add(1, Ordering::SeqCst);
                let error_message = Some("Authentication failed: Invalid username or password".into());
                asked.answer(&SaslAuthenticateResponse {
                    error_code: 58,
                    error_message,
                    ..Default::default()
                })
            }
        }
    };
    let broker = FakeBroker::start(answer);
    let mut cluster = broker.cluster(&[&PLAIN[..], &[("default.api.timeout.ms", "60000")]].concat());
    let error = cluster.metadata(None, false).unwrap_err();
    assert_eq!((error.kind, error.retriable), ("SASL_AUTHENTICATION_FAILED", false));
    assert!(error.message.contains("Invalid username or password"), "{}", error.message);
    assert!(error.message.contains("as user \"alice\" by PLAIN"), "{}", error.message);
    assert!(!error.message.contains("swordfish"));
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
}

#[test]
fn a_mechanism_that_the_broker_does_not_take_is_refused_with_those_that_it_takes() {
    let broker = FakeBroker::start(|asked| {
        let mechanisms = vec!["SCRAM-SHA-512".into(), "OAUTHBEARER".into()];
        asked.answer(&SaslHandshakeResponse { error_code: 33, mechanisms })
    });
    let error = connect(&broker).unwrap_err();
    assert_eq!((error.kind, error.retriable), ("UNSUPPORTED_SASL_MECHANISM", false));
    assert!(error.message.contains("SCRAM-SHA-512, OAUTHBEARER"), "{}", error.message);
}

/// Words that begin a line, move a cursor, and go on for long.
const FORGED: &str = "no\r\n[2026-01-01] ERROR forged\u{1b}[2J\u{202e}";

fn assert_harmless(message: &str) {
    assert!(message.len() < 5_000, "{} bytes", message.len());
    assert!(
        !message.contains(['\r', '\n', '\u{1b}', '\u{202e}']) && !message.contains("swordfish"),
        "{message}"
    );
}

#[test]
fn what_a_hostile_broker_says_of_a_login_is_escaped_and_cut_and_never_has_the_password_in_it() {
    for words in [FORGED.repeat(700), "you said alice and swordfish".to_owned()] {
        let said = words.clone();
        let broker = FakeBroker::start(move |asked| match &asked.request {
            AnyRequest::SaslHandshake(_) => asked.answer(&SaslHandshakeResponse::default()),
            _ => asked.answer(&SaslAuthenticateResponse {
                error_code: 58,
                error_message: Some(said.clone()),
                ..Default::default()
            }),
        });
        let error = connect(&broker).unwrap_err();
        assert!(error.message.contains("refused the login as user \"alice\""), "{}", error.message);
        assert_harmless(&error.message);
        let broker = FakeBroker::start(move |asked| {
            let mechanisms = vec![words.clone(); 20];
            asked.answer(&SaslHandshakeResponse { error_code: 33, mechanisms })
        });
        let error = connect(&broker).unwrap_err();
        assert_eq!(error.kind, "UNSUPPORTED_SASL_MECHANISM");
        assert_harmless(&error.message);
    }
}
