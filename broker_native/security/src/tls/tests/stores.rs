//! Real stores of keytool and OpenSSL: ../../../tests/fixtures, made by make_stores.py there.
use std::path::{Path, PathBuf};

use super::link::HOST;
use crate::secret::Secret;
use crate::tls::client::{client_config, server_name};
use crate::tls::error::TlsError;
use crate::tls::files::Files;
use crate::tls::material::{Identity, Trust};
use crate::tls::server::ServerTls;
use crate::tls::settings::{ClientAuth, TlsSettings};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

fn path(name: &str) -> Option<String> {
    Some(fixture(name).to_str().unwrap().to_owned())
}

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text))
}

fn key_store(name: &str) -> TlsSettings {
    TlsSettings { keystore_location: path(name), keystore_password: secret("changeit"), ..Default::default() }
}

fn trust_store(name: &str) -> TlsSettings {
    TlsSettings {
        truststore_location: path(name),
        truststore_password: secret("changeit"),
        ..Default::default()
    }
}

fn identity(settings: &TlsSettings) -> Result<Identity, TlsError> {
    Identity::read(settings, &mut Files::new()).map(Option::unwrap)
}

fn identity_error(settings: &TlsSettings) -> String {
    identity(settings).unwrap_err().to_string()
}

fn trusted(settings: &TlsSettings) -> Result<usize, TlsError> {
    Trust::read(settings, &mut Files::new()).map(|trust| trust.unwrap().roots().len())
}

#[test]
fn key_stores_of_keytool_are_read() {
    for name in ["java17-ec.jks", "java17-rsa.jks", "java17.p12", "java17-legacy.p12", "java17-ed25519.p12"] {
        let settings = key_store(name);
        // That the key belongs to its certificate is checked here.
        let broker =
            ServerTls::new(settings, ClientAuth::None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(broker.certificate().subject, "CN=broker,O=pylog", "{name}");
        assert_eq!(broker.certificate().hosts, ["broker.test", "127.0.0.1"], "{name}");
    }
}

#[test]
fn key_stores_of_openssl_are_read() {
    for name in ["", "-legacy", "-rc2-128", "-nomac", "-open", "-sha512", "-sha384", "-rounds"] {
        let settings = key_store(&format!("openssl{name}.p12"));
        let broker =
            ServerTls::new(settings, ClientAuth::None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(broker.certificate().subject, "CN=openssl", "{name}");
    }
    let empty = TlsSettings { keystore_password: secret(""), ..key_store("openssl-empty.p12") };
    ServerTls::new(empty, ClientAuth::None).unwrap();
}

#[test]
fn a_chain_of_three_certificates_is_shown_from_the_own_one_on() {
    let found = identity(&key_store("java17-chain.p12")).unwrap();
    assert_eq!(found.summary().subject, "CN=broker");
    assert_eq!(found.summary().issuer, "CN=issuer");
    assert_eq!(found.chain().len(), 3);
}

#[test]
fn the_type_may_be_left_out_and_jks_and_pkcs12_stand_for_each_other_as_in_java() {
    for kind in [None, Some("JKS"), Some("PKCS12"), Some("pkcs12")] {
        for name in ["java17-ec.jks", "java17.p12"] {
            identity(&TlsSettings { keystore_type: kind.map(str::to_owned), ..key_store(name) }).unwrap();
        }
    }
    let error = identity_error(&TlsSettings { keystore_type: Some("PEM".into()), ..key_store("java17.p12") });
    assert!(
        error.ends_with(
            "java17.p12 (ssl.keystore.location) cannot be understood: it is said to be PEM, and is PKCS12"
        ),
        "{error}"
    );
}

#[test]
fn a_key_may_have_a_password_of_its_own() {
    let settings = key_store("java17-keypass.jks");
    let error = identity_error(&settings);
    assert!(error.starts_with("The private key in ") && error.ends_with("set ssl.key.password"), "{error}");
    identity(&TlsSettings { key_password: secret("keypass"), ..settings.clone() }).unwrap();
    // Where the store's password opens the key, one that is set beside it does no harm.
    identity(&TlsSettings { key_password: secret("other"), ..key_store("java17.p12") }).unwrap();
    let error = identity_error(&TlsSettings { key_password: secret("other"), ..settings });
    assert!(error.contains("ssl.key.password"), "{error}");
}

#[test]
fn a_wrong_password_is_said_and_not_shown() {
    for name in [
        "java17-ec.jks",
        "java17.p12",
        "java17-legacy.p12",
        "openssl.p12",
        "openssl-nomac.p12",
        "openssl-legacy.p12",
    ] {
        let error = identity_error(&TlsSettings { keystore_password: secret("hunter2"), ..key_store(name) });
        let place = format!(
            "{name} (ssl.keystore.location) does not open with the password in ssl.keystore.password"
        );
        assert!(error.contains(&place), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let error = identity_error(&TlsSettings { keystore_password: None, ..key_store(name) });
        assert!(error.contains("is encrypted: set ssl.keystore.password"), "{name}: {error}");
        let trust = trusted(&TlsSettings { truststore_password: secret("hunter2"), ..trust_store(name) });
        // Without a MAC, and with certificates that anybody may read, nothing is there that a password opens.
        if name != "openssl-nomac.p12" {
            let error = trust.unwrap_err().to_string();
            assert!(
                error.contains("does not open with the password in ssl.truststore.password"),
                "{name}: {error}"
            );
        }
    }
}

#[test]
fn stores_that_are_not_read_say_how_to_write_them_anew() {
    for (name, part) in [
        (
            "java17.jceks",
            "is a store of type JCEKS: write it anew with keytool -importkeystore -deststoretype PKCS12",
        ),
        ("openssl-rc4.p12", "has the encryption 1.2.840.113549.1.12.1.1, which is not read"),
        ("java17-trust.jks", "has no private key"),
        ("java17-trust.p12", "has no private key"),
        ("names.txt", "it is neither PEM nor JKS nor PKCS12"),
        ("no such file", "there is no such file"),
    ] {
        let error = identity_error(&key_store(name));
        assert!(error.contains(part), "{name}: {error}");
    }
}

#[test]
fn trust_stores_of_keytool_and_openssl_are_read() {
    for (name, roots) in [
        ("java17-trust.jks", 2),
        ("java17-trust.p12", 2),
        ("java17-trust-open.p12", 2),
        ("openssl-trust.p12", 1),
        // The first certificate of a key is trusted, as in Java.
        ("java17.p12", 1),
        ("java17-ec.jks", 1),
    ] {
        assert_eq!(trusted(&trust_store(name)).unwrap(), roots, "{name}");
    }
    assert_eq!(trusted(&TlsSettings { truststore_password: None, ..trust_store("rsa.crt") }).unwrap(), 1);
}

#[test]
fn trust_stores_whose_certificates_are_not_encrypted_are_read_without_a_password() {
    for (name, roots) in [("java17-trust.jks", 2), ("java17-trust-open.p12", 2), ("openssl-open.p12", 1)] {
        let settings = TlsSettings { truststore_password: None, ..trust_store(name) };
        assert_eq!(trusted(&settings).unwrap(), roots, "{name}");
    }
    let error =
        trusted(&TlsSettings { truststore_password: None, ..trust_store("java17-trust.p12") }).unwrap_err();
    assert!(error.to_string().contains("is encrypted: set ssl.truststore.password"), "{error}");
}

#[test]
fn private_keys_are_read_in_every_form_that_openssl_writes() {
    let settings = |certificate: &str, key: &str| TlsSettings {
        keystore_certificate_chain: Some(text(certificate)),
        keystore_key: secret(&text(key)),
        key_password: secret("changeit"),
        ..Default::default()
    };
    for (certificate, key) in [
        ("rsa.crt", "rsa.key"),
        ("rsa.crt", "rsa-pkcs1.key"),
        ("rsa.crt", "rsa-aes256.key"),
        ("rsa.crt", "rsa-aes128-sha1.key"),
        ("rsa.crt", "rsa-des3.key"),
        ("rsa.crt", "rsa-v1-3des.key"),
        ("ec.crt", "ec.key"),
        ("ec.crt", "ec-sec1.key"),
    ] {
        ServerTls::new(settings(certificate, key), ClientAuth::None)
            .unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    for (key, part) in [
        ("rsa-scrypt.key", "has the key derivation 1.3.6.1.4.1.11591.4.11"),
        ("rsa-pkcs1-aes.key", "write it anew with openssl pkcs8 -topk8"),
    ] {
        let error = identity_error(&settings("rsa.crt", key));
        assert!(error.contains(part), "{key}: {error}");
    }
    for (password, part) in
        [(None, "is encrypted: set ssl.key.password"), (secret("hunter2"), "in ssl.key.password")]
    {
        let error =
            identity_error(&TlsSettings { key_password: password, ..settings("rsa.crt", "rsa-aes256.key") });
        assert!(error.contains(part) && error.starts_with("The text of ssl.keystore.key"), "{error}");
    }
}

#[test]
fn certificate_and_key_may_be_two_files() {
    let settings = TlsSettings {
        certificate_location: path("ec.crt"),
        key_location: path("ec.key"),
        ..Default::default()
    };
    let mut files = Files::new();
    Identity::read(&settings, &mut files).unwrap();
    assert_eq!(files.paths().collect::<Vec<_>>(), [fixture("ec.crt"), fixture("ec.key")]);
    let error = identity_error(&TlsSettings { key_location: path("rsa.crt"), ..settings });
    assert!(error.contains("rsa.crt (ssl.key.location) has no private key"), "{error}");
}

#[test]
fn a_client_and_a_broker_with_stores_of_java_connect() {
    let broker = ServerTls::new(key_store("java17-chain.p12"), ClientAuth::None).unwrap();
    let config = client_config(&trust_store("java17-chain.p12")).unwrap();
    super::link::shake(config, broker.config(), HOST).unwrap();
    // openssl req -x509 makes a certificate that is a CA's and stands in the trust store itself.
    let broker = ServerTls::new(key_store("openssl.p12"), ClientAuth::None).unwrap();
    let config = client_config(&TlsSettings { truststore_password: None, ..trust_store("ec.crt") }).unwrap();
    super::link::shake(config, broker.config(), HOST).unwrap();
    assert!(server_name(HOST).is_ok());
}
