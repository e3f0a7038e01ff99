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
const PATIENCE: Duration = Duration::from_millis(100);

/// A configuration, what it was made of, and the files that it was read from.
struct Kept {
    settings: TlsSettings,
    files: Files,
    config: Arc<ClientConfig>,
}

/// The configurations that clients of one process share; the one used last comes last.
struct Shared(Mutex<Vec<Kept>>);

static SHARED: Shared = Shared(Mutex::new(Vec::new()));

impl Shared {
    /// The configuration that was made of `settings`, or a new one where a file has changed or there was none.
    fn config(&self, settings: TlsSettings) -> Result<Arc<ClientConfig>> {
        if let Some(config) = self.kept(&settings) {
            return Ok(config);
        }
        // Made without the lock: a slow store of one client keeps no other from its own.
        let mut files = Files::new();
        let config = client_config_noting(&settings, &mut files).map_err(invalid)?;
        Ok(self.keep(Kept { settings, files, config }))
    }

    fn kept(&self, settings: &TlsSettings) -> Option<Arc<ClientConfig>> {
        let mut all = self.0.try_lock_for(PATIENCE)?;
        let at = all.iter().position(|kept| kept.settings == *settings)?;
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
        let Some(mut all) = self.0.try_lock_for(PATIENCE) else { return made.config };
        if let Some(first) = all.iter().find(|kept| kept.settings == made.settings) {
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
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the setting.
    pub fn new(settings: &Settings) -> Result<Self> {
        SHARED.config(texts(settings)?).map(Self)
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
fn texts(settings: &Settings) -> Result<TlsSettings> {
    let list = |text: &str| {
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let secret = |secret: &Secret| (!secret.is_empty()).then(|| secret.clone());
    let trusted = one_of(&[
        ("ssl.truststore.certificates", settings.ssl_truststore_certificates.reveal()),
        ("ssl.ca.pem", settings.ssl_ca_pem.reveal()),
    ])?;
    let trusted_file = one_of(&[
        ("ssl.truststore.location", &settings.ssl_truststore_location),
        ("ssl.ca.location", &settings.ssl_ca_location),
    ])?;
    let chain = one_of(&[
        ("ssl.keystore.certificate.chain", settings.ssl_keystore_certificate_chain.reveal()),
        ("ssl.certificate.pem", settings.ssl_certificate_pem.reveal()),
    ])?;
    let key = one_of(&[
        ("ssl.keystore.key", settings.ssl_keystore_key.reveal()),
        ("ssl.key.pem", settings.ssl_key_pem.reveal()),
    ])?;
    Ok(TlsSettings {
        protocol: given(&settings.ssl_protocol),
        enabled_protocols: list(&settings.ssl_enabled_protocols),
        cipher_suites: list(&settings.ssl_cipher_suites),
        endpoint_identification_algorithm: Some(
            settings.ssl_endpoint_identification_algorithm.trim().to_owned(),
        ),
        keystore_type: given(&settings.ssl_keystore_type),
        keystore_location: given(&settings.ssl_keystore_location),
        keystore_password: secret(&settings.ssl_keystore_password),
        key_password: secret(&settings.ssl_key_password),
        keystore_certificate_chain: chain,
        keystore_key: key.map(Secret::new),
        certificate_location: given(&settings.ssl_certificate_location),
        key_location: given(&settings.ssl_key_location),
        truststore_type: given(&settings.ssl_truststore_type),
        truststore_location: trusted_file,
        truststore_password: secret(&settings.ssl_truststore_password),
        truststore_certificates: trusted,
    })
}

fn given(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The value of the setting that is given, of two names for the same thing.
fn one_of(named: &[(&str, &str)]) -> Result<Option<String>> {
    let mut values = named.iter().filter(|(_, value)| !value.trim().is_empty());
    let found = values.next().map(|(_, value)| (*value).to_owned());
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

    fn settings(values: &[(&str, &str)]) -> Settings {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Settings::default().read_over(values).unwrap()
    }

    fn client(values: &[(&str, &str)]) -> Result<TlsClient> {
        TlsClient::new(&settings(values))
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
        // A list of its own: the other tests of this process use that of the process.
        let shared = Shared(Mutex::new(Vec::new()));
        let config = || {
            shared.config(texts(&settings(&[("ssl.ca.location", file.to_str().unwrap())])).unwrap()).unwrap()
        };
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
                shared.config(texts(&Settings::default()).unwrap()).unwrap()
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
