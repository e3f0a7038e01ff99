//! A connection from its acceptance to its first request: the handshake of TLS, and who the client is by its certificate.
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::transport::{NotAccepted, Transport};
use crate::listeners::Listener;
use crate::listeners::newcomers::Handshake;
use crate::shared::Shared;
use pylog_log::loggers::NETWORK;
use pylog_log::{debug, warn};
use pylog_security::principal::Principal;

/// The connection as the listener's protocol wants it, and who the client is by its certificate; `None` when that fails, which the log
/// has.
pub async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    handshake: Option<Handshake>,
    listener: &Listener,
    shared: &Shared,
) -> Option<(Transport, Arc<Principal>)> {
    let transport = transport(stream, peer, handshake, listener, shared).await?;
    let principal = principal(&transport, peer, listener, shared)?;
    Some((transport, principal))
}

async fn transport(
    stream: TcpStream,
    peer: SocketAddr,
    handshake: Option<Handshake>,
    listener: &Listener,
    shared: &Shared,
) -> Option<Transport> {
    let Some(tls) = &listener.tls else { return Some(Transport::Plain(stream)) };
    // Whoever accepts gives a place at each listener with TLS; without one nothing is served.
    let handshake = handshake?;
    match Transport::accept(stream, peer, handshake, tls, &shared.shutdown).await {
        Ok(transport) => Some(transport),
        Err(NotAccepted::Ended) => {
            debug!(target: NETWORK, client = %peer.ip(), "the connection of {peer} has ended before it was open");
            None
        }
        Err(why) => {
            shared.metrics.refused.increment();
            warn!(target: NETWORK, client = %peer.ip(), "closed the connection of {peer} to the listener {listener}: {why}");
            None
        }
    }
}

/// Anonymous without a certificate, and before a login. `None`: no rule is for its name.
fn principal(
    stream: &Transport,
    peer: SocketAddr,
    listener: &Listener,
    shared: &Shared,
) -> Option<Arc<Principal>> {
    let found = match (&listener.tls, &listener.login) {
        (Some(tls), None) => tls.principal(stream.peer_certificates()),
        _ => Ok(Principal::anonymous()),
    };
    if let Err(why) = &found {
        shared.metrics.refused.increment();
        warn!(target: NETWORK, client = %peer.ip(), "closed the connection of {peer} to the listener {listener}: {why}");
    }
    found.ok().map(Arc::new)
}
