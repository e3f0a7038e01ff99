//! Accepts the connections of one listener as far as [`ConnectionLimits`] allow, each served by a task of its own. Those that would take one of
//! the last file descriptors (`reserved.file.descriptors`) are closed at once.
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::connection::serve;
use super::descriptors::{is_none_left, is_reserved};
use super::limits::ConnectionLimits;
use crate::listeners::Listener;
use crate::listeners::newcomers::Handshake;
use crate::shared::Shared;
use pylog_log::loggers::NETWORK;
use pylog_log::{debug, warn};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Pause after a failed accept (mostly: no file descriptor left, although idle files were closed).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds `host:port`; port 0 takes a free one.
///
/// # Errors
/// Those of the name lookup and of the socket, naming the address.
pub fn bind(host: &str, port: u16) -> io::Result<std::net::TcpListener> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {host}:{port}: {error}"));
    let address = (host, port).to_socket_addrs().map_err(named)?.next();
    let address = address.ok_or_else(|| named(io::ErrorKind::AddrNotAvailable.into()))?;
    open(address).map_err(named)
}

fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections of the last run to time out.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What accepting needs.
pub struct Accepting {
    /// For which listener.
    pub listener: Arc<Listener>,
    /// Those of all listeners.
    pub limits: Arc<ConnectionLimits>,
    /// Dropped with the last connection.
    pub alive: mpsc::Sender<()>,
}

/// Accepts until the server stops.
pub async fn accept_all(socket: TcpListener, shared: Arc<Shared>, accepting: Accepting) {
    let Accepting { listener, limits, alive } = accepting;
    let next = async || {
        limits.pace(&listener).await;
        socket.accept().await
    };
    loop {
        let accepted = tokio::select! {
            accepted = next() => accepted,
            () = shared.shutdown.wait() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            // Even a connection that is refused takes a descriptor.
            Err(error) if is_none_left(&error) && shared.logs.close_idle_files() => continue,
            Err(error) => {
                warn!(target: NETWORK, "cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if is_reserved(&stream, shared.settings.reserved_file_descriptors) {
            shared.metrics.turned_away.increment();
            warn!(
                target: NETWORK, client = %peer.ip(),
                "refused the connection of {peer}: all file descriptors but reserved.file.descriptors are in use; close connections, or \
                 raise the limit (ulimit -n)"
            );
            continue;
        }
        let place = match limits.enter(&listener, peer.ip()) {
            Ok(place) => place,
            Err(full) => {
                shared.metrics.turned_away.increment();
                warn!(target: NETWORK, client = %peer.ip(), "refused the connection of {peer}: {full}");
                continue;
            }
        };
        debug!(target: NETWORK, client = %peer.ip(), "accepted a connection of {peer}");
        let (shared, listener, alive) = (Arc::clone(&shared), Arc::clone(&listener), alive.clone());
        // In the order in which they came: tasks begin in another one, and the oldest ends when there are too many.
        let handshake = listener.tls.as_ref().map(|tls| tls.handshakes.begin(peer.ip()));
        tokio::spawn(async move {
            let _held = (place, alive, Counted::open(Arc::clone(&shared)));
            serve_counted(stream, peer, handshake, listener, shared).await;
        });
    }
}

async fn serve_counted(
    stream: TcpStream,
    peer: SocketAddr,
    handshake: Option<Handshake>,
    listener: Arc<Listener>,
    shared: Arc<Shared>,
) {
    // An answer must not wait for the acknowledgement of the one before it.
    if stream.set_nodelay(true).is_ok() {
        serve(stream, peer, handshake, listener, shared).await;
    }
}

/// An open connection in the metrics; also when its task panics.
struct Counted(Arc<Shared>);

impl Counted {
    fn open(shared: Arc<Shared>) -> Self {
        shared.metrics.accepted.increment();
        shared.metrics.connections.increment();
        Self(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.connections.decrement();
    }
}
