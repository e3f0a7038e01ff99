//! A client and a broker whose bytes go from one to the other in memory, and settings made of throw-away certificates.
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection};

use crate::tls::client::{client_config, server_name};
use crate::tls::handshake::{Side, failed};
use crate::tls::server::ServerTls;
use crate::tls::settings::{ClientAuth, TlsSettings};
use crate::tls::throwaway::{Authority, Issued, Usage, Wanted};

pub const HOST: &str = "broker.test";
pub const DAY: i64 = 86_400;

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

pub fn authority(name: &str) -> Authority {
    Authority::new(name, now() - DAY, now() + DAY).unwrap()
}

pub fn wanted(name: &str, usage: Usage) -> Wanted {
    let hosts =
        if usage == Usage::Client { vec![] } else { vec![HOST.into(), "127.0.0.1".into(), "::1".into()] };
    Wanted { common_name: name.into(), hosts, not_before: now() - DAY, not_after: now() + DAY, usage }
}

/// Settings that show `issued`.
pub fn showing(issued: &Issued) -> TlsSettings {
    TlsSettings {
        keystore_certificate_chain: Some(issued.certificate.clone()),
        keystore_key: Some(issued.key.clone()),
        ..TlsSettings::default()
    }
}

/// The same, trusting `certificates`.
pub fn trusting(settings: TlsSettings, certificates: &str) -> TlsSettings {
    TlsSettings { truststore_certificates: Some(certificates.into()), ..settings }
}

pub fn broker(issued: &Issued) -> ServerTls {
    ServerTls::new(showing(issued), ClientAuth::None).unwrap()
}

/// Both ends after a handshake.
#[derive(Debug)]
pub struct Link {
    pub client: ClientConnection,
    pub broker: ServerConnection,
}

/// What each side says of a handshake that failed.
#[derive(Debug, Default)]
pub struct Failure {
    pub client: String,
    pub broker: String,
}

pub fn connect(client: &TlsSettings, broker: &ServerTls) -> Result<Link, Failure> {
    shake(client_config(client).unwrap(), broker.config(), HOST)
}

/// A handshake to its end, and on until both are quiet: tickets come after it, and in TLS 1.3 a client's certificate is refused after it.
pub fn shake(client: Arc<ClientConfig>, broker: Arc<ServerConfig>, host: &str) -> Result<Link, Failure> {
    let mut client = ClientConnection::new(client, server_name(host).unwrap()).unwrap();
    let mut broker = ServerConnection::new(broker).unwrap();
    let mut failure = Failure::default();
    loop {
        let sent = carry(&mut client, &mut broker, Side::Broker, &mut failure.broker);
        let answered = carry(&mut broker, &mut client, Side::Client, &mut failure.client);
        if sent + answered == 0 {
            break;
        }
    }
    let fine = failure.client.is_empty() && failure.broker.is_empty();
    if fine { Ok(Link { client, broker }) } else { Err(failure) }
}

/// Carries what `from` has to say to `to`, which is `side`; how many bytes.
fn carry<F, T, D, E>(from: &mut F, to: &mut T, side: Side, said: &mut String) -> usize
where
    F: std::ops::DerefMut<Target = ConnectionCommon<D>>,
    T: std::ops::DerefMut<Target = ConnectionCommon<E>>,
{
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut input = &bytes[..];
    while !input.is_empty() && said.is_empty() {
        to.read_tls(&mut input).unwrap();
        if let Err(error) = to.process_new_packets() {
            *said = failed(HOST, side, &error).to_string();
        }
    }
    bytes.len()
}
