//! The broker's sockets, connections and request handlers.
//!
//! # Layout
//! | module | what it does | uses |
//! |---|---|---|
//! | here | [`Server`]: open, apply topics, listen, close | most of them |
//! | [`authorization`] | who may do what: the table of rights, and the ACLs | `settings` |
//! | [`network`] | accepts; one task per connection | `call`, `decide`, `dispatch`, `handlers`, `io`, `listeners`, `quotas`, `settings`, `shared`, `shutdown` |
//! | [`dispatch`], [`handlers`], [`call`], [`rights`] | which request is handled where; one file per request; what a handler gets and gives, and what it asks about rights | `authorization`, `cluster`, `coordinators`, `decide`, `errors`, `fetch_sessions`, `io`, `listeners`, `quotas`, `share_groups`, `shared`, `state` |
//! | [`shared`] | what all connections share | `authorization`, `cluster`, `coordinators`, `decide`, `fetch_sessions`, `io`, `local_reads`, `metrics`, `quotas`, `request_times`, `security_state`, `settings`, `share_groups`, `shutdown`, `state` |
//! | [`coordinators`], [`share_groups`] | the shell of the machines for groups, share partitions and transactions; sessions, long polls and settings of share groups | `cluster`, `errors`, `io`, `settings`, `shutdown`, `state`, `upkeep` |
//! | [`upkeep`] | threads and tasks that run beside the requests | `cluster`, `decide`, `listeners`, `metrics`, `settings`, `shutdown`, `state` |
//! | [`fetch_sessions`], [`quotas`] | what each consumer reads; how much of the broker each client may use | none |
//! | [`state`] | topics and partitions; partitions that this broker leads, and those that it follows; what the archive has of them | `cluster`, `decide`, `io`, `settings` |
//! | [`cluster`], [`decide`] | the other brokers, and requests to them; questions to Python | `settings`, `shutdown` |
//! | [`io`] | frames, answers, and the bounds of both | `metrics`, `shutdown` |
//! | [`listeners`] | what a listener is | none |
//! | [`local_reads`] | what answers say to readers that see the data directory | none |
//! | [`security_document`] | what Python hands down about users, ACLs and quotas | `quotas` |
//! | [`security_state`] | who may log in | `security_document` |
//! | [`settings`], [`metrics`], [`errors`], [`shutdown`] | settings; counters; error codes; stop | none |
//! | [`request_times`] | how long requests take | `metrics` |
//! | [`archiving`] | what Python needs to copy logs to the archive | `shared`, `state` |
//! | [`partition_numbers`], [`group_numbers`] | for monitoring: offsets and sizes; what groups have committed | `shared`, `state` |
//!
//! # Life
//! [`Server::open`] locks the data directory and starts nothing. [`Server::listen`] starts the runtime's threads.
//! [`Server::close`] stops accepting, answers what is in flight, stops the threads, syncs and marks the data directory.
pub mod archiving;
pub mod authorization;
pub mod call;
pub mod cluster;
pub mod coordinators;
pub mod decide;
pub mod dispatch;
pub mod errors;
pub mod fetch_sessions;
pub mod group_numbers;
pub mod handlers;
pub mod io;
pub mod listeners;
pub mod local_reads;
pub mod metrics;
pub mod network;
pub mod partition_numbers;
pub mod quotas;
pub mod request_times;
pub mod rights;
pub mod security_document;
pub mod security_state;
pub mod settings;
pub mod share_groups;
pub mod shared;
pub mod shutdown;
pub mod state;
pub mod upkeep;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::authorization::Authorizer;
use crate::cluster::peers::Peers;
use crate::cluster::spec::TopicSpec;
use crate::cluster::view::{Cluster, ClusterView};
use crate::coordinators::Coordinators;
use crate::coordinators::checkpointed::Checkpointed;
use crate::decide::Decider;
use crate::fetch_sessions::FetchSessions;
use crate::io::budget::Budget;
use crate::io::buffers::Buffers;
use crate::io::room::Room;
use crate::io::shares::Shares;
use crate::io::slow::{PASSWORD_THREADS, Slow};
use crate::listeners::{Listener, ListenerSpec};
use crate::local_reads::LocalReads;
use crate::metrics::Metrics;
use crate::network::limits::ConnectionLimits;
use crate::network::listener::{self, Accepting};
use crate::quotas::Quotas;
use crate::quotas::rate::Windows;
use crate::request_times::RequestTimes;
use crate::security_document::SecurityDocument;
use crate::security_state::{Security, SecurityError};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::shutdown::Shutdown;
use crate::state::archives::Archives;
use crate::state::dead_letters::{self, DeadLetters};
use crate::state::producer_ids::ProducerIds;
use crate::state::replication::Replication;
use crate::state::schema_ids::SchemaIds;
use crate::state::{following, topics};
use crate::upkeep::alter_partition::ProposalSender;
use crate::upkeep::certificates;

use crate::upkeep::compaction::Compaction;
use crate::upkeep::maintenance::Maintenance;
use crate::upkeep::replication::{self, Laggards};
use crate::upkeep::storage_failure::FailureReport;
use pylog_log::broker;
use pylog_log::loggers::BROKER;
use pylog_log::warn;
use pylog_replica::following::ReplicaManager;
use pylog_security::acl::AclBinding;
use pylog_security::principal::NoPrincipal;
use pylog_security::tls::TlsError;
use pylog_storage::{Clock, Disk, LogManager, StorageError, TopicPartition};

/// A network thread that is never idle looks for new bytes of other connections after so many turns. After Tokio's 61, a client would
/// wait for seconds when each turn takes tens of milliseconds.
const TURNS_PER_LOOK: u32 = 8;

/// Why the server cannot start or stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The data directory or a log.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A setting that names no principal.
    #[error("super.users: {0}")]
    Principal(#[from] NoPrincipal),
    /// A socket or a thread.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The certificates of a listener.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// What is known about users.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// It listens already, or is closed.
    #[error("the broker {0}")]
    State(&'static str),
}

/// The data path of one broker.
pub struct Server {
    shared: Arc<Shared>,
    replicas: ReplicaManager,
    /// Held while topics change: what is followed, what is served, what is followed then.
    applying: Mutex<()>,
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
    compaction: Compaction,
}

impl Server {
    /// Locks and opens the data directory `dir`. No thread starts.
    ///
    /// # Errors
    /// [`ServerError::Storage`], [`ServerError::Principal`].
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        settings: Settings,
        decider: Arc<dyn Decider>,
    ) -> Result<Self, ServerError> {
        let _here = broker::enter(settings.node_id);
        let authorizer = Authorizer::of(&settings)?;
        let logs = LogManager::open(Arc::clone(&disk), Arc::clone(&clock), dir, (&settings).into())?;
        let topics = Arc::new(topics::Topics::default());
        let cluster = Arc::new(Cluster::new(settings.clustered));
        let peers = Peers::new(&settings, Arc::clone(&cluster));
        let producer_ids = match settings.clustered {
            true => ProducerIds::asked(Arc::clone(&decider)),
            false => ProducerIds::new(disk, dir.into()),
        };
        let replicas = following::manager(&settings);
        let share_groups = share_groups::ShareGroups::new(&settings);
        let (shutdown, metrics) = (Arc::<Shutdown>::default(), Arc::<Metrics>::default());
        let receive = Duration::from_millis(settings.socket_request_receive_timeout_ms);
        let quotas = Quotas::new(Windows {
            samples: settings.quota_window_num,
            window_ms: i64::from(settings.quota_window_size_seconds) * 1000,
        });
        let shared = Shared {
            authorizer,
            coordinators: Coordinators::new(
                &settings,
                &topics,
                &clock,
                &producer_ids,
                &peers,
                &cluster,
                &share_groups,
            ),
            share_groups,
            peers,
            schema_ids: SchemaIds::default(),
            archives: Archives::new(settings.remote_log_reader_max_pending_tasks),
            dead_letters: DeadLetters::new(dead_letters::WAITING_MAX),
            fetch_sessions: FetchSessions::new(settings.max_incremental_fetch_session_cache_slots),
            replica_sessions: FetchSessions::new(settings.max_incremental_fetch_session_cache_slots),
            budget: Budget::new(settings.queued_max_request_bytes),
            room: Room::new(settings.queued_max_response_bytes, receive, &shutdown),
            slow: Slow::new("slow requests (num.io.threads)", settings.num_io_threads, &shutdown, &metrics),
            passwords: Slow::new("passwords", PASSWORD_THREADS, &shutdown, &metrics),
            waiting_partitions: Shares::new(settings.fetch_wait_max_partitions),
            producer_ids,
            replication: Replication::new(&settings, &cluster),
            cluster,
            security: Security::new(&settings.sasl)?,
            local_reads: settings.local_reads_enable.then(|| LocalReads::begin(&logs)).flatten(),
            settings,
            logs: Arc::new(logs),
            clock,
            decider,
            topics,
            metrics,
            request_times: RequestTimes::default(),
            buffers: Buffers::default(),
            quotas,
            shutdown,
        };
        Ok(Self { shared: Arc::new(shared), replicas, applying: Mutex::default(), running: Mutex::default() })
    }

    /// Replaces users, ACLs and quotas; see `_native.pyi` for the JSON.
    ///
    /// # Errors
    /// A part of it cannot be used; nothing has changed then.
    pub fn apply_security(&self, json: &str) -> Result<(), SecurityError> {
        let SecurityDocument { users, acls, quotas, decoy_key } = SecurityDocument::read(json)?;
        self.shared.security.apply(users, decoy_key);
        self.shared.quotas.apply(&quotas);
        self.apply_acls(acls);
        Ok(())
    }

    /// Lets this thread work for this broker meanwhile, as its own threads do.
    fn enter(&self) -> broker::Guard {
        broker::enter(self.shared.settings.node_id)
    }

    /// What connections share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What is copied from other brokers.
    pub fn replicas(&self) -> &ReplicaManager {
        &self.replicas
    }

    /// Serves `specs`, new or changed; their logs are open when this returns.
    ///
    /// # Errors
    /// As [`topics::Topics::apply`].
    pub fn apply_topics(&self, specs: Vec<TopicSpec>) -> Result<(), ServerError> {
        let _here = self.enter();
        let threads = self.shared.settings.num_recovery_threads_per_data_dir;
        let node_id = self.shared.settings.node_id;
        let _applying = self.applying.lock();
        let ids: Vec<_> = specs.iter().map(|topic| topic.topic_id).collect();
        let are_archived = specs.iter().any(|topic| topic.config.remote_storage_enable);
        following::let_go(&self.replicas, node_id, &specs);
        let applied = self.shared.topics.apply(&self.shared.logs, &self.shared.replication, specs, threads);
        let applied = applied.and(self.shared.logs.note_made());
        following::follow(&self.replicas, node_id, &self.shared.topics.now(), &ids);
        self.shared.coordinators.apply(&self.shared.topics.now());
        if are_archived {
            self.shared.archives.miss();
        }
        Ok(applied?)
    }

    /// Topics of which this broker had replicas in a data directory that was lost: a partition is served only when its files were put back.
    ///
    /// # Errors
    /// [`ServerError`] of the list that says so.
    pub fn expect_topics(&self, specs: &[TopicSpec]) -> Result<(), ServerError> {
        let _here = self.enter();
        let node_id = self.shared.settings.node_id;
        let here =
            specs.iter().flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)));
        let here = here.filter(|(_, partition)| partition.replicas.contains(&node_id));
        let logs = here.map(|(topic, partition)| {
            (TopicPartition::new(&topic.name, partition.partition), topic.topic_id)
        });
        Ok(self.shared.logs.expect(logs)?)
    }

    /// Exchanges all ACLs; nothing happens where no authorizer is configured.
    pub fn apply_acls(&self, acls: impl IntoIterator<Item = AclBinding>) {
        if let Some(authorizer) = &self.shared.authorizer {
            authorizer.apply(acls);
        }
    }

    /// Applies a new view of the cluster: which brokers are alive, and which one is the controller.
    pub fn apply_cluster(&self, view: ClusterView) {
        let _here = self.enter();
        let settings = &self.shared.settings;
        following::meet(&self.replicas, settings.node_id, &settings.inter_broker, &view);
        self.shared.cluster.apply(view);
        self.shared.peers.look_at_view();
        self.shared.topics.led().iter().for_each(|leader_state| leader_state.meet());
    }

    /// This broker may lead until the lease's clock shows `until`; zero: it leads nothing from now on.
    pub fn lease_until(&self, until: Duration) {
        let _here = self.enter();
        self.shared.cluster.lease_until(until);
    }

    /// Bytes a second that leaders here may send to throttled replicas, and followers here may fetch of them.
    pub fn set_throttles(&self, leader: i64, follower: i64) {
        self.shared.replication.throttle.set(leader);
        self.replicas.set_throttle(follower);
    }

    /// Sets `log.cleaner.backoff.ms`, where anything is compacted.
    pub fn set_cleaner_backoff(&self, backoff: Duration) {
        if let Some(serving) = &self.running.lock().serving {
            serving.compaction.set_backoff(backoff);
        }
    }

    /// Whether the last user of the data directory stopped cleanly.
    pub fn was_clean(&self) -> bool {
        self.shared.logs.was_clean()
    }

    /// Stops serving the topic and removes its files.
    ///
    /// # Errors
    /// As [`topics::Topics::remove`].
    pub fn remove_topic(&self, name: &str) -> Result<(), ServerError> {
        let _here = self.enter();
        let _applying = self.applying.lock();
        let topic_id = self.shared.topics.now().named(name).map(|topic| topic.id);
        if let Some(topic_id) = topic_id {
            self.replicas.let_go(&topic_id, |_| None);
        }
        let removed = self.shared.topics.remove(&self.shared.logs, name);
        self.shared.coordinators.apply(&self.shared.topics.now());
        self.shared.coordinators.groups.step_all(|groups, now| groups.forget_topic(name, now));
        if let Some(topic_id) = topic_id {
            // Noted before the machines are changed: one that is loaded later finds it here.
            self.shared.share_groups.deleted_topics.add(topic_id);
            self.shared.coordinators.shares.step_all(|shares, _now| shares.forget_topic(&topic_id));
            self.shared.coordinators.share_partitions.forget_topic(&topic_id);
        }
        Ok(removed?)
    }

    /// Binds all listeners, then serves; returns the port of each.
    ///
    /// # Errors
    /// [`ServerError::Io`] naming the address, [`ServerError::State`] when it listens already.
    pub fn listen(&self, listeners: Vec<ListenerSpec>) -> Result<Vec<u16>, ServerError> {
        let _here = self.enter();
        let mut running = self.running.lock();
        match *running {
            Running { closed: true, .. } => return Err(ServerError::State("is closed; make a new one")),
            Running { serving: Some(_), .. } => return Err(ServerError::State("listens already")),
            Running { serving: None, .. } => {}
        }
        let limits = Arc::new(ConnectionLimits::new(&self.shared.settings, listeners.len())?);
        let mut bound = Vec::new();
        for spec in listeners {
            let socket = listener::bind(&spec.host, spec.port)?;
            bound.push((socket, Arc::new(Listener::new(spec)?)));
        }
        let ports = bound.iter().map(|(socket, _)| Ok(socket.local_addr()?.port()));
        let ports = ports.collect::<std::io::Result<_>>()?;
        let node_id = self.shared.settings.node_id;
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.shared.settings.num_network_threads.max(1))
            .thread_name("pylog-server")
            .event_interval(TURNS_PER_LOOK)
            .on_thread_start(move || broker::belong_to(node_id))
            .enable_io()
            .enable_time()
            .build()?;
        let (alive, drained) = mpsc::channel(1);
        {
            let _inside = runtime.enter();
            self.shared.peers.start();
            self.shared.producer_ids.start();
            self.shared.coordinators.start();
            if self.shared.cluster.is_clustered() {
                self.start_replication();
            }
            self.checkpointed().start();
            certificates::start(
                bound.iter().map(|(_, listener)| Arc::clone(listener)).collect(),
                &self.shared.shutdown,
            );
            for (socket, listener) in bound {
                let socket = tokio::net::TcpListener::from_std(socket)?;
                let accepting = Accepting { listener, limits: Arc::clone(&limits), alive: alive.clone() };
                runtime.spawn(listener::accept_all(socket, Arc::clone(&self.shared), accepting));
            }
        }
        let maintenance = Maintenance::start(Arc::clone(&self.shared.logs), &self.shared.settings)?;
        let compaction = Compaction::start(&self.shared.logs, &self.shared.settings)?;
        running.serving = Some(Serving { runtime, drained, _maintenance: maintenance, compaction });
        Ok(ports)
    }

    /// What looks for what groups need of the logs.
    fn checkpointed(&self) -> Checkpointed {
        let shared = &self.shared;
        Checkpointed {
            node_id: shared.settings.node_id,
            topics: Arc::clone(&shared.topics),
            groups: Arc::clone(&shared.coordinators.groups),
            peers: Arc::clone(&shared.peers),
            cluster: Arc::clone(&shared.cluster),
            every: Duration::from_millis(shared.settings.log_retention_check_interval_ms.max(1)),
            shutdown: Arc::clone(&shared.shutdown),
        }
    }

    /// Begins to look after what is led here and copied elsewhere. Called within the runtime.
    fn start_replication(&self) {
        let shared = &self.shared;
        let (replication, topics) = (&shared.replication, &shared.topics);
        let (cluster, shutdown, decider) = (&shared.cluster, &shared.shutdown, &shared.decider);
        let sender = ProposalSender {
            replication: Arc::clone(replication),
            topics: Arc::clone(topics),
            cluster: Arc::clone(cluster),
            decider: Arc::clone(decider),
            metrics: Arc::clone(&shared.metrics),
            shutdown: Arc::clone(shutdown),
        };
        let report = FailureReport {
            replication: Arc::clone(replication),
            decider: Arc::clone(decider),
            shutdown: Arc::clone(shutdown),
        };
        let laggards = Laggards {
            replication: Arc::clone(replication),
            topics: Arc::clone(topics),
            cluster: Arc::clone(cluster),
            shutdown: Arc::clone(shutdown),
        };
        replication::start(sender, report, laggards);
    }

    /// Stops accepting and reading, gives what is in flight up to `timeout` to be answered, stops the threads, syncs all
    /// logs and writes the clean-stop marker. Nothing happens the second time.
    ///
    /// # Errors
    /// [`ServerError::Storage`]: there is no marker then, and the next start recovers.
    pub fn close(&self, timeout: Duration) -> Result<(), ServerError> {
        let _here = self.enter();
        let mut running = self.running.lock();
        if running.closed {
            return Ok(());
        }
        running.closed = true;
        self.replicas.close();
        self.shared.shutdown.give();
        self.shared.archives.close();
        self.shared.dead_letters.close();
        self.shared.coordinators.stop();
        self.shared.peers.stop();
        if let Some(mut serving) = running.serving.take() {
            let drained = async { tokio::time::timeout(timeout, serving.drained.recv()).await };
            if serving.runtime.block_on(drained).is_err() {
                let seconds = timeout.as_secs();
                warn!(target: BROKER, "stopped before all requests in flight were answered: they took longer than {seconds} s");
            }
            serving.runtime.shutdown_timeout(Duration::from_secs(1));
        }
        Ok(self.shared.logs.close()?)
    }
}
