//! One partition that this broker leads and others copy, in one epoch: its [`Progress`], and the log that follows it.
//!
//! Moving the high watermark runs the callbacks that wait for it, so callers must hold no lock. The exception is
//! [`LeaderState::appended`]: appends happen under locks, so it leaves the move to another thread. It does no harm when another
//! thread moves the high watermark first, or when the partition has another leader by then: what was committed stays committed, and
//! the high watermark never moves back.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Replication;
use super::proposals::Proposer;
use crate::cluster::spec::PartitionSpec;
use crate::state::watch::Watchers;
use pylog_replica::progress::{
    Ends, EpochStart, Moved, Progress, Proposal, ProposalOutcome, StoredPartition,
};
use pylog_storage::PartitionLog;

/// Where a follower in sync is, for consumers that may read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSync {
    /// The follower.
    pub id: i32,
    /// Its first offset.
    pub log_start_offset: i64,
    /// One past its last record.
    pub log_end_offset: i64,
}

/// What a follower asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedFrom {
    /// The follower.
    pub id: i32,
    /// Of its registration.
    pub broker_epoch: i64,
    /// The next record that it wants.
    pub offset: i64,
    /// Where its log begins.
    pub log_start_offset: i64,
}

/// See the module.
pub struct LeaderState {
    topic: String,
    partition: i32,
    leader_epoch: i32,
    /// The log's listener reaches this.
    log: Weak<PartitionLog>,
    replication: Arc<Replication>,
    progress: Mutex<Progress>,
    /// The high watermark that was given to the log.
    shown: AtomicI64,
    /// Woken when the log of a replica begins elsewhere, and when another leader is served.
    pub log_starts: Arc<Watchers>,
}

impl LeaderState {
    /// Begins when the log has become a leader's, before anything is appended to it.
    pub fn new(
        replication: &Arc<Replication>,
        topic: &str,
        spec: &PartitionSpec,
        log: &Arc<PartitionLog>,
    ) -> Arc<Self> {
        let offsets = log.offsets();
        let start = EpochStart {
            node_id: replication.node_id,
            lag_max_ms: replication.lag_max_ms,
            ends: Ends { log_end: offsets.log_end_offset, replicated_end: log.replicated_end() },
            high_watermark: offsets.high_watermark,
            now_ms: replication.now_ms(),
        };
        let leader_state = Arc::new(Self {
            topic: topic.to_owned(),
            partition: spec.partition,
            leader_epoch: spec.leader_epoch,
            log: Arc::downgrade(log),
            replication: Arc::clone(replication),
            progress: Mutex::new(Progress::new(start, stored(spec, log))),
            shown: AtomicI64::new(offsets.high_watermark),
            log_starts: Arc::default(),
        });
        leader_state.meet();
        leader_state
    }

    /// The log grew, or more of it reached the disk. Runs no callbacks: the caller may hold locks.
    pub fn appended(self: &Arc<Self>, replicated_end: i64) {
        let now_ms = self.replication.now_ms();
        let committed = {
            let mut progress = self.progress.lock();
            progress.appended(replicated_end, now_ms);
            progress.high_watermark()
        };
        // Rare: others are nearly always behind the leader.
        if committed > self.shown.load(Ordering::Acquire) {
            let me = Arc::clone(self);
            self.replication.apart(move || me.show());
        }
    }

    /// The log could not be written. Notes the failure where another replica may lead, so that this broker stops. Calls no method of
    /// the log.
    pub fn cannot_write(&self, why: &str) {
        if self.progress.lock().has_successor() {
            self.replication.failure.note(why);
        }
    }

    /// A follower fetches.
    pub fn fetched(self: &Arc<Self>, from: FetchedFrom) {
        let Some(log) = self.log.upgrade() else { return };
        let now_ms = self.replication.now_ms();
        let ends = Ends { log_end: log.offsets().log_end_offset, replicated_end: log.replicated_end() };
        let position = (from.offset, from.log_start_offset);
        let moved = self.progress.lock().fetched(from.id, from.broker_epoch, position, ends, now_ms);
        self.carry_out(moved);
    }

    /// Proposes to go on without the followers that do not keep up.
    pub fn lagging(self: &Arc<Self>) {
        let Some(log) = self.log.upgrade() else { return };
        let (now_ms, log_end) = (self.replication.now_ms(), log.offsets().log_end_offset);
        let moved = self.progress.lock().lagging(log_end, now_ms);
        self.carry_out(moved);
    }

    /// The document changed in the same epoch of the leader, or the topic's settings did.
    pub fn stored(self: &Arc<Self>, spec: &PartitionSpec) {
        let Some(log) = self.log.upgrade() else { return };
        let (now_ms, log_end) = (self.replication.now_ms(), log.offsets().log_end_offset);
        let moved = self.progress.lock().stored(stored(spec, &log), log_end, now_ms);
        self.carry_out(moved);
        // A replica that was added is one that lived before, maybe.
        self.meet();
    }

    /// Notes which brokers are alive.
    pub fn meet(self: &Arc<Self>) {
        let Some(log) = self.log.upgrade() else { return };
        let (now_ms, log_end) = (self.replication.now_ms(), log.offsets().log_end_offset);
        let registered = |id| self.replication.registered(id);
        let moved = self.progress.lock().registered(registered, log_end, now_ms);
        self.carry_out(moved);
    }

    fn carry_out(self: &Arc<Self>, moved: Moved) {
        if moved.proposes {
            self.replication.proposals.add(Arc::<Self>::clone(self));
        }
        if moved.log_start {
            self.log_starts.wake();
        }
        self.show();
    }

    /// Moves the log's high watermark to what is committed, unless another broker may lead by now. It then moves with the next change.
    fn show(&self) {
        let committed = self.progress.lock().high_watermark();
        if committed <= self.shown.load(Ordering::Acquire) || !self.replication.may_lead() {
            return;
        }
        if self.shown.fetch_max(committed, Ordering::AcqRel) < committed
            && let Some(log) = self.log.upgrade()
        {
            log.move_high_watermark(committed);
        }
    }

    /// Whether fewer than `min.insync.replicas` are in sync.
    pub fn is_under_min_isr(&self) -> bool {
        self.progress.lock().is_under_min_isr()
    }

    /// Where this epoch begins.
    pub fn epoch_start(&self) -> i64 {
        self.progress.lock().epoch_start()
    }

    /// The least log start among live replicas; `None` while one of them was not heard of.
    pub fn low_watermark(&self) -> Option<i64> {
        let own = self.log.upgrade()?.offsets().log_start_offset;
        self.progress.lock().low_watermark(own)
    }

    /// The followers in sync.
    pub fn in_sync(&self) -> Vec<InSync> {
        let progress = self.progress.lock();
        let each = progress.in_sync().map(|(id, follower)| InSync {
            id,
            log_start_offset: follower.log_start_offset,
            log_end_offset: follower.log_end_offset,
        });
        each.collect()
    }

    /// Ends of all followers that were heard of, for tests and tools.
    pub fn ends(&self) -> BTreeMap<i32, i64> {
        self.progress.lock().ends().collect()
    }
}

impl Proposer for LeaderState {
    fn topic(&self) -> &str {
        &self.topic
    }

    fn partition(&self) -> i32 {
        self.partition
    }

    fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    fn proposal(&self) -> Option<Proposal> {
        self.progress.lock().proposal().cloned()
    }

    fn answered(self: Arc<Self>, partition_epoch: i32, answer: ProposalOutcome) -> bool {
        let now_ms = self.replication.now_ms();
        let again = self.progress.lock().answered(partition_epoch, answer, now_ms);
        let end = self.log.upgrade().map(|log| log.replicated_end());
        if let Some(end) = end.filter(|_| !again) {
            // A member that was not added holds nothing up any more.
            self.appended(end);
        }
        again
    }
}

fn stored<'a>(spec: &'a PartitionSpec, log: &PartitionLog) -> StoredPartition<'a> {
    StoredPartition {
        partition_epoch: spec.partition_epoch,
        replicas: &spec.replicas,
        isr: &spec.isr,
        min_isr: log.config().min_insync_replicas,
    }
}
