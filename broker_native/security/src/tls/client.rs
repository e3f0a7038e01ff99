//! rustls' configuration of a client: one way or mutual, by the settings.
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;

use super::error::TlsError;
use super::files::Files;
use super::material::{Identity, Trust};
use super::settings::TlsSettings;
use super::verify;

/// Brokers whose session tickets a client keeps.
const SESSIONS: usize = 256;

/// The configuration of a client. It reads the files that the settings name, so it is made once and shared by all connections: what is
/// remembered for quicker handshakes lies in it.
pub fn client_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, TlsError> {
    client_config_noting(settings, &mut Files::new())
}

/// The same; the files that it read are noted in `files`, for who wants to know whether they change.
pub fn client_config_noting(
    settings: &TlsSettings,
    files: &mut Files,
) -> Result<Arc<ClientConfig>, TlsError> {
    let (provider, versions) = settings.cryptography()?;
    let checks_name = settings.checks_host_name()?;
    let identity = Identity::read(settings, files)?;
    let trust = Trust::read(settings, files)?.map_or_else(Trust::system, Ok)?;
    let verifier = Arc::new(verify::Server::new(trust, checks_name, &provider));
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions);
    let builder = builder.map_err(|error| TlsError::Settings(error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(identity) => {
            let key = identity.certified()?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key.as_ref().clone())))
        }
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

/// `host` as rustls wants it: a name or an address, also an IPv6 address in brackets.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    // A dot at the end says that the name is complete; certificates do not have it.
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        TlsError::Settings(format!(
            "{host:?} is no name of a host, and no address, that a certificate could be for"
        ))
    })
}
