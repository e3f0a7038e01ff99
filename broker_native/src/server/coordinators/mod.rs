//! The shell around the pure machines of `coordinator`: loads them from their partition's log, feeds them, appends what they
//! say, answers.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Coordinators`]: groups and transactions of this broker |
//! | [`shell`] | [`Coordinator`]: the machines of one internal topic; call, timers, load, unload |
//! | [`shard`] | [`Shard`]: one machine and its log under one lock |
//! | [`load`] | a log into a machine |
//! | [`alarm`] | the earliest deadline |
//! | [`waiting`] | an answer to come |
//! | [`transactions`] | producer ids and markers for the machines of transactions |
//! | [`key`] | which partition keeps a key |
//! | [`view`] | the topics, as the machines see them |
//!
//! # How a step runs
//! Under the shard's lock: the machine takes the event, its records are appended as one batch, the machine's deadline is
//! noted. Without the lock: when the batch is acknowledged (at once, or after the group commit of `durability=flushed`),
//! answers leave and actions start. An append that fails throws the machine away: everybody who waits is told
//! NOT_COORDINATOR, and the machine is loaded again from the log.
//!
//! Loading happens in a background thread of the runtime, one log after the other; COORDINATOR_LOAD_IN_PROGRESS meanwhile.
//! An empty log needs no loading.
pub mod alarm;
pub mod key;
pub mod load;
pub mod shard;
pub mod shell;
pub mod transactions;
pub mod view;
pub mod waiting;

use std::sync::Arc;

pub use shard::Shard;
pub use shell::{Coordinator, Sink};
use transactions::{MarkerWriter, Transactions};
pub use waiting::Waiting;

use super::producer_ids::ProducerIds;
use super::settings::Settings;
use super::topics::{Picture, Topics};
use crate::coordinator::group::GroupMachine;
use crate::coordinator::transaction::TransactionMachine;
use crate::storage::Clock;

/// Holds groups and their offsets.
pub const GROUPS_TOPIC: &str = "__consumer_offsets";
/// Holds transactional ids and their transactions.
pub const TRANSACTIONS_TOPIC: &str = "__transaction_state";

/// The coordinators of this broker.
pub struct Coordinators {
    /// Groups.
    pub groups: Arc<Coordinator<GroupMachine>>,
    /// Transactional ids.
    pub transactions: Arc<Transactions>,
}

impl Coordinators {
    /// Coordinates nothing until [`Coordinators::apply`] says what this broker leads.
    pub fn new(
        settings: &Settings,
        topics: &Arc<Topics>,
        clock: &Arc<dyn Clock>,
        ids: &Arc<ProducerIds>,
    ) -> Self {
        let (group_settings, view) = (Arc::new(settings.groups.clone()), Arc::clone(topics));
        let make = move || GroupMachine::new(Arc::clone(&group_settings), Arc::clone(&view) as _);
        let groups = Coordinator::new(GROUPS_TOPIC, settings.node_id, Arc::clone(clock), make);
        let (txn_settings, ids) = (Arc::new(settings.transactions.clone()), Arc::clone(ids));
        let make = move || TransactionMachine::new(Arc::clone(&txn_settings), Arc::clone(&ids) as _);
        let transactions = Coordinator::new(TRANSACTIONS_TOPIC, settings.node_id, Arc::clone(clock), make);
        transactions.set_sink(MarkerWriter { topics: Arc::clone(topics), groups: Arc::clone(&groups) });
        Self { groups, transactions }
    }

    /// Coordinates what this broker leads in `picture`.
    pub fn apply(&self, picture: &Picture) {
        self.groups.apply(picture);
        self.transactions.apply(picture);
    }

    /// Begins to load and to watch deadlines. Called within the runtime.
    pub fn start(&self) {
        self.groups.start();
        self.transactions.start();
    }

    /// Tells everybody who waits to look for the coordinator again; nothing is coordinated any more.
    pub fn stop(&self) {
        self.transactions.stop();
        self.groups.stop();
    }
}
