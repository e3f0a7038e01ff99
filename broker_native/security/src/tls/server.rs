//! rustls' configuration of a broker's listener, which can be exchanged while it runs.
//!
//! Every new connection takes [`ServerTls::config`]; one that is open keeps what it began with. [`ServerTls::reload`] reads the files anew:
//! what cannot be used is an error, and the listener goes on with what it had. All methods may be called from any thread, and reading a
//! configuration never waits for a reload.
//!
//! Sessions are resumed by tickets that the client keeps, under a key of this configuration, so a reload ends them. Where clients show
//! certificates there are none: a ticket would let somebody in whose certificate has expired, or whose CA is no longer trusted.
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage};
use rustls::sign::SingleCertAndKey;

use super::certificate::Summary;
use super::error::TlsError;
use super::files::Files;
use super::material::{Identity, Trust};
use super::settings::{ClientAuth, TlsSettings};
use super::verify;

/// The TLS of a listener.
#[derive(Debug)]
pub struct ServerTls {
    settings: TlsSettings,
    client_auth: ClientAuth,
    loaded: RwLock<Loaded>,
    /// What the last attempt read, also one that failed. Whoever reloads holds it, so reloads do not overtake each other.
    files: Mutex<Files>,
}

#[derive(Debug, Clone)]
struct Loaded {
    config: Arc<ServerConfig>,
    certificate: Arc<Summary>,
}

impl ServerTls {
    /// Reads what the settings name.
    pub fn new(settings: TlsSettings, client_auth: ClientAuth) -> Result<Self, TlsError> {
        let mut files = Files::new();
        let loaded = load(&settings, client_auth, &mut files)?;
        Ok(Self { settings, client_auth, loaded: RwLock::new(loaded), files: Mutex::new(files) })
    }

    /// What a new connection is to use.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.loaded().config
    }

    /// The broker's own certificate: whose it is and when it is valid.
    pub fn certificate(&self) -> Arc<Summary> {
        self.loaded().certificate
    }

    /// Whether it asks clients for certificates.
    pub fn client_auth(&self) -> ClientAuth {
        self.client_auth
    }

    /// Whether a file has other bytes than when it was last read, with or without success. To be asked about once a second.
    pub fn files_changed(&self) -> bool {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).changed()
    }

    /// Reads the files anew; new connections use what is in them. After an error they use what they did before.
    pub fn reload(&self) -> Result<Arc<Summary>, TlsError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        *files = Files::new();
        let loaded = load(&self.settings, self.client_auth, &mut files)?;
        let certificate = loaded.certificate.clone();
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(certificate)
    }

    fn loaded(&self) -> Loaded {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn load(settings: &TlsSettings, client_auth: ClientAuth, files: &mut Files) -> Result<Loaded, TlsError> {
    let (provider, versions) = settings.cryptography()?;
    let identity = Identity::read(settings, files);
    // Read even if the identity is bad: a change of either file is then a reason to try again.
    let trust = Trust::read(settings, files);
    let identity = identity?.ok_or_else(|| {
        TlsError::Settings(
            "A listener with TLS needs a certificate and its private key: set ssl.keystore.location".into(),
        )
    })?;
    let verifier: Arc<dyn ClientCertVerifier> = match (client_auth, trust?) {
        (ClientAuth::None, _) => Arc::new(NoClientAuth),
        (_, None) => {
            return Err(TlsError::Settings(
                "ssl.client.auth asks clients for certificates: say which are trusted with ssl.truststore.location".into(),
            ));
        }
        (auth, Some(trust)) => Arc::new(verify::Client::new(trust, auth == ClientAuth::Required, &provider)?),
    };
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions);
    let builder = builder.map_err(|error| TlsError::Settings(error.to_string()))?;
    let key = identity.certified()?;
    let key = Arc::new(SingleCertAndKey::from(key.as_ref().clone()));
    let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(key);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    if client_auth == ClientAuth::None {
        config.ticketer = Ticketer::new().map_err(|error| TlsError::Settings(error.to_string()))?;
    } else {
        config.send_tls13_tickets = 0;
    }
    Ok(Loaded { config: Arc::new(config), certificate: Arc::new(identity.summary().clone()) })
}
