use rustls::{ProtocolVersion, ServerConnection};

use super::link::*;
use crate::secret::Secret;
use crate::tls::client::{client_config, server_name};
use crate::tls::handshake::{Side, failed};
use crate::tls::principal::{MappingRules, peer_principal};
use crate::tls::server::ServerTls;
use crate::tls::settings::{ClientAuth, TlsSettings};
use crate::tls::throwaway::{Usage, Wanted, self_signed};

fn client(trusted: &str) -> TlsSettings {
    trusting(TlsSettings::default(), trusted)
}

fn versions(settings: TlsSettings, names: &[&str]) -> TlsSettings {
    TlsSettings { enabled_protocols: names.iter().map(|&name| name.to_owned()).collect(), ..settings }
}

#[test]
fn a_client_that_trusts_the_ca_connects_with_both_versions() {
    let ca = authority("ca");
    let issued = ca.issue(&wanted("broker", Usage::Server)).unwrap();
    let broker = broker(&issued);
    let link = connect(&client(ca.certificate()), &broker).unwrap();
    assert_eq!(link.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let old = versions(client(ca.certificate()), &["TLSv1.2"]);
    assert_eq!(connect(&old, &broker).unwrap().client.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    let broker = ServerTls::new(versions(showing(&issued), &["TLSv1.2"]), ClientAuth::None).unwrap();
    let link = connect(&client(ca.certificate()), &broker).unwrap();
    assert_eq!(link.client.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[test]
fn sides_without_a_version_in_common_say_so() {
    let ca = authority("ca");
    let issued = ca.issue(&wanted("broker", Usage::Server)).unwrap();
    let broker = ServerTls::new(versions(showing(&issued), &["TLSv1.2"]), ClientAuth::None).unwrap();
    let failure = connect(&versions(client(ca.certificate()), &["TLSv1.3"]), &broker).unwrap_err();
    assert!(failure.client.contains("ssl.enabled.protocols"), "{failure:?}");
    assert!(failure.broker.contains("no version of TLS in common"), "{failure:?}");
}

/// What a broker says to bytes that a client sends first.
fn answer(bytes: &[u8]) -> String {
    let issued = self_signed(&wanted("broker", Usage::Server)).unwrap();
    let mut connection = ServerConnection::new(broker(&issued).config()).unwrap();
    connection.read_tls(&mut &bytes[..]).unwrap();
    failed("127.0.0.1", Side::Broker, &connection.process_new_packets().unwrap_err()).to_string()
}

#[test]
fn a_client_of_tls_1_1_is_refused() {
    let body = [&[0x03, 0x02][..], &[7; 32], &[0], &[0, 2, 0xc0, 0x14], &[1, 0]].concat();
    let handshake = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    let record = [&[0x16, 0x03, 0x01, 0, handshake.len() as u8][..], &handshake].concat();
    assert!(answer(&record).contains("speaks a TLS of before 1.2"), "{}", answer(&record));
}

#[test]
fn a_client_without_tls_is_told_what_the_listener_speaks() {
    // The first bytes of Kafka's ApiVersions request.
    let said =
        answer(&[0, 0, 0, 20, 0, 18, 0, 3, 0, 0, 0, 1, 0, 4, b't', b'e', b's', b't', 0, 1, b'a', 1, b'b', 0]);
    assert_eq!(
        said,
        "TLS with 127.0.0.1 failed: it does not speak TLS, as this listener demands: set its security.protocol to SSL or SASL_SSL"
    );
}

#[test]
fn a_certificate_of_another_host_is_refused_unless_names_are_not_checked() {
    let ca = authority("ca");
    let other = Wanted { hosts: vec!["other.test".into()], ..wanted(HOST, Usage::Server) };
    let broker = broker(&ca.issue(&other).unwrap());
    let failure = connect(&client(ca.certificate()), &broker).unwrap_err();
    assert!(failure.client.contains("its certificate is not for broker.test, only for"), "{failure:?}");
    assert!(failure.client.contains("other.test"), "{failure:?}");
    let unchecked =
        TlsSettings { endpoint_identification_algorithm: Some(String::new()), ..client(ca.certificate()) };
    connect(&unchecked, &broker).unwrap();
    // The chain is verified all the same.
    let unchecked = trusting(unchecked, authority("another").certificate());
    assert!(connect(&unchecked, &broker).unwrap_err().client.contains("not trusted"));
}

#[test]
fn the_common_name_does_not_count_as_a_host() {
    let ca = authority("ca");
    let broker = broker(&ca.issue(&Wanted { hosts: vec![], ..wanted(HOST, Usage::Server) }).unwrap());
    let failure = connect(&client(ca.certificate()), &broker).unwrap_err();
    assert!(failure.client.contains("the common name does not count"), "{failure:?}");
}

#[test]
fn addresses_are_hosts_too() {
    let ca = authority("ca");
    let broker = broker(&ca.issue(&wanted("broker", Usage::Server)).unwrap());
    let config = client_config(&client(ca.certificate())).unwrap();
    for host in ["127.0.0.1", "::1", "[::1]", "broker.test."] {
        shake(config.clone(), broker.config(), host).unwrap();
    }
    assert!(shake(config, broker.config(), "127.0.0.2").is_err());
    assert!(server_name("no host").is_err() && server_name("").is_err());
}

#[test]
fn certificates_that_cannot_be_trusted_are_refused_with_the_reason() {
    let ca = authority("ca");
    let dates = |not_before, not_after| Wanted { not_before, not_after, ..wanted("broker", Usage::Server) };
    for (issued, client_says, broker_says) in [
        (authority("ca").issue(&wanted("broker", Usage::Server)), "its certificate", "refused"),
        (
            authority("x").issue(&wanted("broker", Usage::Server)),
            "put the certificate of the authority that issued it into",
            "issued it is not in",
        ),
        (
            ca.issue(&dates(now() - DAY, now() - 60)),
            "its certificate expired on 20",
            "has expired, or is not valid yet",
        ),
        (
            ca.issue(&dates(now() + 600, now() + DAY)),
            "is not valid before 20",
            "has expired, or is not valid yet",
        ),
        (
            self_signed(&wanted("broker", Usage::Server)),
            "not trusted",
            "the authority that issued it is not in",
        ),
        (ca.issue(&wanted("broker", Usage::Client)), "extended key usage", "refused"),
    ] {
        let unchecked = TlsSettings {
            endpoint_identification_algorithm: Some(String::new()),
            ..client(ca.certificate())
        };
        let failure = connect(&unchecked, &broker(&issued.unwrap())).unwrap_err();
        assert!(failure.client.contains(client_says), "{client_says}: {failure:?}");
        assert!(failure.broker.contains(broker_says), "{broker_says}: {failure:?}");
    }
}

#[test]
fn a_certificate_that_stands_in_the_trust_store_itself_is_trusted_while_it_is_valid() {
    let own = self_signed(&wanted("broker", Usage::Any)).unwrap();
    connect(&client(&own.certificate), &broker(&own)).unwrap();
    for (wanted, reason) in [
        (Wanted { not_after: now() - 60, ..wanted("broker", Usage::Any) }, "expired"),
        (Wanted { not_before: now() + 600, ..wanted("broker", Usage::Any) }, "not valid before"),
        (wanted("broker", Usage::Client), "extended key usage"),
        (Wanted { hosts: vec!["other.test".into()], ..wanted("broker", Usage::Any) }, "not for broker.test"),
    ] {
        let own = self_signed(&wanted).unwrap();
        let failure = connect(&client(&own.certificate), &broker(&own)).unwrap_err();
        assert!(failure.client.contains(reason), "{reason}: {failure:?}");
    }
}

#[test]
fn a_client_shows_its_certificate_and_the_rules_say_who_it_is() {
    let ca = authority("ca");
    let issued = ca.issue(&wanted("broker", Usage::Both)).unwrap();
    let alice = ca.issue(&wanted("Alice", Usage::Client)).unwrap();
    for names in [&["TLSv1.2"], &["TLSv1.3"]] {
        let broker =
            ServerTls::new(trusting(showing(&issued), ca.certificate()), ClientAuth::Required).unwrap();
        let mutual = versions(trusting(showing(&alice), ca.certificate()), names);
        let link = connect(&mutual, &broker).unwrap();
        let chain = link.broker.peer_certificates().unwrap();
        let principal = |rules: &str| {
            peer_principal(chain, &MappingRules::parse(rules).unwrap()).map(|found| found.to_string())
        };
        assert_eq!(principal("DEFAULT").unwrap(), "User:CN=Alice");
        assert_eq!(principal("RULE:CN=(.*)/$1/L").unwrap(), "User:alice");
        let error = principal("RULE:O=(.*)/$1/").unwrap_err().to_string();
        assert!(error.contains("none of them is for the certificate of CN=Alice"), "{error}");
    }
    assert_eq!(peer_principal(&[], &MappingRules::default()).unwrap().to_string(), "User:ANONYMOUS");
}

#[test]
fn who_shows_no_certificate_is_served_when_one_is_requested_and_refused_when_it_is_required() {
    let ca = authority("ca");
    let settings = trusting(showing(&ca.issue(&wanted("broker", Usage::Server)).unwrap()), ca.certificate());
    let broker = ServerTls::new(settings.clone(), ClientAuth::Requested).unwrap();
    let link = connect(&client(ca.certificate()), &broker).unwrap();
    assert_eq!(link.broker.peer_certificates(), None);
    let broker = ServerTls::new(settings, ClientAuth::Required).unwrap();
    let failure = connect(&client(ca.certificate()), &broker).unwrap_err();
    assert!(failure.client.ends_with("it demands a certificate: set ssl.keystore.location"), "{failure:?}");
    assert!(
        failure.broker.ends_with("it showed no certificate, and ssl.client.auth is required"),
        "{failure:?}"
    );
}

#[test]
fn certificates_of_clients_are_judged_as_those_of_brokers() {
    let ca = authority("ca");
    let settings = trusting(showing(&ca.issue(&wanted("broker", Usage::Server)).unwrap()), ca.certificate());
    for auth in [ClientAuth::Requested, ClientAuth::Required] {
        let broker = ServerTls::new(settings.clone(), auth).unwrap();
        for (issued, client_says, broker_says) in [
            (
                ca.issue(&Wanted { not_after: now() - 60, ..wanted("c", Usage::Client) }),
                "has expired",
                "expired on 20",
            ),
            (
                ca.issue(&Wanted { not_before: now() + 600, ..wanted("c", Usage::Client) }),
                "not valid yet",
                "not valid before 20",
            ),
            (
                authority("x").issue(&wanted("c", Usage::Client)),
                "is not in the broker's trust store",
                "not trusted",
            ),
            (self_signed(&wanted("c", Usage::Client)), "is not in the broker's trust store", "not trusted"),
            (
                ca.issue(&wanted("c", Usage::Server)),
                "refused the certificate of this client",
                "extended key usage",
            ),
        ] {
            let failure =
                connect(&trusting(showing(&issued.unwrap()), ca.certificate()), &broker).unwrap_err();
            assert!(failure.client.contains(client_says), "{client_says}: {failure:?}");
            assert!(failure.broker.contains(broker_says), "{broker_says}: {failure:?}");
        }
    }
}

#[test]
fn a_client_whose_own_certificate_the_broker_trusts_itself_is_let_in() {
    let ca = authority("ca");
    let own = self_signed(&wanted("c", Usage::Any)).unwrap();
    let settings = trusting(showing(&ca.issue(&wanted("broker", Usage::Server)).unwrap()), &own.certificate);
    let broker = ServerTls::new(settings, ClientAuth::Required).unwrap();
    connect(&trusting(showing(&own), ca.certificate()), &broker).unwrap();
}

#[test]
fn settings_that_do_not_fit_together_are_refused_with_what_to_do() {
    let ca = authority("ca");
    let (one, two) =
        (ca.issue(&wanted("a", Usage::Any)).unwrap(), ca.issue(&wanted("b", Usage::Any)).unwrap());
    let secret = |text: &str| Some(Secret::new(text));
    let plain = || trusting(showing(&one), ca.certificate());
    for (settings, part) in [
        (
            TlsSettings { keystore_key: Some(two.key.clone()), ..plain() },
            "does not belong to its first certificate",
        ),
        (TlsSettings { keystore_key: secret(&one.certificate), ..plain() }, "has no private key"),
        (
            TlsSettings { keystore_certificate_chain: Some(one.key.reveal().into()), ..plain() },
            "has no certificate",
        ),
        (TlsSettings { keystore_key: None, ..plain() }, "belong together: set both"),
        (TlsSettings { keystore_password: secret("hunter2"), ..plain() }, "has no password of its own"),
        (TlsSettings { truststore_password: secret("hunter2"), ..plain() }, "has no password of its own"),
        (TlsSettings { keystore_location: Some("/x".into()), ..plain() }, "set one of them only"),
        (TlsSettings { truststore_location: Some("/x".into()), ..plain() }, "exclude each other"),
        (TlsSettings { keystore_type: Some("JKS".into()), ..plain() }, "set ssl.keystore.type to PEM"),
        (TlsSettings { truststore_type: Some("BKS".into()), ..plain() }, "use PEM, JKS or PKCS12"),
        (
            TlsSettings { truststore_certificates: Some("x".into()), ..plain() },
            "is said to be PEM, and is not",
        ),
        (
            TlsSettings { truststore_certificates: Some(one.key.reveal().into()), ..plain() },
            "has no certificate",
        ),
        (
            TlsSettings { keystore_password: secret("hunter2"), ..client(ca.certificate()) },
            "set ssl.keystore.location",
        ),
        (TlsSettings { key_location: Some("/x".into()), ..client(ca.certificate()) }, "set both"),
    ] {
        let error = client_config(&settings).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert!(!error.contains("hunter2") && !error.contains("PRIVATE KEY"), "{error}");
    }
}

#[test]
fn a_whole_pem_file_may_stand_in_one_line() {
    let ca = authority("ca");
    let issued = ca.issue(&wanted("broker", Usage::Server)).unwrap();
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut settings = showing(&issued);
    settings.keystore_key = Some(Secret::new(line(issued.key.reveal())));
    settings.keystore_certificate_chain = Some(line(&issued.certificate));
    let broker = ServerTls::new(settings, ClientAuth::None).unwrap();
    connect(&client(&line(ca.certificate())), &broker).unwrap();
}
