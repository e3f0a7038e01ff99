//! The broker's sockets, connections and request handlers.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Server`]: open, apply topics, listen, close |
//! | [`settings`], [`shared`], [`metrics`], [`notice`] | settings; what all connections share; counters; log lines |
//! | [`topics`] | what is served, as an immutable picture |
//! | [`listener`], [`connection`] | accept; one task per connection |
//! | [`frames`], [`buffers`], [`budget`] | bytes into requests, borrowed buffers, bytes in flight |
//! | [`dispatch`], [`handlers`] | the table of contents; one file per request |
//! | [`outbox`], [`send`] | answers on their way out, records straight from their file |
//! | [`coordinators`] | groups and transactions: the machines' shell |
//! | [`watch`], [`fetch_sessions`] | long polls and what wakes them; what each consumer reads |
//! | [`decide`] | questions to Python |
//! | [`producer_ids`], [`errors`], [`shutdown`] | ids of producers; error codes; stop |
//! | [`maintenance`], [`compaction`] | what is due by the clock; threads that compact |
//!
//! # Life
//! [`Server::open`] locks the data directory and starts nothing. [`Server::listen`] starts the runtime's threads.
//! [`Server::close`] stops accepting, answers what is in flight, stops the threads, syncs and marks the data directory.
pub mod budget;
pub mod buffers;
pub mod compaction;
pub mod connection;
pub mod coordinators;
pub mod decide;
pub mod dispatch;
pub mod errors;
pub mod fetch_sessions;
pub mod frames;
pub mod handlers;
pub mod listener;
pub mod maintenance;
pub mod metrics;
pub mod notice;
pub mod outbox;
pub mod producer_ids;
pub mod send;
pub mod settings;
pub mod shared;
pub mod shutdown;
pub mod topics;
pub mod watch;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::storage::{Clock, Disk, LogManager, StorageError};
use budget::Budget;
use compaction::Compaction;
use coordinators::Coordinators;
use decide::Decider;
use fetch_sessions::FetchSessions;
use maintenance::Maintenance;
use producer_ids::ProducerIds;
use settings::Settings;
use shared::Shared;
use topics::TopicSpec;

/// Why the server cannot start or stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The data directory or a log.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A socket or a thread.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It listens already, or is closed.
    #[error("the broker {0}")]
    State(&'static str),
}

/// The data path of one broker.
pub struct Server {
    shared: Arc<Shared>,
    running: Mutex<Running>,
}

/// What runs. A closed server never runs again.
#[derive(Default)]
struct Running {
    serving: Option<Serving>,
    closed: bool,
}

struct Serving {
    runtime: Runtime,
    /// Ends when the last connection does.
    drained: mpsc::Receiver<()>,
    _maintenance: Maintenance,
    _compaction: Compaction,
}

impl Server {
    /// Locks and opens the data directory `dir`. No thread starts.
    ///
    /// # Errors
    /// [`ServerError::Storage`].
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        settings: Settings,
        decider: Arc<dyn Decider>,
    ) -> Result<Self, ServerError> {
        let logs = LogManager::open(Arc::clone(&disk), Arc::clone(&clock), dir, settings.manager_config())?;
        let topics = Arc::new(topics::Topics::default());
        let producer_ids = Arc::new(ProducerIds::new(disk, dir.into()));
        let shared = Shared {
            coordinators: Coordinators::new(&settings, &topics, &clock, &producer_ids),
            fetch_sessions: FetchSessions::new(settings.max_incremental_fetch_session_cache_slots),
            budget: Budget::new(settings.queued_max_request_bytes),
            producer_ids,
            settings,
            logs,
            clock,
            decider,
            topics,
            metrics: metrics::Metrics::default(),
            buffers: buffers::Buffers::default(),
            shutdown: shutdown::Shutdown::default(),
        };
        Ok(Self { shared: Arc::new(shared), running: Mutex::default() })
    }

    /// What connections share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Serves `specs`, new or changed; their logs are open when this returns.
    ///
    /// # Errors
    /// As [`topics::Topics::apply`].
    pub fn apply_topics(&self, specs: Vec<TopicSpec>) -> Result<(), ServerError> {
        let threads = self.shared.settings.num_recovery_threads_per_data_dir;
        let applied = self.shared.topics.apply(&self.shared.logs, specs, threads);
        self.shared.coordinators.apply(&self.shared.topics.now());
        Ok(applied?)
    }

    /// Stops serving the topic and removes its files.
    ///
    /// # Errors
    /// As [`topics::Topics::remove`].
    pub fn remove_topic(&self, name: &str) -> Result<(), ServerError> {
        let removed = self.shared.topics.remove(&self.shared.logs, name);
        self.shared.coordinators.apply(&self.shared.topics.now());
        self.shared.coordinators.groups.step_all(|groups, now_ms| groups.forget_topic(name, now_ms));
        Ok(removed?)
    }

    /// Binds and serves; returns the port.
    ///
    /// # Errors
    /// [`ServerError::Io`] naming the address, [`ServerError::State`] when it listens already.
    pub fn listen(&self, host: &str, port: u16) -> Result<u16, ServerError> {
        let mut running = self.running.lock();
        match *running {
            Running { closed: true, .. } => return Err(ServerError::State("is closed; make a new one")),
            Running { serving: Some(_), .. } => return Err(ServerError::State("listens already")),
            Running { serving: None, .. } => {}
        }
        let socket = listener::bind(host, port)?;
        let port = socket.local_addr()?.port();
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.shared.settings.num_network_threads.max(1))
            .thread_name("pylog-server")
            .enable_io()
            .enable_time()
            .build()?;
        let (alive, drained) = mpsc::channel(1);
        let socket = {
            let _inside = runtime.enter();
            self.shared.coordinators.start();
            tokio::net::TcpListener::from_std(socket)?
        };
        runtime.spawn(listener::accept_all(socket, Arc::clone(&self.shared), alive));
        let maintenance = Maintenance::start(Arc::clone(&self.shared))?;
        let compaction = Compaction::start(&self.shared)?;
        running.serving =
            Some(Serving { runtime, drained, _maintenance: maintenance, _compaction: compaction });
        Ok(port)
    }

    /// Stops accepting and reading, gives what is in flight up to `timeout` to be answered, stops the threads, syncs all
    /// logs and writes the clean-stop marker. Nothing happens the second time.
    ///
    /// # Errors
    /// [`ServerError::Storage`]: there is no marker then, and the next start recovers.
    pub fn close(&self, timeout: Duration) -> Result<(), ServerError> {
        let mut running = self.running.lock();
        if running.closed {
            return Ok(());
        }
        running.closed = true;
        self.shared.shutdown.give();
        self.shared.coordinators.stop();
        if let Some(mut serving) = running.serving.take() {
            let drained = async { tokio::time::timeout(timeout, serving.drained.recv()).await };
            if serving.runtime.block_on(drained).is_err() {
                notice::notice("stopped before everything in flight was answered");
            }
            serving.runtime.shutdown_timeout(Duration::from_secs(1));
        }
        Ok(self.shared.logs.close()?)
    }
}
