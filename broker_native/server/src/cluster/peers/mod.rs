//! Requests to the other brokers of the cluster: one connection each, many requests on their way at once.
//!
//! A connection is made when it is first needed, to the address in the cluster's view, and lives until it breaks, until its
//! broker leaves the view or registers anew, or until this broker stops. After a failure to connect the broker is left
//! alone for a while that grows from [`BACKOFF_MIN`] to [`BACKOFF_MAX`]; requests then fail at once. When a request is not
//! answered in time its connection is closed: all requests behind it fail, and may be sent again.
//!
//! Nothing here sends a request twice: only the caller knows whether it may be repeated.
pub mod error;
pub mod link;
pub mod way;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time::Instant;

pub use self::error::PeerError;
use self::link::{IN_FLIGHT_MAX, Link};
use self::way::Way;
use super::view::{Broker, Cluster};
use crate::settings::Settings;
use pylog_wire::Request;

/// How long a broker that could not be reached is left alone, the first time.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// And at most.
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The other brokers.
pub struct Peers {
    own_id: i32,
    way: Way,
    cluster: Arc<Cluster>,
    timeout: Duration,
    state: Mutex<State>,
    runtime: OnceLock<Handle>,
}

#[derive(Default)]
struct State {
    peers: HashMap<i32, Arc<Peer>>,
    stopped: bool,
}

/// One registration of another broker.
struct Peer {
    broker: Broker,
    in_flight: Semaphore,
    connection: AsyncMutex<Connection>,
    /// Given when the broker has left or registered anew: requests that wait for it fail then.
    gone: crate::shutdown::Shutdown,
}

#[derive(Default)]
struct Connection {
    link: Option<Arc<Link>>,
    /// Since the last failure to connect: until when nobody tries, how long the last wait was, and what was wrong.
    failed: Option<(Instant, Duration, PeerError)>,
}

impl Peers {
    /// Connects to nobody yet.
    pub fn new(settings: &Settings, cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self {
            own_id: settings.node_id,
            way: Way::new(settings),
            cluster,
            timeout: Duration::from_millis(settings.replica_socket_timeout_ms),
            state: Mutex::default(),
            runtime: OnceLock::new(),
        })
    }

    /// Connections live in the runtime of the caller from now on.
    pub fn start(&self) {
        // The first one stays.
        let _ = self.runtime.set(Handle::current());
    }

    /// Where tasks run that talk to other brokers; `None` before [`Peers::start`].
    pub fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    /// Asks the live broker `id`.
    ///
    /// # Errors
    /// [`PeerError`].
    pub async fn call<Q: Request>(&self, id: i32, request: &Q) -> Result<Q::Response, PeerError> {
        let peer = self.peer(id)?;
        let answer = async {
            let _permit = peer.in_flight.acquire().await.map_err(|_closed| PeerError::NotAlive(id))?;
            let link = self.link(&peer).await?;
            let answer = tokio::time::timeout(self.timeout, link.call(request)).await;
            answer.unwrap_or_else(|_elapsed| {
                link.end();
                Err(PeerError::TimedOut { id, after: self.timeout })
            })
        };
        tokio::select! {
            answer = answer => answer,
            () = peer.gone.wait() => Err(PeerError::NotAlive(id)),
        }
    }

    /// Lets go of the brokers that have left the view, or registered anew.
    pub fn look_at_view(&self) {
        let view = self.cluster.now();
        self.state.lock().peers.retain(|id, peer| {
            let stays = view.broker(*id) == Some(&peer.broker);
            if !stays {
                peer.gone.give();
            }
            stays
        });
    }

    /// Ends all connections; requests that wait fail.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        for (_, peer) in state.peers.drain() {
            peer.gone.give();
        }
    }

    fn peer(&self, id: i32) -> Result<Arc<Peer>, PeerError> {
        let view = self.cluster.now();
        let broker = view.broker(id).filter(|_| id != self.own_id).ok_or(PeerError::NotAlive(id))?;
        let mut state = self.state.lock();
        if state.stopped || self.runtime.get().is_none() {
            return Err(PeerError::Stopped);
        }
        if let Some(peer) = state.peers.get(&id).filter(|peer| peer.broker == *broker) {
            return Ok(Arc::clone(peer));
        }
        let peer = Arc::new(Peer {
            broker: broker.clone(),
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            connection: AsyncMutex::default(),
            gone: crate::shutdown::Shutdown::default(),
        });
        if let Some(before) = state.peers.insert(id, Arc::clone(&peer)) {
            before.gone.give();
        }
        Ok(peer)
    }

    /// The connection to `peer`, opened when there is none. Callers that come meanwhile wait for it.
    async fn link(&self, peer: &Peer) -> Result<Arc<Link>, PeerError> {
        let mut connection = peer.connection.lock().await;
        if let Some(link) = connection.link.as_ref().filter(|link| link.is_open()) {
            return Ok(Arc::clone(link));
        }
        let waited = match &connection.failed {
            Some((until, _, error)) if Instant::now() < *until => return Err(error.clone()),
            Some((_, waited, _)) => (*waited * 2).min(BACKOFF_MAX),
            None => BACKOFF_MIN,
        };
        let timeout = self.timeout.min(CONNECT_MAX);
        let opened = tokio::time::timeout(timeout, Link::open(&peer.broker, &self.way, self.own_id)).await;
        let id = peer.broker.id;
        match opened.unwrap_or(Err(PeerError::TimedOut { id, after: timeout })) {
            Ok(link) => {
                let link = Arc::new(link);
                *connection = Connection { link: Some(Arc::clone(&link)), failed: None };
                Ok(link)
            }
            Err(error) => {
                connection.link = None;
                connection.failed = Some((Instant::now() + waited, waited, error.clone()));
                Err(error)
            }
        }
    }
}
