//! One connection to one broker: a task writes, a task reads, answers find their askers by the correlation id.
//!
//! How it gets there, with TLS and a login where the brokers' listener has them, is [`way`](super::way)'s.
//! A link that broke stays broken, and all requests that wait on it fail. The connection is closed when its last owner drops it.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::error::PeerError;
use super::way::{Reading, Way, Writing, read_frame};
use crate::cluster::view::Broker;
use pylog_wire::message::{decode_response, request_frame};
use pylog_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use pylog_wire::{Chunk, ErrorCode, Request};

/// The version ApiVersions is asked in; every broker of a cluster knows it.
const API_VERSIONS_VERSION: i16 = 3;
/// How a broker calls itself to others: this and its number.
pub const CLIENT_ID_PREFIX: &str = "pylog-server-";
/// Requests to one broker that are on their way; more wait for their turn.
pub const IN_FLIGHT_MAX: usize = 64;
/// Frames that wait to be written; as many requests are allowed at once.
const FRAMES_MAX: usize = IN_FLIGHT_MAX;

/// An open connection.
pub struct Link {
    id: i32,
    client_id: String,
    /// API key -> lowest and highest version.
    versions: HashMap<i16, (i16, i16)>,
    next_correlation_id: AtomicI32,
    frames: mpsc::Sender<Vec<Chunk>>,
    askers: Arc<Askers>,
    tasks: Vec<AbortHandle>,
    /// From then on another one is opened for new requests: its login ends.
    until: Option<Instant>,
}

/// The requests that wait for an answer; `None` once the connection has ended.
struct Askers(Mutex<Option<HashMap<i32, oneshot::Sender<Bytes>>>>);

impl Askers {
    /// The connection has ended: dropping the senders fails all requests that wait.
    fn end(&self) {
        drop(self.0.lock().take());
    }
}

/// A request that waits for its answer. Dropping it removes it at once: requests that time out do not pile up until the connection ends.
struct Asking<'a> {
    askers: &'a Askers,
    correlation_id: i32,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(askers) = &mut *self.askers.0.lock() {
            askers.remove(&self.correlation_id);
        }
    }
}

impl Link {
    /// Connects to `broker` by `way` and agrees on versions.
    ///
    /// # Errors
    /// [`PeerError`].
    pub async fn open(broker: &Broker, way: &Way, own_id: i32) -> Result<Self, PeerError> {
        let (id, client_id) = (broker.id, format!("{CLIENT_ID_PREFIX}{own_id}"));
        let connected = way.connect(broker, &client_id).await;
        let connected = connected.map_err(|cause| PeerError::Unreachable { id, cause })?;
        let (reading, writing) = (connected.reading, connected.writing);
        let (frames, to_write) = mpsc::channel(FRAMES_MAX);
        let askers = Arc::new(Askers(Mutex::new(Some(HashMap::new()))));
        let reader = tokio::spawn(read_all(reading, Arc::clone(&askers)));
        let writer = tokio::spawn(write_all(writing, to_write, Arc::clone(&askers)));
        let mut link = Self {
            id,
            client_id,
            versions: HashMap::new(),
            next_correlation_id: AtomicI32::new(0),
            frames,
            askers,
            tasks: vec![reader.abort_handle(), writer.abort_handle()],
            until: connected.until,
        };
        let question = ApiVersionsRequest {
            client_software_name: "pylog".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..Default::default()
        };
        let answer: ApiVersionsResponse = link.send(&question, API_VERSIONS_VERSION).await?;
        if answer.error_code != ErrorCode::None.code() {
            let why = format!("it refused ApiVersions with error {}", answer.error_code);
            return Err(PeerError::Misunderstood { id, why });
        }
        let spoken = answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        link.versions = spoken.collect();
        Ok(link)
    }

    /// Whether new requests may be sent: it has not ended, and its login does not end soon.
    pub fn is_open(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until) && self.askers.0.lock().is_some()
    }

    /// Ends the connection.
    pub fn end(&self) {
        self.askers.end();
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Asks in the highest version that both speak.
    ///
    /// # Errors
    /// [`PeerError::Misunderstood`], [`PeerError::Broken`].
    pub async fn call<Q: Request>(&self, request: &Q) -> Result<Q::Response, PeerError> {
        let (ours, theirs) = (Q::API, self.versions.get(&Q::API.key.code()));
        let common = theirs.map(|(min, max)| (ours.min.max(*min), ours.max.min(*max)));
        let Some((_, version)) = common.filter(|(min, max)| min <= max) else {
            let why = format!("{} has no version that both speak", ours.key.name());
            return Err(PeerError::Misunderstood { id: self.id, why });
        };
        self.send(request, version).await
    }

    async fn send<Q: Request>(&self, request: &Q, version: i16) -> Result<Q::Response, PeerError> {
        let misunderstood = |why: String| PeerError::Misunderstood { id: self.id, why };
        let correlation_id = self.next_correlation_id.fetch_add(1, Ordering::Relaxed);
        let frame = request_frame(request, version, correlation_id, Some(&self.client_id));
        let frame = frame.map_err(|error| misunderstood(error.to_string()))?;
        let (asker, answer) = oneshot::channel();
        match &mut *self.askers.0.lock() {
            Some(askers) => askers.insert(correlation_id, asker),
            None => return Err(PeerError::Broken(self.id)),
        };
        let _asking = Asking { askers: &self.askers, correlation_id };
        self.frames.send(frame).await.map_err(|_ended| PeerError::Broken(self.id))?;
        let frame = answer.await.map_err(|_ended| PeerError::Broken(self.id))?;
        let decoded = decode_response::<Q::Response>(frame, version);
        decoded.map(|(_, body)| body).map_err(|error| misunderstood(error.to_string()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

async fn write_all(mut stream: Writing, mut frames: mpsc::Receiver<Vec<Chunk>>, askers: Arc<Askers>) {
    while let Some(frame) = frames.recv().await {
        for chunk in frame {
            let Chunk::Bytes(bytes) = chunk else { continue };
            if stream.write_all(&bytes).await.is_err() {
                return askers.end();
            }
        }
        // What TLS has encrypted may still wait for the socket.
        if stream.flush().await.is_err() {
            return askers.end();
        }
    }
}

async fn read_all(mut stream: Reading, askers: Arc<Askers>) {
    // Any error in the stream ends the connection; callers may send their requests again on the next one.
    while let Some(frame) = read_frame(&mut stream).await {
        let correlation_id = frame.get(..4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
        let asker = match (&mut *askers.0.lock(), correlation_id) {
            (Some(askers), Some(id)) => askers.remove(&id),
            _ => break,
        };
        if let Some(asker) = asker {
            // The receiver may have gone away: nobody waits for the answer then.
            let _ = asker.send(frame);
        }
    }
    askers.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_timed_out_is_removed_from_those_that_wait() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (_reading, writing) = stream.into_split();
        let writing: Writing = Box::new(writing);
        let (frames, to_write) = mpsc::channel(FRAMES_MAX);
        let askers = Arc::new(Askers(Mutex::new(Some(HashMap::new()))));
        let writer = tokio::spawn(write_all(writing, to_write, Arc::clone(&askers)));
        let link = Link {
            id: 2,
            client_id: "test".into(),
            versions: HashMap::new(),
            next_correlation_id: AtomicI32::new(0),
            frames,
            askers,
            tasks: vec![writer.abort_handle()],
            until: None,
        };
        let question = ApiVersionsRequest::default();
        let waited = link.send(&question, API_VERSIONS_VERSION);
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), waited).await;
        assert!(given_up.is_err(), "nobody answers");
        assert_eq!(link.askers.0.lock().as_ref().map(HashMap::len), Some(0));
    }
}
