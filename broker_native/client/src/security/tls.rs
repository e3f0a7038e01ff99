//! The configuration of TLS that the connections of a client share: certificates, keys, and what is remembered of sessions.
//!
//! A process keeps the last few: the tasks of a Spark job make a client each, and need neither read the same files again nor shake hands
//! anew with brokers that remember them. Files that have changed are read again by the next client. Thread-safe.
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use parking_lot::Mutex;

use crate::error::{ClientError, Result, kind};
use pylog_security::tls::client::{client_config_noting, server_name};
use pylog_security::tls::files::Files;
use pylog_security::tls::{TlsError, TlsSettings};
use pylog_settings::Secret;
use pylog_settings::client_security::Settings;

/// Configurations that a process keeps.
const KEPT: usize = 8;
/// How long a client waits for the list: in a forked child, a thread of the parent's may hold it for ever.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// A configuration, what it was made of, and the files that it was read from. Passwords and keys are not kept.
struct Kept {
    fingerprint: [u8; 32],
    files: Files,
    config: Arc<ClientConfig>,
}

/// The configurations that clients of one process share; the one used last comes last.
struct Shared(Mutex<Vec<Kept>>);

static SHARED: Shared = Shared(Mutex::new(Vec::new()));

impl Shared {
    /// The configuration that was made of `settings`, or a new one where a file has changed or there was none.
    fn config(&self, settings: TlsSettings) -> Result<Arc<ClientConfig>> {
        let fingerprint = settings.fingerprint();
        if let Some(config) = self.kept(fingerprint) {
            return Ok(config);
        }
        // Made without the lock: a slow store of one client keeps no other from its own.
        let mut files = Files::new();
        let config = client_config_noting(&settings, &mut files).map_err(invalid)?;
        Ok(self.keep(Kept { fingerprint, files, config }))
    }

    fn kept(&self, fingerprint: [u8; 32]) -> Option<Arc<ClientConfig>> {
        let mut all = self.0.try_lock_for(LOCK_TIMEOUT)?;
        let at = all.iter().position(|kept| kept.fingerprint == fingerprint)?;
        let mut kept = all.remove(at);
        if kept.files.changed() {
            return None;
        }
        let config = kept.config.clone();
        all.push(kept);
        Some(config)
    }

    /// Keeps the configuration, unless another client made one of the same settings meanwhile: then that is the one to share.
    fn keep(&self, made: Kept) -> Arc<ClientConfig> {
        let Some(mut all) = self.0.try_lock_for(LOCK_TIMEOUT) else { return made.config };
        if let Some(first) = all.iter().find(|kept| kept.fingerprint == made.fingerprint) {
            return first.config.clone();
        }
        if all.len() >= KEPT {
            all.remove(0);
        }
        let config = made.config.clone();
        all.push(made);
        config
    }
}

/// Shared by all connections of a client. Cloning gives another handle.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient")
    }
}

impl TlsClient {
    /// Reads the files that the settings name; `given` are the names of those that the user set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the setting.
    pub fn new(settings: &Settings, given: &[String]) -> Result<Self> {
        SHARED.config(texts(settings, given)?).map(Self)
    }

    /// What rustls takes.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }

    /// The name that a broker's certificate is compared with.
    ///
    /// # Errors
    /// `SSL_AUTHENTICATION_FAILED` for what is neither a host name nor an address.
    pub fn server_name(&self, host: &str) -> Result<ServerName<'static>> {
        server_name(host).map_err(|error| ClientError::fatal(kind::TLS, error.to_string()))
    }
}

fn invalid(error: TlsError) -> ClientError {
    ClientError::invalid(error.to_string())
}

/// The settings as Kafka has them; a name of librdkafka's stands for the one of Kafka's.
fn texts(settings: &Settings, given: &[String]) -> Result<TlsSettings> {
    let is_given = |name: &str| given.iter().any(|given| given == name);
    let list = |text: &str| {
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    // An empty password is one.
    let password = |name: &str, secret: &Secret| is_given(name).then(|| secret.clone());
    let one_of = |named: &[(&str, &str)]| one_of(named, is_given);
    let file = |name: &str, path: &str| one_of(&[(name, path)]);
    let kind = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(TlsSettings {
        protocol: Some(settings.ssl_protocol.trim().to_owned()),
        enabled_protocols: list(&settings.ssl_enabled_protocols),
        cipher_suites: list(&settings.ssl_cipher_suites),
        endpoint_identification_algorithm: Some(
            settings.ssl_endpoint_identification_algorithm.trim().to_owned(),
        ),
        keystore_type: kind(&settings.ssl_keystore_type),
        keystore_location: file("ssl.keystore.location", &settings.ssl_keystore_location)?,
        keystore_password: password("ssl.keystore.password", &settings.ssl_keystore_password),
        key_password: password("ssl.key.password", &settings.ssl_key_password),
        keystore_certificate_chain: one_of(&[
            ("ssl.keystore.certificate.chain", settings.ssl_keystore_certificate_chain.reveal()),
            ("ssl.certificate.pem", settings.ssl_certificate_pem.reveal()),
        ])?,
        keystore_key: one_of(&[
            ("ssl.keystore.key", settings.ssl_keystore_key.reveal()),
            ("ssl.key.pem", settings.ssl_key_pem.reveal()),
        ])?
        .map(Secret::new),
        certificate_location: file("ssl.certificate.location", &settings.ssl_certificate_location)?,
        key_location: file("ssl.key.location", &settings.ssl_key_location)?,
        truststore_type: kind(&settings.ssl_truststore_type),
        truststore_location: one_of(&[
            ("ssl.truststore.location", &settings.ssl_truststore_location),
            ("ssl.ca.location", &settings.ssl_ca_location),
        ])?,
        truststore_password: password("ssl.truststore.password", &settings.ssl_truststore_password),
        truststore_certificates: one_of(&[
            ("ssl.truststore.certificates", settings.ssl_truststore_certificates.reveal()),
            ("ssl.ca.pem", settings.ssl_ca_pem.reveal()),
        ])?,
    })
}

/// The value of the setting that is given, of several names for the same thing; one that is given and empty is refused.
fn one_of(named: &[(&str, &str)], is_given: impl Fn(&str) -> bool) -> Result<Option<String>> {
    if let Some((name, _)) = named.iter().find(|(name, value)| is_given(name) && value.trim().is_empty()) {
        return Err(ClientError::invalid(format!("{name} is empty; give a value, or leave it out")));
    }
    let mut values = named.iter().map(|(_, value)| value.trim()).filter(|value| !value.is_empty());
    let found = values.next().map(str::to_owned);
    if values.next().is_some() {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        return Err(ClientError::invalid(format!("{} mean the same; leave one out", names.join(" and "))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use pylog_security::tls::throwaway::Authority;

    fn tls(values: &[(&str, &str)]) -> Result<TlsSettings> {
        let given: Vec<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        texts(&Settings::default().read_over(values).unwrap(), &given)
    }

    /// A list of its own: the other tests of this process use that of the process.
    fn client(values: &[(&str, &str)]) -> Result<Arc<ClientConfig>> {
        Shared(Mutex::new(Vec::new())).config(tls(values)?)
    }

    fn store(name: &str) -> String {
        format!("{}/../security/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn a_store_may_have_an_empty_password() {
        let path = store("openssl-empty.p12");
        let of = |password: &[(&str, &str)]| {
            let stores =
                [("ssl.keystore.location", path.as_str()), ("ssl.truststore.location", path.as_str())];
            client(&[&stores, password].concat())
        };
        of(&[("ssl.keystore.password", ""), ("ssl.truststore.password", "")]).unwrap();
        let refused = of(&[("ssl.keystore.password", "")]).unwrap_err();
        assert!(refused.message.contains("is encrypted: set ssl.truststore.password"), "{}", refused.message);
        let refused = of(&[("ssl.truststore.password", "")]).unwrap_err();
        assert!(refused.message.contains("is encrypted: set ssl.keystore.password"), "{}", refused.message);
    }

    #[test]
    fn what_is_given_and_empty_means_something_or_is_refused_as_in_kafka() {
        for name in [
            "ssl.protocol",
            "ssl.truststore.location",
            "ssl.truststore.certificates",
            "ssl.ca.location",
            "ssl.ca.pem",
            "ssl.keystore.location",
            "ssl.keystore.key",
            "ssl.keystore.certificate.chain",
            "ssl.certificate.location",
            "ssl.certificate.pem",
            "ssl.key.location",
            "ssl.key.pem",
        ] {
            let refused = client(&[(name, " ")]).unwrap_err();
            assert_eq!(refused.kind, "INVALID_ARGUMENT");
            assert!(refused.message.contains(name), "{}", refused.message);
        }
        for name in ["ssl.truststore.type", "ssl.keystore.type", "security.protocol"] {
            let refused = crate::config::Settings::new([("bootstrap.servers", "a:1"), (name, "")]);
            let refused = refused.unwrap_err();
            assert!(refused.message.starts_with(&format!("{name} must be one of")), "{}", refused.message);
        }
        let all = tls(&[
            ("ssl.enabled.protocols", ""),
            ("ssl.cipher.suites", ""),
            ("ssl.endpoint.identification.algorithm", ""),
        ]);
        let all = all.unwrap();
        assert!(all.enabled_protocols.is_empty() && all.cipher_suites.is_empty());
        assert_eq!(all.checks_host_name(), Ok(false));
    }

    #[test]
    fn clients_of_the_same_settings_share_a_configuration_until_a_file_changes() {
        let folder = std::env::temp_dir().join(format!("pylog-client-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("ca.pem");
        let write = |name| {
            let authority = Authority::new(name, 0, 4_000_000_000).unwrap();
            std::fs::write(&file, authority.certificate()).unwrap();
        };
        let shared = Shared(Mutex::new(Vec::new()));
        let config = || shared.config(tls(&[("ssl.ca.location", file.to_str().unwrap())]).unwrap()).unwrap();
        write("one");
        let first = config();
        assert!(Arc::ptr_eq(&first, &config()));
        write("two");
        let second = config();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &config()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn clients_that_come_at_the_same_time_share_a_configuration_too() {
        let shared = Shared(Mutex::new(Vec::new()));
        let barrier = Barrier::new(8);
        let made: Vec<Arc<ClientConfig>> = thread::scope(|scope| {
            let client = || {
                barrier.wait();
                shared.config(tls(&[]).unwrap()).unwrap()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(client)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|config| Arc::ptr_eq(config, &made[0])));
    }

    #[test]
    fn two_names_for_the_same_thing_are_refused_and_a_file_that_is_missing_is_named() {
        let both = client(&[("ssl.ca.location", "a"), ("ssl.truststore.location", "b")]).unwrap_err();
        assert!(both.message.contains("ssl.truststore.location and ssl.ca.location"), "{}", both.message);
        let missing = client(&[("ssl.ca.location", "/nowhere/ca.pem")]).unwrap_err();
        assert!(missing.message.contains("/nowhere/ca.pem"), "{}", missing.message);
        assert_eq!(missing.kind, "INVALID_ARGUMENT");
    }
}
