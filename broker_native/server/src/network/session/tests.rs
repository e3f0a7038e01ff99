use pylog_security::sasl::Credentials;
use pylog_security::sasl::credentials::{DECOY_KEY_BYTES, DecoyKey};
use pylog_security::sasl::scram::{Hash, derive};
use pylog_security::secret::Secret;

use super::*;

fn request(key: ApiKey, version: i16) -> Vec<u8> {
    [&key.code().to_be_bytes()[..], &version.to_be_bytes(), &[0; 6]].concat()
}

fn session(mechanisms: &[Mechanism], max_reauth_ms: i64) -> Session {
    Session::begun(Arc::new(LoginRules { mechanisms: mechanisms.to_vec(), max_reauth_ms }))
}

fn credentials() -> Credentials {
    let users = ["alice", "bob"].map(|name| {
        (name.to_owned(), Hash::Sha256, derive(Hash::Sha256, &Secret::new(name), b"salt", 4_096).unwrap())
    });
    Credentials::of_users(users, DecoyKey::new([1; DECOY_KEY_BYTES]))
}

/// Logs in by PLAIN, with the name as the password; what comes of it.
fn log_in(session: &mut Session, user: &str, password: &str, now_ms: i64) -> Turn {
    assert_eq!(session.next(&request(ApiKey::SaslHandshake, 1), now_ms), Next::Handshake);
    session.handshake(1, "PLAIN").unwrap();
    assert_eq!(session.next(&request(ApiKey::SaslAuthenticate, 2), now_ms), Next::Authenticate);
    let mut exchange = session.exchange().unwrap();
    let step = exchange.step(format!("\0{user}\0{password}").as_bytes(), &credentials(), 0);
    session.stepped(exchange, step, now_ms)
}

#[test]
fn without_sasl_all_is_served() {
    let mut session = Session::open();
    assert!(!session.is_before_login() && session.principal().is_none());
    for key in [ApiKey::Produce, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate] {
        assert_eq!(session.next(&request(key, 0), 0), Next::Serve);
    }
}

#[test]
fn before_a_login_nothing_but_three_requests_is_taken_each_in_its_turn() {
    let mut session = session(&[Mechanism::Plain], 0);
    for code in (-1..=200).filter(|code| ![17, 18].contains(code)) {
        let request = [&i16::to_be_bytes(code)[..], &[0; 8]].concat();
        assert!(matches!(session.next(&request, 0), Next::Refuse(_)), "{code}");
    }
    assert!(matches!(session.next(b"", 0), Next::Refuse(_)));
    assert!(matches!(session.next(&request(ApiKey::SaslHandshake, 2), 0), Next::Refuse(_)));
    // A version that is too new is answered, and asked again in another one; after that no more.
    for _ in 0..2 {
        assert_eq!(session.next(&request(ApiKey::ApiVersions, 99), 0), Next::Serve);
    }
    assert_eq!(session.next(&request(ApiKey::ApiVersions, 3), 0), Next::Serve);
    assert!(matches!(session.next(&request(ApiKey::ApiVersions, 3), 0), Next::Refuse(_)));
    assert_eq!(session.next(&request(ApiKey::SaslHandshake, 1), 0), Next::Handshake);
    session.handshake(1, "PLAIN").unwrap();
    for key in [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::Metadata] {
        assert!(matches!(session.next(&request(key, 0), 0), Next::Refuse(_)), "{key:?}");
    }
    assert!(session.is_before_login());
}

#[test]
fn a_login_opens_the_connection_for_its_principal() {
    let mut session = session(&[Mechanism::Plain], 0);
    let turn = log_in(&mut session, "alice", "alice", 0);
    assert_eq!(turn, Turn::LoggedIn { bytes: Vec::new(), lifetime_ms: 0 });
    assert_eq!(session.principal().unwrap().to_string(), "User:alice");
    assert!(!session.is_before_login());
    for key in [ApiKey::Produce, ApiKey::SaslAuthenticate, ApiKey::SaslHandshake] {
        // The latter two are answered ILLEGAL_SASL_STATE: this session has no end.
        assert_eq!(session.next(&request(key, 0), i64::MAX / 2), Next::Serve, "{key:?}");
    }
}

#[test]
fn a_failed_login_ends_the_connection_and_opens_nothing() {
    let mut session = session(&[Mechanism::Plain], 0);
    let Turn::Failed { sentence, .. } = log_in(&mut session, "alice", "bob", 0) else { panic!("logged in") };
    assert_eq!(sentence, "Authentication failed: Invalid username or password");
    for key in [ApiKey::SaslHandshake, ApiKey::SaslAuthenticate, ApiKey::ApiVersions, ApiKey::Metadata] {
        assert!(matches!(session.next(&request(key, 0), 0), Next::Refuse(_)), "{key:?}");
    }
    assert!(session.principal().is_none());
}

#[test]
fn only_the_mechanisms_of_the_listener_are_offered() {
    for name in ["PLAIN", "GSSAPI", "scram-sha-256", "", "\n"] {
        let mut session = session(&[Mechanism::ScramSha256], 0);
        let (error, cause) = session.handshake(1, name).unwrap_err();
        assert_eq!(error, ErrorCode::UnsupportedSaslMechanism);
        assert!(!cause.contains('\n'), "{cause}");
        assert!(matches!(session.next(&request(ApiKey::SaslHandshake, 1), 0), Next::Refuse(_)));
    }
}

#[test]
fn after_a_handshake_of_version_0_messages_have_no_header() {
    let mut session = session(&[Mechanism::Plain], 0);
    session.handshake(0, "PLAIN").unwrap();
    assert!(session.is_raw());
    assert_eq!(session.next(b"", 0), Next::Token);
    let mut exchange = session.exchange().unwrap();
    let step = exchange.step(b"\0alice\0alice", &credentials(), 0);
    assert!(matches!(session.stepped(exchange, step, 0), Turn::LoggedIn { .. }));
    assert!(!session.is_raw());
    assert_eq!(session.next(&request(ApiKey::Metadata, 1), 0), Next::Serve);
}

#[test]
fn a_session_with_an_end_is_continued_by_another_login_of_the_same_user() {
    let mut session = session(&[Mechanism::Plain], 10_000);
    let turn = log_in(&mut session, "alice", "alice", 0);
    assert_eq!(turn, Turn::LoggedIn { bytes: Vec::new(), lifetime_ms: 10_000 });
    assert_eq!(session.next(&request(ApiKey::Metadata, 1), 10_000), Next::Serve);
    let Next::Refuse(why) = session.next(&request(ApiKey::Metadata, 1), 10_001) else { panic!("served") };
    assert!(why.contains("connections.max.reauth.ms"), "{why}");
    // Also afterwards, and then it goes on; but not twice in a second.
    assert!(matches!(log_in(&mut session, "alice", "alice", 11_000), Turn::LoggedIn { .. }));
    assert_eq!(session.next(&request(ApiKey::Metadata, 1), 21_000), Next::Serve);
    assert_eq!(session.next(&request(ApiKey::SaslHandshake, 1), 11_999), Next::Serve);
    assert!(matches!(log_in(&mut session, "alice", "alice", 12_000), Turn::LoggedIn { .. }));
}

#[test]
fn nobody_becomes_another_user_or_changes_the_mechanism() {
    let mut changed = session(&[Mechanism::Plain, Mechanism::ScramSha256], 10_000);
    log_in(&mut changed, "alice", "alice", 0);
    let Turn::Failed { sentence, .. } = log_in(&mut changed, "bob", "bob", 5_000) else {
        panic!("became bob")
    };
    assert_eq!(sentence, "Cannot change principals during re-authentication from User.alice: User.bob");
    assert_eq!(changed.principal().unwrap().name(), "alice");
    assert!(matches!(changed.next(&request(ApiKey::Metadata, 1), 5_000), Next::Refuse(_)));

    let mut session = session(&[Mechanism::Plain, Mechanism::ScramSha256], 10_000);
    log_in(&mut session, "alice", "alice", 0);
    assert_eq!(session.next(&request(ApiKey::SaslHandshake, 1), 5_000), Next::Handshake);
    assert!(session.handshake(1, "SCRAM-SHA-256").is_err());
    assert!(matches!(session.next(&request(ApiKey::Metadata, 1), 5_000), Next::Refuse(_)));
}

#[test]
fn nothing_is_served_in_the_middle_of_another_login() {
    let mut session = session(&[Mechanism::Plain], 10_000);
    log_in(&mut session, "alice", "alice", 0);
    assert_eq!(session.next(&request(ApiKey::SaslHandshake, 1), 2_000), Next::Handshake);
    session.handshake(1, "PLAIN").unwrap();
    assert!(matches!(session.next(&request(ApiKey::Metadata, 1), 2_000), Next::Refuse(_)));
}

#[test]
fn a_session_ends_with_the_token_or_the_setting_whichever_is_sooner() {
    for (token_ms, most_ms, expected_ms) in
        [(Some(500), 1_000, 500), (Some(2_000), 1_000, 1_000), (Some(500), 0, 500), (None, 0, 0)]
    {
        let mut session = session(&[Mechanism::OauthBearer], most_ms);
        session.handshake(1, "OAUTHBEARER").unwrap();
        let exchange = session.exchange().unwrap();
        let step = Step::Done { principal: Principal::user("a"), bytes: Vec::new(), lifetime_ms: token_ms };
        let turn = session.stepped(exchange, step, 7);
        assert_eq!(turn, Turn::LoggedIn { bytes: Vec::new(), lifetime_ms: expected_ms });
    }
}
