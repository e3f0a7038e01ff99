//! What a leader knows of one partition in one epoch, and what follows from it: how far the high watermark may go and which
//! ISR to propose. Pure: no log, no socket, no clock.
//!
//! - The high watermark is the least end among the *maximal* ISR: the stored one and the members that a proposal adds while it is
//!   not known whether it is stored. A member that a proposal removes counts until its removal is stored. So whichever of the
//!   two ISRs an election finds, each of its members has every committed record.
//! - It also waits for followers that keep up and are about to be added, which would otherwise run after it for ever.
//! - It stands while the stored ISR is smaller than `min.insync.replicas` (KIP-966): what is not acknowledged to an
//!   acks=all producer is not shown to consumers either, and the last members to leave the ISR have all that was ever committed.
//! - There is one proposal at a time. It ends when the partition's next epoch is applied, or when it is surely refused.
use std::collections::{BTreeMap, BTreeSet};

use super::follower::Follower;

/// Time until a refused proposal is repeated.
const REFUSED_PAUSE_MS: i64 = 1_000;

/// What the stored document of a partition says that its leader uses.
#[derive(Debug, Clone, Copy)]
pub struct StoredPartition<'a> {
    /// Grows with each change of the document.
    pub partition_epoch: i32,
    /// Brokers that have the partition.
    pub replicas: &'a [i32],
    /// The ISR.
    pub isr: &'a [i32],
    /// `min.insync.replicas`.
    pub min_isr: usize,
}

/// The ends of the leader's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// One past its last record.
    pub log_end: i64,
    /// What of it counts: less than `log_end` while records wait for the disk.
    pub replicated_end: i64,
}

/// An ISR that the leader asks the controller to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The epoch of the document that it changes.
    pub partition_epoch: i32,
    /// Members with the epochs of their registrations, -1 where it does not matter.
    pub new_isr: Vec<(i32, i64)>,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalOutcome {
    /// Stored.
    Accepted,
    /// The document has changed, or another broker leads: the leader will get the new document.
    Outdated,
    /// Not stored, for another reason.
    Refused,
    /// Not known: it may be stored or not.
    Undecided,
}

#[derive(Debug)]
struct Pending {
    proposal: Proposal,
    /// Whether an earlier try of it may have been stored.
    uncertain: bool,
}

/// The effects of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// The new high watermark, when it moved.
    pub high_watermark: Option<i64>,
    /// Whether a proposal waits to be sent.
    pub proposes: bool,
    /// Whether the lowest log start among live replicas may have moved.
    pub log_start: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Progress {
    node_id: i32,
    lag_max_ms: i64,
    /// Where the leader's epoch begins in its log.
    epoch_start: i64,
    replicated_end: i64,
    high_watermark: i64,
    partition_epoch: i32,
    isr: BTreeSet<i32>,
    min_isr: usize,
    followers: BTreeMap<i32, Follower>,
    /// Registered brokers among the followers, with their epochs.
    alive: BTreeMap<i32, i64>,
    pending: Option<Pending>,
    /// Until then there is no new proposal.
    quiet_until_ms: i64,
}

/// How the epoch of a leader begins.
#[derive(Debug, Clone, Copy)]
pub struct EpochStart {
    /// The leader.
    pub node_id: i32,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
    /// The ends of its log now; the epoch begins at `log_end`.
    pub ends: Ends,
    /// The high watermark that it knows.
    pub high_watermark: i64,
    /// The time.
    pub now_ms: i64,
}

impl Progress {
    /// The progress at the beginning of an epoch.
    pub fn new(start: EpochStart, stored: StoredPartition<'_>) -> Self {
        let mut progress = Self {
            node_id: start.node_id,
            lag_max_ms: start.lag_max_ms,
            epoch_start: start.ends.log_end,
            replicated_end: start.ends.replicated_end,
            high_watermark: start.high_watermark,
            partition_epoch: stored.partition_epoch,
            isr: BTreeSet::new(),
            min_isr: 1,
            followers: BTreeMap::new(),
            alive: BTreeMap::new(),
            pending: None,
            quiet_until_ms: i64::MIN,
        };
        progress.take_over(stored, start.now_ms);
        progress
    }

    fn take_over(&mut self, stored: StoredPartition<'_>, now_ms: i64) {
        self.partition_epoch = stored.partition_epoch;
        self.isr = stored.isr.iter().copied().collect();
        self.min_isr = stored.min_isr.min(stored.replicas.len());
        let node_id = self.node_id;
        let is_follower = |id: &i32| *id != node_id && stored.replicas.contains(id);
        self.followers.retain(|id, _| is_follower(id));
        self.alive.retain(|id, _| is_follower(id));
        for id in stored.replicas.iter().filter(|id| is_follower(id)) {
            self.followers.entry(*id).or_insert_with(|| Follower::new(self.isr.contains(id), now_ms));
        }
    }

    /// The leader's log grew, or more of it reached the disk.
    pub fn appended(&mut self, replicated_end: i64, now_ms: i64) -> Moved {
        self.replicated_end = self.replicated_end.max(replicated_end);
        let high_watermark = self.advance(replicated_end, now_ms);
        Moved { high_watermark, ..Moved::default() }
    }

    /// Follower `id`, registered as `broker_epoch`, asks for what follows `offset`; its log begins at `log_start`.
    pub fn fetched(
        &mut self,
        id: i32,
        broker_epoch: i64,
        (offset, log_start): (i64, i64),
        ends: Ends,
        now_ms: i64,
    ) -> Moved {
        if self.alive.get(&id) != Some(&broker_epoch) {
            return Moved::default();
        }
        let Some(follower) = self.followers.get_mut(&id) else { return Moved::default() };
        let log_start_moved = follower.log_start_offset != log_start;
        follower.fetched(offset, log_start, ends.log_end, now_ms);
        self.replicated_end = self.replicated_end.max(ends.replicated_end);
        let proposes = self.expand(id, ends.log_end, now_ms);
        let high_watermark = self.advance(ends.log_end, now_ms);
        Moved { high_watermark, proposes, log_start: log_start_moved }
    }

    /// Proposes to add `id`, and the others that may be added, when it has all committed records and all of earlier epochs.
    fn expand(&mut self, id: i32, log_end: i64, now_ms: i64) -> bool {
        if self.isr.contains(&id) || !self.may_propose(now_ms) || !self.may_join(id) {
            return false;
        }
        let others = self.followers.iter().filter(|(other, follower)| {
            self.may_join(**other) && follower.keeps_up(log_end, now_ms, self.lag_max_ms)
        });
        let mut new_isr = self.isr.clone();
        new_isr.insert(id);
        new_isr.extend(others.map(|(other, _)| *other));
        self.propose(&new_isr);
        true
    }

    fn may_join(&self, id: i32) -> bool {
        let is_there = |follower: &Follower| {
            follower.log_end_offset >= self.high_watermark && follower.log_end_offset >= self.epoch_start
        };
        self.alive.contains_key(&id) && self.followers.get(&id).is_some_and(is_there)
    }

    /// Proposes to remove the members that do not keep up.
    pub fn lagging(&mut self, log_end: i64, now_ms: i64) -> Moved {
        if !self.may_propose(now_ms) {
            return Moved::default();
        }
        let keeps_up = |id: &i32| {
            let follower = self.followers.get(id);
            // A member that is no replica any more is the controller's to remove.
            follower.is_none_or(|follower| follower.keeps_up(log_end, now_ms, self.lag_max_ms))
        };
        let new_isr: BTreeSet<i32> = self.isr.iter().copied().filter(keeps_up).collect();
        if new_isr.len() == self.isr.len() || new_isr.is_empty() {
            return Moved::default();
        }
        self.propose(&new_isr);
        Moved { proposes: true, ..Moved::default() }
    }

    fn may_propose(&self, now_ms: i64) -> bool {
        self.pending.is_none() && now_ms >= self.quiet_until_ms
    }

    fn propose(&mut self, new_isr: &BTreeSet<i32>) {
        let epoch = |id: &i32| (*id, self.alive.get(id).copied().unwrap_or(-1));
        let proposal =
            Proposal { partition_epoch: self.partition_epoch, new_isr: new_isr.iter().map(epoch).collect() };
        self.pending = Some(Pending { proposal, uncertain: false });
    }

    /// The proposal that is to be stored, if there is one.
    pub fn proposal(&self) -> Option<&Proposal> {
        self.pending.as_ref().map(|pending| &pending.proposal)
    }

    /// Takes the outcome of the proposal that was based on `partition_epoch`. Returns whether to send it again.
    pub fn answered(&mut self, partition_epoch: i32, outcome: ProposalOutcome, now_ms: i64) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        if pending.proposal.partition_epoch != partition_epoch {
            return false;
        }
        match outcome {
            // The document's next epoch ends the proposal or shows what became of it. If the proposal was lost, it is found when it is sent again.
            ProposalOutcome::Accepted | ProposalOutcome::Undecided => pending.uncertain = true,
            ProposalOutcome::Outdated if pending.uncertain => {}
            ProposalOutcome::Outdated | ProposalOutcome::Refused => {
                self.pending = None;
                self.quiet_until_ms = now_ms.saturating_add(REFUSED_PAUSE_MS);
            }
        }
        self.pending.is_some()
    }

    /// The document changed, in the same epoch of the leader; or `min.insync.replicas` did.
    pub fn stored(&mut self, stored: StoredPartition<'_>, log_end: i64, now_ms: i64) -> Moved {
        if stored.partition_epoch < self.partition_epoch {
            return Moved::default();
        }
        if stored.partition_epoch > self.partition_epoch {
            // Either this is what was proposed, or it came first and the proposal can never be stored.
            self.pending = None;
            self.quiet_until_ms = i64::MIN;
        }
        self.take_over(stored, now_ms);
        Moved { high_watermark: self.advance(log_end, now_ms), log_start: true, ..Moved::default() }
    }

    /// The brokers that are registered, with their epochs. Nothing is known any more of a follower that went away or came back.
    pub fn registered(&mut self, epoch_of: impl Fn(i32) -> Option<i64>, log_end: i64, now_ms: i64) -> Moved {
        for (id, follower) in &mut self.followers {
            let epoch = epoch_of(*id);
            if self.alive.get(id).is_some_and(|known| Some(*known) != epoch) {
                follower.forget();
            }
            match epoch {
                Some(epoch) => self.alive.insert(*id, epoch),
                None => self.alive.remove(id),
            };
        }
        Moved { high_watermark: self.advance(log_end, now_ms), log_start: true, ..Moved::default() }
    }

    /// Moves the high watermark as far as it may go.
    fn advance(&mut self, log_end: i64, now_ms: i64) -> Option<i64> {
        if self.is_under_min_isr() {
            return None;
        }
        let proposed = self.pending.as_ref().map(|pending| &pending.proposal.new_isr);
        let is_proposed = |id: i32| proposed.is_some_and(|isr| isr.iter().any(|(member, _)| *member == id));
        let is_waited_for = |id: i32, follower: &Follower| {
            self.isr.contains(&id)
                || is_proposed(id)
                || (self.alive.contains_key(&id) && follower.keeps_up(log_end, now_ms, self.lag_max_ms))
        };
        let counted = self.followers.iter().filter(|(id, follower)| is_waited_for(**id, follower));
        let ends = counted.map(|(_, follower)| follower.log_end_offset);
        let least = ends.fold(self.replicated_end, i64::min);
        (least > self.high_watermark).then(|| {
            self.high_watermark = least;
            least
        })
    }

    /// Whether fewer than `min.insync.replicas` are in sync.
    pub fn is_under_min_isr(&self) -> bool {
        self.isr.len() < self.min_isr
    }

    /// The least log start among the live replicas, the leader's being `own`; `None` while one of them was not heard of.
    pub fn low_watermark(&self, own: i64) -> Option<i64> {
        let live = self.followers.iter().filter(|(id, _)| self.alive.contains_key(id));
        let starts = live.map(|(_, follower)| follower.log_start_offset);
        Some(starts.fold(own, i64::min)).filter(|least| *least >= 0)
    }

    /// Where the epoch begins.
    pub fn epoch_start(&self) -> i64 {
        self.epoch_start
    }

    /// Whether a live follower is in sync, which could lead.
    pub fn has_successor(&self) -> bool {
        self.followers.keys().any(|id| self.isr.contains(id) && self.alive.contains_key(id))
    }

    /// What is committed.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// How far the followers are that were heard of.
    pub fn ends(&self) -> impl Iterator<Item = (i32, i64)> {
        let each = self.followers.iter().map(|(id, follower)| (*id, follower.log_end_offset));
        each.filter(|(_, end)| *end >= 0)
    }

    /// The stored members of the ISR among the followers.
    pub fn in_sync(&self) -> impl Iterator<Item = (i32, &Follower)> {
        self.followers.iter().filter(|(id, _)| self.isr.contains(id)).map(|(id, follower)| (*id, follower))
    }
}

#[cfg(test)]
mod tests;
