//! Logins by SASL: who is let in, what is taken before, how a failure is told, and when a login ends.
use std::io::Write;
use std::time::{Duration, Instant};

use pylog_security::protocol::SecurityProtocol;
use pylog_security::sasl::scram::{Hash, derive};
use pylog_security::sasl::{Login, Mechanism};
use pylog_security::secret::Secret;
use pylog_server::listeners::{Listener, ListenerSpec};
use pylog_server::quotas::table::{EntityQuotas, Quota};
use pylog_server::settings::Settings;
use pylog_wire::messages::{
    ApiVersionsRequest, MetadataRequest, SaslAuthenticateRequest, SaslAuthenticateResponse,
    SaslHandshakeRequest, SaslHandshakeResponse,
};
use pylog_wire::{ApiKey, ErrorCode};
use serde_json::json;

use crate::server::support::{Broker, Client, TIMEOUT, frame};

/// A listener with logins and without TLS.
fn listener(mechanisms: &str, max_reauth_ms: i64) -> ListenerSpec {
    let mut spec = ListenerSpec::plaintext("127.0.0.1", 0);
    (spec.name, spec.protocol) = ("INSIDE".into(), SecurityProtocol::SaslPlaintext);
    spec.settings.sasl.sasl_enabled_mechanisms = mechanisms.into();
    spec.settings.sasl.connections_max_reauth_ms = max_reauth_ms;
    spec
}

/// A broker that alice and bob may log in to, each with the own name as the password.
fn broker_with(spec: ListenerSpec, change: impl FnOnce(&mut Settings)) -> Broker {
    let mut settings = Settings::default();
    settings.sasl.connection_failed_authentication_delay_ms = 1;
    change(&mut settings);
    let broker = Broker::listening(spec, settings);
    let encoded = |bytes: &[u8]| {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    };
    let users = ["alice", "bob"].map(|name| {
        let stored = derive(Hash::Sha256, &Secret::new(name), b"salt", 4_096).unwrap();
        json!({
            "user": name, "mechanism": "SCRAM-SHA-256", "salt": encoded(&stored.salt), "iterations": stored.iterations,
            "stored_key": encoded(&stored.stored_key), "server_key": encoded(&stored.server_key),
        })
    });
    let document = json!({"scram": users, "acls": [], "quotas": [], "decoy_key": null});
    broker.server.apply_security(&document.to_string()).unwrap();
    broker
}

fn broker() -> Broker {
    broker_with(listener("SCRAM-SHA-256", 0), |_| ())
}

fn handshake(client: &mut Client, mechanism: &str, version: i16) -> SaslHandshakeResponse {
    client.call(&SaslHandshakeRequest { mechanism: mechanism.into() }, version)
}

fn authenticate(client: &mut Client, token: Vec<u8>) -> SaslAuthenticateResponse {
    client.call(&SaslAuthenticateRequest { auth_bytes: token.into() }, 2)
}

fn scram(user: &str, password: &str) -> Login {
    Login::with_password(Mechanism::ScramSha256, user, Secret::new(password)).unwrap()
}

/// Logs in; the last answer of the broker.
fn log_in(client: &mut Client, user: &str, password: &str) -> SaslAuthenticateResponse {
    assert_eq!(handshake(client, "SCRAM-SHA-256", 1).error_code, 0);
    let mut login = scram(user, password);
    let mut message = login.step(b"").unwrap();
    loop {
        let answer = authenticate(client, message);
        if answer.error_code != 0 {
            return answer;
        }
        message = login.step(&answer.auth_bytes).unwrap();
        if login.is_done() {
            return answer;
        }
    }
}

fn is_served(client: &mut Client) -> bool {
    client.send(&MetadataRequest::default(), 9, 5);
    client.frame().is_some()
}

#[test]
fn who_logs_in_is_served() {
    let broker = broker();
    let mut client = broker.client();
    client.call(&ApiVersionsRequest::default(), 3);
    let done = log_in(&mut client, "alice", "alice");
    assert_eq!((done.error_code, done.session_lifetime_ms), (0, 0));
    assert!(is_served(&mut client) && is_served(&mut client));
    assert_eq!((broker.count("logins"), broker.count("failed_logins")), (1, 0));
}

#[test]
fn the_messages_of_a_login_may_come_in_one_piece() {
    let broker = broker_with(listener("OAUTHBEARER,SCRAM-SHA-256", 0), |_| ());
    let mut client = broker.client();
    let first = scram("alice", "alice").step(b"").unwrap();
    let mut bytes = frame(&ApiVersionsRequest::default(), 3, 1);
    bytes.extend(frame(&SaslHandshakeRequest { mechanism: "SCRAM-SHA-256".into() }, 1, 2));
    bytes.extend(frame(&SaslAuthenticateRequest { auth_bytes: first.into() }, 2, 3));
    client.stream.write_all(&bytes).unwrap();
    client.frame().unwrap();
    let (_, answer) = client.receive::<SaslHandshakeResponse>(1);
    assert_eq!(answer.mechanisms, ["OAUTHBEARER", "SCRAM-SHA-256"]);
    assert_eq!(client.receive::<SaslAuthenticateResponse>(2).0, 3);
}

#[test]
fn nothing_is_served_before_a_login() {
    let broker = broker();
    for code in [ApiKey::Produce, ApiKey::Metadata, ApiKey::SaslAuthenticate, ApiKey::Fetch].map(ApiKey::code)
    {
        let mut client = broker.client();
        // Not even decoded: these bytes are no request.
        let body = [&code.to_be_bytes()[..], &[0; 20]].concat();
        client.stream.write_all(&(body.len() as u32).to_be_bytes()).unwrap();
        client.stream.write_all(&body).unwrap();
        assert_eq!(client.frame(), None, "{code}");
    }
    assert_eq!(broker.count("requests"), 0);
}

#[test]
fn a_large_request_before_a_login_is_refused_by_its_length_and_taken_afterwards() {
    let broker = broker();
    let mut early = broker.client();
    early.stream.write_all(&(64 * 1024 + 1_u32).to_be_bytes()).unwrap();
    assert_eq!(early.frame(), None);
    let mut client = broker.client();
    log_in(&mut client, "alice", "alice");
    let mut large = MetadataRequest { allow_auto_topic_creation: false, ..Default::default() };
    let name = |number: i32| pylog_wire::messages::metadata::MetadataRequestTopic {
        name: Some(format!("{number:0200}")),
        ..Default::default()
    };
    large.topics = Some((0..1_000).map(name).collect());
    assert_eq!(client.call(&large, 9).topics.len(), 1_000);
}

#[test]
fn who_does_not_log_in_in_time_is_closed() {
    let broker =
        broker_with(listener("SCRAM-SHA-256", 0), |settings| settings.sasl.sasl_login_deadline_ms = 300);
    let began = Instant::now();
    let (mut silent, mut slow) = (broker.client(), broker.client());
    handshake(&mut slow, "SCRAM-SHA-256", 1);
    authenticate(&mut slow, scram("alice", "alice").step(b"").unwrap());
    assert_eq!((silent.frame(), slow.frame()), (None, None));
    assert!(began.elapsed() < TIMEOUT / 2);
    // Who is logged in may take its time.
    let mut client = broker.client();
    log_in(&mut client, "alice", "alice");
    while began.elapsed() < Duration::from_millis(1_000) {
        assert!(is_served(&mut client));
    }
}

#[test]
fn who_does_not_log_in_makes_room_for_others_and_a_client_of_another_address_logs_in_meanwhile() {
    const MOST: usize = 100;
    const COUNT: usize = 3_000;
    let mut spec = listener("SCRAM-SHA-256", 0);
    spec.settings.sasl.sasl_login_max_connections = MOST;
    let broker = broker_with(spec, |_| ());
    let mut strangers = Vec::new();
    for number in 0..COUNT {
        let mut stranger = broker.client();
        if number % 2 == 0 {
            // Half a request of as many bytes as may be sent before a login. It may be closed by now.
            let _ = stranger.stream.write_all(&60_000_u32.to_be_bytes());
            let _ = stranger.stream.write_all(&[0; 30_000]);
        }
        strangers.push(stranger);
        if number % 1_000 == 499 {
            let mut client = client_at("127.0.0.2", broker.port);
            log_in(&mut client, "alice", "alice");
            assert!(is_served(&mut client));
        }
    }
    broker.wait_for("refused", (COUNT - MOST) as u64);
    let waiting = strangers.iter_mut().filter_map(|stranger| (!is_closed(stranger)).then_some(()));
    assert_eq!(waiting.count(), MOST, "the others keep file descriptors, and what they sent");
}

/// A client at another address of this machine.
fn client_at(address: &str, port: u16) -> Client {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&format!("{address}:0").parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&std::net::SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    let stream = std::net::TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    Client { stream }
}

/// Whether the broker has closed the connection, which it does at once where it does.
fn is_closed(client: &mut Client) -> bool {
    client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    match std::io::Read::read(&mut client.stream, &mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_failed_login_is_told_after_the_delay_and_the_same_way_whoever_it_was() {
    let delay_ms = 150;
    let broker = broker_with(listener("SCRAM-SHA-256", 0), |settings| {
        settings.sasl.connection_failed_authentication_delay_ms = delay_ms;
    });
    for (user, password) in [("alice", "wrong"), ("mallory", "alice")] {
        let mut client = broker.client();
        let began = Instant::now();
        let failed = log_in(&mut client, user, password);
        assert!(began.elapsed() >= Duration::from_millis(delay_ms));
        assert_eq!(failed.error_code, ErrorCode::SaslAuthenticationFailed.code());
        assert_eq!(
            failed.error_message.unwrap(),
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        );
        assert_eq!(client.frame(), None);
    }
    assert_eq!((broker.count("logins"), broker.count("failed_logins")), (0, 2));
}

#[test]
fn a_mechanism_that_is_not_offered_is_answered_with_those_that_are() {
    let broker = broker_with(listener("PLAIN,SCRAM-SHA-256", 0), |_| ());
    for mechanism in ["PLAIN", "GSSAPI", "SCRAM-SHA-512"] {
        let mut client = broker.client();
        let answer = handshake(&mut client, mechanism, 1);
        assert_eq!(answer.error_code, ErrorCode::UnsupportedSaslMechanism.code());
        // PLAIN would send the password for everybody to read.
        assert_eq!(answer.mechanisms, ["SCRAM-SHA-256"]);
        assert_eq!(client.frame(), None);
    }
}

#[test]
fn a_listener_without_tls_and_with_nothing_but_plain_is_refused() {
    let error = Listener::new(listener("PLAIN", 0)).unwrap_err().to_string();
    assert!(error.contains("SASL_SSL") && error.contains("INSIDE"), "{error}");
}

#[test]
fn messages_without_a_header_follow_a_handshake_of_version_0() {
    let broker = broker();
    let mut client = broker.client();
    assert_eq!(handshake(&mut client, "SCRAM-SHA-256", 0).error_code, 0);
    let mut login = scram("bob", "bob");
    let mut message = login.step(b"").unwrap();
    while !login.is_done() {
        client.stream.write_all(&(message.len() as u32).to_be_bytes()).unwrap();
        client.stream.write_all(&message).unwrap();
        message = login.step(&client.frame().unwrap()).unwrap();
    }
    assert!(is_served(&mut client));
    let mut other = broker.client();
    handshake(&mut other, "SCRAM-SHA-256", 0);
    // Shorter than any request, and no message of the mechanism: closed without an answer.
    other.stream.write_all(&[0, 0, 0, 0]).unwrap();
    assert_eq!(other.frame(), None);
}

#[test]
fn a_login_lasts_as_long_as_it_may_and_is_continued_by_another_one() {
    let broker = broker_with(listener("SCRAM-SHA-256", 1_200), |_| ());
    let mut idle = broker.client();
    assert_eq!(log_in(&mut idle, "alice", "alice").session_lifetime_ms, 1_200);
    let mut client = broker.client();
    log_in(&mut client, "alice", "alice");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1_800) {
        assert_eq!(log_in(&mut client, "alice", "alice").session_lifetime_ms, 1_200);
        // No more than once a second.
        assert_eq!(handshake(&mut client, "SCRAM-SHA-256", 1).error_code, ErrorCode::IllegalSaslState.code());
        let again = Instant::now();
        while again.elapsed() < Duration::from_millis(1_001) {
            assert!(is_served(&mut client));
        }
    }
    assert!(!is_served(&mut idle));
}

#[test]
fn nobody_becomes_another_user_by_logging_in_again() {
    let broker = broker_with(listener("SCRAM-SHA-256,OAUTHBEARER", 60_000), |_| ());
    let mut client = broker.client();
    log_in(&mut client, "alice", "alice");
    let failed = log_in(&mut client, "bob", "bob");
    assert_eq!(failed.error_code, ErrorCode::SaslAuthenticationFailed.code());
    let sentence = failed.error_message.unwrap();
    assert_eq!(sentence, "Cannot change principals during re-authentication from User.alice: User.bob");
    assert_eq!(client.frame(), None);
    let mut client = broker.client();
    log_in(&mut client, "alice", "alice");
    let refused = handshake(&mut client, "OAUTHBEARER", 1);
    assert_eq!(refused.error_code, ErrorCode::UnsupportedSaslMechanism.code());
    assert_eq!(client.frame(), None);
}

#[test]
fn where_there_is_no_login_to_do_its_requests_are_out_of_place() {
    let plain = Broker::start();
    let mut anybody = plain.client();
    let broker = broker();
    let mut alice = broker.client();
    log_in(&mut alice, "alice", "alice");
    for client in [&mut anybody, &mut alice] {
        let answer = handshake(client, "SCRAM-SHA-256", 1);
        assert_eq!((answer.error_code, answer.mechanisms.len()), (ErrorCode::IllegalSaslState.code(), 0));
        assert_eq!(authenticate(client, Vec::new()).error_code, ErrorCode::IllegalSaslState.code());
        assert!(is_served(client));
    }
}

#[test]
fn a_token_that_is_refused_counts_at_once_and_the_client_hears_it_after_its_last_message() {
    let broker = broker_with(listener("OAUTHBEARER", 0), |_| ());
    let mut client = broker.client();
    handshake(&mut client, "OAUTHBEARER", 1);
    let answer = authenticate(&mut client, b"n,,\x01auth=Bearer a.b.c\x01\x01".to_vec());
    let invalid = r#"{"status":"invalid_token"}"#;
    assert_eq!((answer.error_code, answer.auth_bytes.as_ref()), (0, invalid.as_bytes()));
    // Who hangs up now has failed all the same.
    assert_eq!(broker.count("failed_logins"), 1);
    let failed = authenticate(&mut client, vec![1]);
    assert_eq!(failed.error_code, ErrorCode::SaslAuthenticationFailed.code());
    assert_eq!(failed.error_message.unwrap(), invalid);
    assert_eq!(client.frame(), None);
    assert_eq!(broker.count("failed_logins"), 1, "one login failed, once");
}

#[test]
fn who_is_not_logged_in_uses_no_quota() {
    let broker = broker();
    let stored = r#"[{"entity": {"client-id": null}, "values": {"request_percentage": 100}}]"#;
    let quotas = &broker.server.shared().quotas;
    quotas.apply(&serde_json::from_str::<Vec<EntityQuotas>>(stored).unwrap());
    let mut client = broker.client();
    client.call(&ApiVersionsRequest::default(), 3);
    assert_eq!(quotas.clients(Quota::Request), 0, "strangers take the places of clients");
    log_in(&mut client, "alice", "alice");
    assert!(is_served(&mut client));
    assert_eq!(quotas.clients(Quota::Request), 1);
}

#[test]
fn a_stop_does_not_wait_for_who_failed() {
    let broker = broker_with(listener("SCRAM-SHA-256", 0), |settings| {
        settings.sasl.connection_failed_authentication_delay_ms = 60_000;
    });
    let mut client = broker.client();
    handshake(&mut client, "SCRAM-SHA-256", 1);
    client.send(&SaslAuthenticateRequest { auth_bytes: b"nonsense".to_vec().into() }, 2, 1);
    broker.wait_for("failed_logins", 1);
    let began = Instant::now();
    broker.server.close(Duration::from_secs(10)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}
