//! The settings of the client as it uses them; they are declared in `pylog_settings::client`.
//!
//! Names are Kafka's. A name that is not in the table is refused, so that a typing error cannot pass unseen.
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{ClientError, Result};
use crate::security::Security;
use crate::security::terms::Terms;
use crate::security::tokens::{TokenSettings, TokenSource};
use pylog_record::compression::Codec;
use pylog_settings::client::{self, CompressionType};
pub use pylog_settings::client::{Acks, Isolation};
use pylog_settings::nearest::nearest;
use pylog_settings::{Setting, client_security};

/// All settings, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    values: client::Settings,
    given: Vec<String>,
    security: Security,
    /// What connections depend on.
    terms: Arc<Terms>,
    keeps_connections: bool,
}

impl Deref for Settings {
    type Target = client::Settings;

    fn deref(&self) -> &client::Settings {
        &self.values
    }
}

impl Settings {
    /// Reads and checks every setting.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an unknown name (with the nearest known one) or a bad value.
    pub fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let given: BTreeMap<&str, &str> = given.into_iter().collect();
        let names: Vec<String> = given.keys().map(|name| (*name).to_owned()).collect();
        let values = values(&given)?;
        let terms = Arc::new(Terms::of(&given));
        let security = Security::default();
        let mut settings = Self { values, given: names, security, terms, keeps_connections: false };
        settings.check()?;
        settings.security = Security::new(&settings.values.security, &settings.given)?;
        Ok(settings)
    }

    /// How secured brokers are reached.
    pub fn security(&self) -> &Security {
        &self.security
    }

    /// The same, with tokens of OAUTHBEARER from what `source` makes of the settings for them.
    pub fn with_tokens(mut self, source: impl FnOnce(&TokenSettings) -> Arc<dyn TokenSource>) -> Self {
        self.security.take_tokens_from(source);
        self
    }

    /// The same for a client that leaves its connections to the next one of this process, and takes those that others left.
    pub fn keeping_connections(mut self, keeps: bool) -> Self {
        self.keeps_connections = keeps;
        self
    }

    /// On what terms connections are left to the next client and taken; none where a connection is opened as soon as found.
    pub fn terms(&self) -> Option<&Arc<Terms>> {
        let is_slow = self.security.tls().is_some() || self.security.login().is_some();
        (self.keeps_connections && is_slow).then_some(&self.terms)
    }

    /// The same, with a first pause of at most `pause_ms` before a retry.
    pub fn retrying_after(mut self, pause_ms: i64) -> Self {
        self.values.retry_backoff_ms = self.values.retry_backoff_ms.min(pause_ms);
        self
    }

    /// The codec of written batches.
    pub fn codec(&self) -> Codec {
        match self.compression_type {
            CompressionType::None => Codec::None,
            CompressionType::Gzip => Codec::Gzip,
            CompressionType::Snappy => Codec::Snappy,
            CompressionType::Lz4 => Codec::Lz4,
            CompressionType::Zstd => Codec::Zstd,
        }
    }

    /// Whether the user set `name`.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// The bootstrap addresses, in order.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there is none or one is not `host:port`.
    pub fn bootstrap(&self) -> Result<Vec<(String, u16)>> {
        let addresses = self.bootstrap_servers.split(',').map(str::trim).filter(|text| !text.is_empty());
        let addresses: Vec<_> = addresses.map(address).collect::<Result<_>>()?;
        if addresses.is_empty() {
            return Err(ClientError::invalid(
                "bootstrap.servers is missing; give it as host:port[,host:port...]",
            ));
        }
        Ok(addresses)
    }

    /// The whole operation's time.
    pub fn api_timeout(&self) -> Duration {
        millis(self.default_api_timeout_ms)
    }

    /// One request's time.
    pub fn request_timeout(&self) -> Duration {
        millis(self.request_timeout_ms)
    }

    /// The pause before retry number `attempt`, counted from 0.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let pause = self.retry_backoff_ms.saturating_mul(1 << attempt.min(16));
        millis(pause.min(self.retry_backoff_max_ms))
    }

    fn check(&self) -> Result<()> {
        self.bootstrap()?;
        if !self.values.security.enable_ssl_certificate_verification {
            return Err(ClientError::invalid(
                "enable.ssl.certificate.verification=false is refused: without that check anybody could answer in the brokers' place; give the certificate of the authority that issued the brokers' certificates in ssl.truststore.location (or ssl.ca.location), and if only the host name differs, leave ssl.endpoint.identification.algorithm empty",
            ));
        }
        if self.enable_idempotence && self.is_given("enable.idempotence") && self.acks != Acks::All {
            return Err(ClientError::invalid(
                "enable.idempotence=true needs acks=all; set acks=all or enable.idempotence=false",
            ));
        }
        Ok(())
    }
}

/// A number of milliseconds from the table, which allows no negative one.
pub fn millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

fn address(text: &str) -> Result<(String, u16)> {
    let text = text.rsplit("://").next().unwrap_or(text);
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| {
        ClientError::invalid(format!(
            "bootstrap.servers: {text:?} is not host:port, for example localhost:9092"
        ))
    })?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

/// Every setting that is read into a field.
fn known() -> impl Iterator<Item = &'static Setting> + Clone {
    client::Settings::SETTINGS.iter().chain(client_security::Settings::SETTINGS)
}

/// The texts of `given` as values; what is not given has its default. A setting may be given under any of its names, once.
fn values(given: &BTreeMap<&str, &str>) -> Result<client::Settings> {
    let mut parsed = serde_json::Map::new();
    for (name, text) in given {
        let setting = known().find(|setting| setting.name == *name || setting.aliases.contains(name));
        let setting = setting.ok_or_else(|| unknown(name))?;
        let value = setting.parse(text).map_err(|allowed| {
            ClientError::invalid(format!("{name} must be {allowed}, not {}", setting.shown((*text).into())))
        })?;
        if parsed.insert(setting.name.to_owned(), value).is_some() {
            let names = [&[setting.name], setting.aliases].concat().join(" and ");
            return Err(ClientError::invalid(format!("{names} are the same setting; leave one out")));
        }
    }
    let values = client::Settings::default().read_over(parsed);
    values.map_err(|refused| ClientError::invalid(refused.to_string()))
}

fn unknown(name: &str) -> ClientError {
    let nearest = nearest(name, known().map(|setting| setting.name));
    let hint = nearest
        .map_or("see the table of client settings".to_owned(), |known| format!("did you mean {known}?"));
    ClientError::invalid(format!("unknown client setting {name:?}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Settings> {
        let base = [("bootstrap.servers", "a:1, [::1]:2")];
        Settings::new(base.iter().chain(given).copied())
    }

    #[test]
    fn defaults_of_the_table_are_valid() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.acks, Acks::All);
        assert_eq!(settings.bootstrap().unwrap(), [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
        assert!(!settings.is_given("acks"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_known_one() {
        let error = settings(&[("batch.sise", "1")]).unwrap_err();
        assert_eq!(error.kind, "INVALID_ARGUMENT");
        assert!(error.message.contains("did you mean batch.size?"), "{}", error.message);
    }

    #[test]
    fn a_bad_value_is_refused_with_what_is_allowed() {
        for (name, value, allowed) in [
            ("acks", "2", "one of all, 1, 0"),
            ("linger.ms", "-1", "from 0 to"),
            ("compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
            ("check.crcs", "yes", "one of true, false"),
            ("security.protocol", "TLS", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
            ("enable.ssl.certificate.verification", "false", "ssl.truststore.location"),
        ] {
            let error = settings(&[(name, value)]).unwrap_err();
            assert!(error.message.contains(name) && error.message.contains(allowed), "{}", error.message);
        }
    }

    #[test]
    fn idempotence_asked_for_needs_acks_all_and_the_default_gives_way() {
        assert!(settings(&[("enable.idempotence", "true"), ("acks", "1")]).is_err());
        assert!(settings(&[("acks", "1")]).is_ok());
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        assert!(Settings::new([("bootstrap.servers", "localhost")]).is_err());
        assert!(Settings::new([]).is_err());
    }

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        let settings = settings(&[("retry.backoff.ms", "10"), ("retry.backoff.max.ms", "35")]).unwrap();
        let pauses: Vec<_> = (0..4).map(|attempt| settings.backoff(attempt).as_millis()).collect();
        assert_eq!(pauses, [10, 20, 35, 35]);
    }
}
