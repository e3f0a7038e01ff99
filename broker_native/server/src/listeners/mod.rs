//! A broker's listeners: where each accepts connections, its protocol, and the address that its clients are sent.
//!
//! [`newcomers`] bounds how many connections may be at their beginning. Python decides what listeners there are
//! (`pylog_spark/broker/listeners.py`) and has checked them.
pub mod newcomers;

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use serde::Deserialize;

use self::newcomers::Newcomers;
use pylog_security::principal::Principal;
use pylog_security::protocol::SecurityProtocol;
use pylog_security::sasl::Mechanism;
use pylog_security::secret::Secret;
use pylog_security::tls::principal::{MappingRules, peer_principal};
use pylog_security::tls::server::ServerTls;
use pylog_security::tls::{TlsError, TlsSettings};
use pylog_settings::listener::Settings;
use pylog_settings::sasl;

/// A listener as Python wants it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerSpec {
    /// Its name, in upper case.
    pub name: String,
    /// What its connections speak.
    #[serde(deserialize_with = "protocol")]
    pub protocol: SecurityProtocol,
    /// Where it listens.
    pub host: String,
    /// At this port; 0 takes a free one.
    pub port: u16,
    /// Host that clients are sent; `None`: the one that they dialled.
    #[serde(deserialize_with = "Option::deserialize")]
    pub advertised_host: Option<String>,
    /// Port that clients are sent; `None`: the one that they dialled.
    #[serde(deserialize_with = "Option::deserialize")]
    pub advertised_port: Option<u16>,
    /// Its settings, its own over the broker's.
    pub settings: Settings,
}

impl ListenerSpec {
    /// The listener PLAINTEXT at `host:port`, of which clients are sent what they dialled.
    pub fn plaintext(host: impl Into<String>, port: u16) -> Self {
        let protocol = SecurityProtocol::Plaintext;
        Self {
            name: protocol.name().to_owned(),
            protocol,
            host: host.into(),
            port,
            advertised_host: None,
            advertised_port: None,
            settings: Settings::default(),
        }
    }
}

fn protocol<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SecurityProtocol, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

/// A listener that is open, as its connections know it.
#[derive(Debug)]
pub struct Listener {
    /// Its name, in upper case.
    pub name: String,
    /// What its connections speak.
    pub protocol: SecurityProtocol,
    /// Host that clients are sent; `None`: the one that they dialled.
    pub advertised_host: Option<String>,
    /// Port that clients are sent; `None`: the one that they dialled.
    pub advertised_port: Option<u16>,
    /// What TLS needs; `None` where bytes are not encrypted.
    pub tls: Option<ListenerTls>,
    /// How clients log in; `None` where they do not.
    pub login: Option<ListenerLogin>,
}

/// What a listener with logins has.
#[derive(Debug)]
pub struct ListenerLogin {
    /// How clients log in.
    pub rules: Arc<LoginRules>,
    /// Those who have not logged in yet, at most `sasl.login.max.connections`.
    pub newcomers: Arc<Newcomers>,
}

/// How clients log in at a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRules {
    /// By these mechanisms.
    pub mechanisms: Vec<Mechanism>,
    /// For so long at most; 0: for ever (`connections.max.reauth.ms`).
    pub max_reauth_ms: i64,
}

/// What a listener with TLS has.
#[derive(Debug)]
pub struct ListenerTls {
    /// Its certificates.
    pub server: ServerTls,
    /// How names in clients' certificates become principals.
    pub principals: MappingRules,
    /// The handshakes that are under way, at most `ssl.handshake.max.connections`.
    pub handshakes: Arc<Newcomers>,
    /// How long one may take.
    pub handshake_timeout_ms: u64,
}

impl Listener {
    /// Reads its certificates; opens no socket.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(spec: ListenerSpec) -> Result<Self, TlsError> {
        let ListenerSpec { name, protocol, advertised_host, advertised_port, settings, .. } = spec;
        let login = login_rules(&name, protocol, &settings.sasl)?;
        let tls = protocol.is_encrypted().then(|| ListenerTls::new(&settings)).transpose()?;
        Ok(Self { name, protocol, advertised_host, advertised_port, tls, login })
    }
}

/// The login of a listener, where it has one. PLAIN is left out where everybody on the way could read the password.
fn login_rules(
    name: &str,
    protocol: SecurityProtocol,
    settings: &sasl::listener::Settings,
) -> Result<Option<ListenerLogin>, TlsError> {
    if !protocol.has_sasl() {
        return Ok(None);
    }
    let words = settings.sasl_enabled_mechanisms.split(',').map(str::trim).filter(|word| !word.is_empty());
    let asked: Result<Vec<Mechanism>, _> = words.map(str::parse).collect();
    let asked = asked.map_err(|error| TlsError::Settings(format!("sasl.enabled.mechanisms: {error}")))?;
    let is_safe = |mechanism: &Mechanism| protocol.is_encrypted() || *mechanism != Mechanism::Plain;
    let mechanisms: Vec<_> = asked.into_iter().filter(is_safe).collect();
    if mechanisms.is_empty() {
        let sentence = format!(
            "The listener {name} has the protocol {protocol} and no mechanism for logins: name some by sasl.enabled.mechanisms; PLAIN is \
             offered only by SASL_SSL, because it sends the password"
        );
        return Err(TlsError::Settings(sentence));
    }
    let rules = LoginRules { mechanisms, max_reauth_ms: settings.connections_max_reauth_ms };
    let newcomers = Newcomers::new(settings.sasl_login_max_connections);
    Ok(Some(ListenerLogin { rules: Arc::new(rules), newcomers }))
}

impl ListenerTls {
    fn new(settings: &Settings) -> Result<Self, TlsError> {
        let client_auth = settings.ssl_client_auth.parse()?;
        Ok(Self {
            server: ServerTls::new(tls_settings(settings), client_auth)?,
            principals: MappingRules::parse(&settings.ssl_principal_mapping_rules)?,
            handshakes: Newcomers::new(settings.ssl_handshake_max_connections),
            handshake_timeout_ms: settings.ssl_handshake_timeout_ms,
        })
    }

    /// Who a client with these certificates is; anonymous without one.
    ///
    /// # Errors
    /// No rule is for it.
    pub fn principal(&self, certificates: &[CertificateDer<'_>]) -> Result<Principal, TlsError> {
        peer_principal(certificates, &self.principals)
    }
}

fn tls_settings(settings: &Settings) -> TlsSettings {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let secret = |secret: &Secret| (!secret.is_empty()).then(|| secret.clone());
    let words = |text: &str| {
        text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    TlsSettings {
        enabled_protocols: words(&settings.ssl_enabled_protocols),
        cipher_suites: words(&settings.ssl_cipher_suites),
        keystore_type: settings.ssl_keystore_type.clone(),
        keystore_location: text(&settings.ssl_keystore_location),
        keystore_password: secret(&settings.ssl_keystore_password),
        key_password: secret(&settings.ssl_key_password),
        keystore_certificate_chain: text(settings.ssl_keystore_certificate_chain.reveal()),
        keystore_key: secret(&settings.ssl_keystore_key),
        truststore_type: settings.ssl_truststore_type.clone(),
        truststore_location: text(&settings.ssl_truststore_location),
        truststore_password: secret(&settings.ssl_truststore_password),
        truststore_certificates: text(settings.ssl_truststore_certificates.reveal()),
        ..TlsSettings::default()
    }
}

impl fmt::Display for Listener {
    /// Its name, with its protocol where that is another word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.name == self.protocol.name() { Ok(()) } else { write!(f, " ({})", self.protocol) }
    }
}
