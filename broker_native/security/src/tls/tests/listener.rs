use std::fs;
use std::path::Path;

use rustls::HandshakeKind;

use super::link::*;
use crate::tls::client::client_config;
use crate::tls::server::ServerTls;
use crate::tls::settings::{ClientAuth, TlsSettings};
use crate::tls::throwaway::{Authority, Issued, Usage};

fn write(folder: &Path, issued: &Issued, ca: &Authority) {
    fs::write(folder.join("broker.pem"), format!("{}{}", issued.key.reveal(), issued.certificate)).unwrap();
    fs::write(folder.join("ca.pem"), ca.certificate()).unwrap();
}

fn listener(folder: &Path, auth: ClientAuth) -> ServerTls {
    let path = |name: &str| Some(folder.join(name).to_str().unwrap().to_owned());
    let settings = TlsSettings {
        keystore_location: path("broker.pem"),
        truststore_location: path("ca.pem"),
        ..Default::default()
    };
    ServerTls::new(settings, auth).unwrap()
}

fn client(ca: &Authority) -> TlsSettings {
    trusting(TlsSettings::default(), ca.certificate())
}

#[test]
fn a_new_certificate_is_for_new_connections_and_open_ones_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (authority("old"), authority("new"));
    write(folder.path(), &old.issue(&wanted("one", Usage::Server)).unwrap(), &old);
    let broker = listener(folder.path(), ClientAuth::None);
    assert_eq!(broker.certificate().subject, "CN=one");
    let mut open = connect(&client(&old), &broker).unwrap();
    assert!(!broker.files_changed());
    write(folder.path(), &new.issue(&wanted("two", Usage::Server)).unwrap(), &new);
    assert!(broker.files_changed());
    assert_eq!(broker.reload().unwrap().subject, "CN=two");
    assert!(!broker.files_changed());
    connect(&client(&new), &broker).unwrap();
    assert!(connect(&client(&old), &broker).is_err());
    std::io::Write::write_all(&mut open.client.writer(), b"still here").unwrap();
    let mut bytes = Vec::new();
    open.client.write_tls(&mut bytes).unwrap();
    open.broker.read_tls(&mut &bytes[..]).unwrap();
    assert_eq!(open.broker.process_new_packets().unwrap().plaintext_bytes_to_read(), 10);
}

#[test]
fn a_certificate_that_cannot_be_used_is_said_once_and_the_old_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let ca = authority("ca");
    let (one, two) =
        (ca.issue(&wanted("one", Usage::Server)).unwrap(), ca.issue(&wanted("two", Usage::Server)).unwrap());
    write(folder.path(), &one, &ca);
    let broker = listener(folder.path(), ClientAuth::None);
    let half = Issued { certificate: two.certificate.clone(), key: one.key.clone() };
    write(folder.path(), &half, &ca);
    assert!(broker.files_changed());
    let error = broker.reload().unwrap_err().to_string();
    assert!(error.contains("broker.pem (ssl.keystore.location) does not belong"), "{error}");
    // Nothing to try again before a file changes.
    assert!(!broker.files_changed());
    assert_eq!(broker.certificate().subject, "CN=one");
    connect(&client(&ca), &broker).unwrap();
    fs::remove_file(folder.path().join("broker.pem")).unwrap();
    assert!(broker.files_changed());
    assert!(broker.reload().unwrap_err().to_string().contains("there is no such file"));
    connect(&client(&ca), &broker).unwrap();
    write(folder.path(), &two, &ca);
    assert!(broker.files_changed());
    assert_eq!(broker.reload().unwrap().subject, "CN=two");
}

#[test]
fn a_ca_that_leaves_the_trust_store_lets_nobody_in_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, other) = (authority("ca"), authority("other"));
    let issued = ca.issue(&wanted("broker", Usage::Server)).unwrap();
    write(folder.path(), &issued, &ca);
    let broker = listener(folder.path(), ClientAuth::Required);
    let alice = client_config(&trusting(
        showing(&ca.issue(&wanted("alice", Usage::Client)).unwrap()),
        ca.certificate(),
    ))
    .unwrap();
    let kind = |broker: &ServerTls| {
        shake(alice.clone(), broker.config(), HOST).map(|link| link.client.handshake_kind())
    };
    // Never resumed: each handshake judges the certificate.
    assert_eq!(kind(&broker).unwrap(), Some(HandshakeKind::Full));
    assert_eq!(kind(&broker).unwrap(), Some(HandshakeKind::Full));
    write(folder.path(), &issued, &other);
    broker.reload().unwrap();
    assert!(kind(&broker).is_err());
}

#[test]
fn sessions_without_certificates_of_clients_are_resumed_until_the_files_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let ca = authority("ca");
    write(folder.path(), &ca.issue(&wanted("broker", Usage::Server)).unwrap(), &ca);
    let broker = listener(folder.path(), ClientAuth::None);
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let settings = TlsSettings { enabled_protocols: vec![protocol.into()], ..client(&ca) };
        let config = client_config(&settings).unwrap();
        let kind = || shake(config.clone(), broker.config(), HOST).unwrap().client.handshake_kind();
        assert_eq!(kind(), Some(HandshakeKind::Full));
        assert_eq!(kind(), Some(HandshakeKind::Resumed));
        broker.reload().unwrap();
        assert_eq!(kind(), Some(HandshakeKind::Full));
    }
}

#[test]
fn a_listener_without_a_certificate_or_without_roots_for_its_clients_is_refused() {
    let error = ServerTls::new(TlsSettings::default(), ClientAuth::None).unwrap_err().to_string();
    assert!(error.contains("set ssl.keystore.location"), "{error}");
    let issued = authority("ca").issue(&wanted("broker", Usage::Server)).unwrap();
    let error = ServerTls::new(showing(&issued), ClientAuth::Requested).unwrap_err().to_string();
    assert!(error.contains("ssl.truststore.location"), "{error}");
}

#[test]
fn a_line_of_the_log_can_say_whose_certificate_it_is_and_until_when() {
    let issued = authority("ca").issue(&wanted("broker", Usage::Server)).unwrap();
    let certificate = broker(&issued).certificate();
    let line = certificate.to_string();
    assert!(
        line.starts_with("CN=broker, issued by CN=ca, for broker.test, 127.0.0.1, ::1, valid from 20"),
        "{line}"
    );
    assert_eq!(certificate.invalid_at(now()), None);
    assert!(certificate.invalid_at(now() + 2 * DAY).unwrap().contains("expired on 20"));
    assert!(certificate.invalid_at(now() - 2 * DAY).unwrap().contains("is not valid before 20"));
}
