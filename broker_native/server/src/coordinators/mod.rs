//! The shell around the pure machines of `coordinator`: loads them from their partition's log, feeds them, appends what they
//! say, answers.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Coordinators`]: groups, share partitions and transactions of this broker |
//! | [`shell`] | [`Coordinator`]: the machines of one internal topic; call, timers, load, unload |
//! | [`shard`] | [`Shard`]: one machine and its log under one lock |
//! | [`load`] | a log into a machine |
//! | [`alarm`] | the earliest deadline |
//! | [`waiting`] | an answer to come |
//! | [`transactions`] | producer ids for the machines of transactions |
//! | [`markers`], [`marker_queue`] | markers into partitions: into the logs of this broker; to other brokers |
//! | [`tally`] | which partitions have their marker |
//! | [`remote_coordinator`] | coordinators of transactions on other brokers |
//! | [`commit`], [`commit_timeouts`] | when records are acknowledged; how long answers wait for that |
//! | [`share`] | share partitions, and where their states are kept |
//! | [`checkpointed`] | the look for what groups need of the logs led here, which retention keeps |
//! | [`topic_names`] | the internal topics |
//! | [`key`] | which partition keeps a key |
//! | [`view`] | the topics, as the machines see them |
//!
//! # How a step runs
//! Under the shard's lock: the machine takes the event, its records are appended as one batch, the machine's deadline is
//! noted. Without the lock: when the batch is acknowledged (at once when the log is alone, after the group commit of
//! `durability=flushed`, or when all in-sync replicas have it), answers leave and actions start. An append that fails throws
//! the machine away: all requests that wait are answered NOT_COORDINATOR, and the machine is loaded again from the log. Requests
//! that wait are also answered NOT_COORDINATOR when this broker no longer leads the partition.
//!
//! An answer also waits for everything that was appended before, because no client may see what may still be lost. When that takes
//! too long the request is answered COORDINATOR_NOT_AVAILABLE; what was appended may still be committed later.
//!
//! Loading begins when this broker learns that it leads, in background threads of the runtime; COORDINATOR_LOAD_IN_PROGRESS
//! meanwhile. An empty log needs no loading.
pub mod alarm;
pub mod checkpointed;
pub mod commit;
pub mod commit_timeouts;
pub mod key;
pub mod load;
pub mod marker_queue;
pub mod markers;
pub mod remote_coordinator;

pub mod shard;
pub mod share;
pub mod shell;
pub mod tally;
pub mod topic_names;
pub mod transactions;
pub mod view;
pub mod waiting;

use std::sync::Arc;
use std::time::Duration;

use marker_queue::MarkerQueue;
use markers::MarkerWriter;
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use remote_coordinator::RemoteCoordinator;
pub use shard::Shard;
pub use shell::{Coordinator, Sink};
pub use topic_names::{GROUPS_TOPIC, SHARES_TOPIC, TRANSACTIONS_TOPIC};
use transactions::Transactions;
use uuid::Uuid;
pub use waiting::Waiting;

use self::share::partition_manager::SharePartitionManager;
use self::share::state_store::ShareStateStore;
use crate::cluster::peers::Peers;
use crate::cluster::view::Cluster;
use crate::settings::Settings;
use crate::share_groups::ShareGroups;
use crate::state::producer_ids::ProducerIds;
use crate::state::topics::{MetadataImage, Topics};
use pylog_coordinator::group::GroupMachine;
use pylog_coordinator::share::{GroupSettings, IsGone, ShareLeader, ShareMachine, StateMachine};
use pylog_coordinator::transaction::{
    TransactionMachine, TransactionVersion, TxnEvent, TxnReply, TxnRequest,
};
use pylog_coordinator::{Caller, Room};
use pylog_storage::Clock;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;

/// The coordinators of this broker.
pub struct Coordinators {
    /// Groups.
    pub groups: Arc<Coordinator<GroupMachine>>,
    /// What share groups did with records, as far as it is kept here.
    pub shares: Arc<Coordinator<StateMachine>>,
    /// The way to all of it.
    pub share_store: Arc<ShareStateStore>,
    /// Share partitions of the partitions that this broker leads: which member holds which records.
    pub share_partitions: Arc<SharePartitionManager>,
    /// Transactional ids.
    pub transactions: Arc<Transactions>,
    /// Those of other brokers, when there may be some.
    remote_coordinator: Option<RemoteCoordinator>,
}

/// A room for `bytes`; when it is full, a line of the log says that `what` is refused.
fn limited_room(bytes: usize, what: &'static str, setting: &'static str) -> Room {
    Room::new(bytes, move || {
        warn!(target: COORDINATOR, "{what} is refused: the {bytes} bytes of {setting} are in use");
    })
}

impl Coordinators {
    /// Coordinates nothing until [`Coordinators::apply`] says what this broker leads.
    pub fn new(
        settings: &Settings,
        topics: &Arc<Topics>,
        clock: &Arc<dyn Clock>,
        ids: &Arc<ProducerIds>,
        peers: &Arc<Peers>,
        cluster: &Arc<Cluster>,
        share_groups: &ShareGroups,
    ) -> Self {
        let node_id = settings.node_id;
        let (group_settings, view) = (Arc::new(settings.groups.clone()), Arc::clone(topics));
        let bytes = group_settings.group_coordinator_max_bytes;
        let room = limited_room(bytes, "a request to a group", "group.coordinator.max.bytes");
        let (defaults, share_room) = (GroupSettings::from(&settings.shares), room.clone());
        let state_room = room.clone();
        let deleted = Arc::clone(&share_groups.deleted_topics);
        let is_gone: IsGone = Arc::new(move |topic_id: &Uuid| deleted.has(topic_id));
        let of_states = Arc::clone(&is_gone);
        let make = move || StateMachine::new(state_room.clone(), Arc::clone(&of_states));
        let shares = Coordinator::new(SHARES_TOPIC, node_id, Arc::clone(clock), Arc::clone(cluster), make);
        let share_store = Arc::new(ShareStateStore {
            node_id,
            topics: Arc::clone(topics),
            peers: Arc::clone(peers),
            states: Arc::clone(&shares),
        });
        let make = || ShareLeader::new(ShareMachine::new(defaults, share_room.clone(), Arc::clone(&is_gone)));
        let share_partitions = SharePartitionManager::new(
            node_id,
            Arc::clone(topics),
            Arc::clone(cluster),
            Arc::clone(clock),
            Arc::clone(&share_store),
            Arc::clone(&share_groups.group_watchers),
            make,
        );
        let make =
            move || GroupMachine::new(Arc::clone(&group_settings), Arc::clone(&view) as _, room.clone());
        let groups = Coordinator::new(GROUPS_TOPIC, node_id, Arc::clone(clock), Arc::clone(cluster), make);
        let (txn_settings, ids) = (Arc::new(settings.transactions.clone()), Arc::clone(ids));
        let bytes = txn_settings.transaction_coordinator_max_bytes;
        let room = limited_room(bytes, "a transactional id", "transaction.coordinator.max.bytes");
        let make = move || {
            TransactionMachine::new(
                Arc::clone(&txn_settings),
                Arc::clone(&ids) as _,
                room.clone(),
                Arc::new(|line: &str| warn!(target: COORDINATOR, "{line}")),
            )
        };
        let transactions =
            Coordinator::new(TRANSACTIONS_TOPIC, node_id, Arc::clone(clock), Arc::clone(cluster), make);
        let timeout_ms = settings.transactions.add_partitions_to_txn_retry_backoff_max_ms;
        let remote_coordinator = cluster.is_clustered().then(|| RemoteCoordinator {
            node_id,
            topics: Arc::clone(topics),
            peers: Arc::clone(peers),
            timeout: Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)),
        });
        transactions.set_sink(MarkerWriter {
            node_id,
            topics: Arc::clone(topics),
            cluster: Arc::clone(cluster),
            groups: Arc::clone(&groups),
            marker_queue: cluster.is_clustered().then(|| MarkerQueue::new(Arc::clone(peers))),
        });
        Self { groups, shares, share_store, share_partitions, transactions, remote_coordinator }
    }

    /// Coordinates what this broker leads in `image`.
    pub fn apply(&self, image: &MetadataImage) {
        self.groups.apply(image);
        self.shares.apply(image);
        self.share_partitions.apply(image);
        self.transactions.apply(image);
    }

    /// Begins to load and to watch deadlines. Called within the runtime.
    pub fn start(&self) {
        self.groups.start();
        self.shares.start();
        self.share_partitions.start();
        self.transactions.start();
    }

    /// Ends all coordinators: requests that wait are answered NOT_COORDINATOR.
    pub fn stop(&self) {
        self.transactions.stop();
        self.share_partitions.stop();
        self.shares.stop();
        self.groups.stop();
    }

    /// Asks the coordinator of a transaction whether it holds partitions, or has it take them in. What is asked has
    /// happened when this returns; the answer usually is there, too.
    pub fn ask_for_partitions(
        &self,
        caller: Caller,
        transaction: AddPartitionsToTxnTransaction,
        transaction_version: TransactionVersion,
        patient: bool,
    ) -> Waiting<TxnReply> {
        let transactional_id = transaction.transactional_id.clone();
        let request = TxnRequest::AddPartitions { transaction, transaction_version, patient };
        self.transactions.call(&transactional_id, |ticket| TxnEvent::Asked { ticket, caller, request })
    }

    /// As [`Coordinators::ask_for_partitions`] for the leader of a partition whose log is about to take the first batch of a
    /// transaction: the coordinator may be another broker's.
    pub fn ask_for_log(
        &self,
        caller: Caller,
        transaction: AddPartitionsToTxnTransaction,
    ) -> Waiting<TxnReply> {
        if let Some(remote_coordinator) = &self.remote_coordinator {
            let number = self.transactions.partition_of(&transaction.transactional_id);
            let leader =
                number.and_then(|number| remote_coordinator.leader_of(self.transactions.topic(), number));
            if let Some(id) = leader {
                return remote_coordinator.ask(id, transaction);
            }
        }
        self.ask_for_partitions(caller, transaction, TransactionVersion::V2, true)
    }
}
