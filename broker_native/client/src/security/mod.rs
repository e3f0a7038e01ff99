//! What a client needs to reach brokers that demand TLS or a login, made of its settings once; its connections share it.
//!
//! | file | what it does |
//! |---|---|
//! | [`jaas`] | `sasl.jaas.config` as Java clients write it |
//! | [`login`] | by which mechanism the client logs in, and as whom |
//! | [`terms`] | whether one client's connection will do for another |
//! | [`tokens`] | where tokens of OAUTHBEARER come from |
//! | [`tls`] | the configuration of TLS |
//!
//! No error and no `Debug` shows a secret. Nothing here opens a connection.
pub mod jaas;
pub mod login;
pub mod terms;
pub mod tls;
pub mod tokens;

use std::sync::Arc;

use crate::error::{ClientError, Result};
use login::LoginSettings;
use pylog_security::protocol::SecurityProtocol;
use pylog_settings::client_security::Settings;
use tls::TlsClient;
use tokens::TokenSource;

/// How brokers are reached; neither TLS nor a login by default.
#[derive(Debug, Clone, Default)]
pub struct Security {
    tls: Option<TlsClient>,
    login: Option<Arc<LoginSettings>>,
}

impl Security {
    /// Reads files with certificates and keys, and checks all that `security.protocol` needs. Settings that it does not need
    /// are passed over, as Kafka's clients do. `given` are the names of those that the user set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the setting.
    pub fn new(settings: &Settings, given: &[String]) -> Result<Self> {
        let protocol: SecurityProtocol =
            settings.security_protocol.parse().map_err(|error| ClientError::invalid(format!("{error}")))?;
        let tls = protocol.is_encrypted().then(|| TlsClient::new(settings, given)).transpose()?;
        let login = protocol.has_sasl().then(|| LoginSettings::new(settings)).transpose()?;
        Ok(Self { tls, login: login.map(Arc::new) })
    }

    /// TLS, where the brokers speak it.
    pub fn tls(&self) -> Option<&TlsClient> {
        self.tls.as_ref()
    }

    /// The login, where the brokers demand one.
    pub fn login(&self) -> Option<&Arc<LoginSettings>> {
        self.login.as_ref()
    }

    /// Whether there is neither: a plain socket.
    pub fn is_plaintext(&self) -> bool {
        self.tls.is_none() && self.login.is_none()
    }

    /// Lets tokens of OAUTHBEARER come from what `source` makes of the settings for them; nothing happens for another mechanism.
    pub fn take_tokens_from(&mut self, source: impl FnOnce(&tokens::TokenSettings) -> Arc<dyn TokenSource>) {
        if let Some(login) = &mut self.login {
            Arc::make_mut(login).take_tokens_from(source);
        }
    }
}
