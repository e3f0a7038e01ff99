//! What is known of a transactional id, and how it changes. The caller decides whether a change is allowed.
//!
//! # Ids and epochs
//! `producer` is what the partitions of the open transaction know. A marker of version 2 carries one epoch more than the
//! batches, and that epoch is the producer's from then on. `next` is there when the producer goes on with something else
//! after the end: with a new id because its epochs are used up, or because it was restarted and keeps the transaction that
//! it prepared before (KIP-939); in the latter case it already speaks as `next`.
use std::collections::{BTreeMap, BTreeSet};

use super::requests::TransactionVersion;
use super::state::TxnState;
use pylog_wire::ErrorCode;

/// Stands for "none" in ids and epochs.
pub const NONE: i16 = -1;
/// [`NONE`], as an id.
pub const NO_ID: i64 = -1;
/// A transaction with this time-out never times out: it may be prepared (KIP-939).
pub const NEVER_MS: i32 = i32::MAX;
/// The last epoch that is given to a producer; one more is needed to fence it.
pub const LAST_EPOCH: i16 = i16::MAX - 1;

/// A producer's id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProducerIdentity {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

impl ProducerIdentity {
    /// Whether it has no epoch left.
    pub const fn is_exhausted(self) -> bool {
        self.epoch >= LAST_EPOCH
    }

    /// With the next epoch.
    pub const fn raised(self) -> Self {
        Self { id: self.id, epoch: self.epoch.saturating_add(1) }
    }
}

/// Partitions by topic.
pub type TxnPartitions = BTreeMap<String, BTreeSet<i32>>;

/// What is known of a transactional id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMetadata {
    /// As the partitions know it. The epoch is [`NONE`] until one was given out.
    pub producer: ProducerIdentity,
    /// The producer that goes on after the end.
    pub next: Option<ProducerIdentity>,
    /// The epoch before, for a repeated request; not in the log. [`NONE`]: no request may be repeated.
    pub last_epoch: i16,
    /// The id before, for a repeated request.
    pub previous_id: i64,
    /// How long a transaction may be open.
    pub timeout_ms: i32,
    /// Its state.
    pub state: TxnState,
    /// Partitions of the transaction; while it ends, those that lack the marker.
    pub partitions: TxnPartitions,
    /// When the transaction began; -1 without one.
    pub start_ms: i64,
    /// When anything changed.
    pub last_update_ms: i64,
    /// What the producer speaks.
    pub version: TransactionVersion,
    /// Bytes that it takes in memory, as the machine counted last; not in the log.
    pub bytes: usize,
}

/// About how many bytes a transactional id takes besides its name and its partitions.
const ID_BYTES: usize = 600;

/// About how many bytes a transactional id of this name takes in memory with `partitions`. Its name is in its deadlines, too: one that
/// follows from its state, and one for the line about a transaction that stays open.
pub fn cost(transactional_id: &str, partitions: &TxnPartitions) -> usize {
    ID_BYTES + 6 * transactional_id.len() + partitions_cost(partitions)
}

/// About how many bytes partitions take in memory.
pub fn partitions_cost(partitions: &TxnPartitions) -> usize {
    partitions.iter().map(|(topic, numbers)| 100 + topic.len() + 16 * numbers.len()).sum()
}

impl TxnMetadata {
    /// Of a new transactional id.
    pub fn new(producer_id: i64, now_ms: i64) -> Self {
        Self {
            producer: ProducerIdentity { id: producer_id, epoch: NONE },
            next: None,
            last_epoch: NONE,
            previous_id: NO_ID,
            timeout_ms: 0,
            state: TxnState::Empty,
            partitions: TxnPartitions::new(),
            start_ms: -1,
            last_update_ms: now_ms,
            version: TransactionVersion::V0,
            bytes: 0,
        }
    }

    /// Whose requests are taken now.
    pub fn speaker(&self) -> ProducerIdentity {
        self.next.filter(|_| self.state == TxnState::Ongoing).unwrap_or(self.producer)
    }

    /// Whether the transaction never times out.
    pub fn never_times_out(&self) -> bool {
        self.timeout_ms == NEVER_MS
    }

    /// Whether a producer with this id may ask for another epoch: it is the one, or was until its epochs were used up and
    /// did not get the answer.
    pub fn is_or_was(&self, asked: ProducerIdentity) -> bool {
        self.producer.epoch == NONE
            || asked.id == self.producer.id
            || self.next.is_some_and(|next| next.id == asked.id)
            || (asked.id == self.previous_id && asked.is_exhausted())
    }

    /// Whether the producer can only go on with a new id; `expected` is what it says it has.
    pub fn must_rotate(&self, expected: Option<ProducerIdentity>) -> bool {
        let fenced = self.producer.epoch == i16::MAX;
        self.producer.is_exhausted()
            && expected.is_none_or(|expected| {
                expected == self.producer || (fenced && expected.epoch == self.last_epoch)
            })
    }

    /// Gives the producer its next epoch; `expected` is the one it has.
    ///
    /// # Errors
    /// [`ErrorCode::ProducerFenced`] when another producer got an epoch in between.
    pub fn raise_epoch(
        &mut self,
        expected: Option<i16>,
        timeout_ms: i32,
        now_ms: i64,
    ) -> Result<(), ErrorCode> {
        let current = self.producer.epoch;
        match expected {
            None => {
                self.last_epoch = NONE;
                self.producer = self.producer.raised();
            }
            Some(expected) if current == NONE || expected == current => {
                self.last_epoch = current;
                self.producer = self.producer.raised();
            }
            // The same request again: its answer was lost.
            Some(expected) if expected == self.last_epoch => {}
            Some(_) => return Err(ErrorCode::ProducerFenced),
        }
        self.empty(timeout_ms, now_ms);
        Ok(())
    }

    /// Gives the producer a new id, because it has no epoch left.
    pub fn rotate(&mut self, id: i64, repeatable: bool, timeout_ms: i32, now_ms: i64) {
        self.last_epoch = if repeatable { self.producer.epoch } else { NONE };
        self.previous_id = self.producer.id;
        self.producer = ProducerIdentity { id, epoch: 0 };
        self.empty(timeout_ms, now_ms);
    }

    fn empty(&mut self, timeout_ms: i32, now_ms: i64) {
        self.enter(TxnState::Empty, now_ms);
        self.timeout_ms = timeout_ms;
        self.partitions.clear();
        self.start_ms = -1;
        self.next = None;
    }

    /// Gives a restarted producer an epoch without touching its open transaction.
    pub fn keep(&mut self, next: ProducerIdentity, timeout_ms: i32, now_ms: i64) {
        self.enter(TxnState::Ongoing, now_ms);
        self.next = Some(next);
        self.timeout_ms = timeout_ms;
    }

    /// Adds partitions, and begins a transaction when there is none.
    pub fn add(&mut self, partitions: TxnPartitions, version: TransactionVersion, now_ms: i64) {
        if self.state != TxnState::Ongoing {
            self.start_ms = now_ms;
        }
        self.enter(TxnState::Ongoing, now_ms);
        self.version = version;
        for (topic, numbers) in partitions {
            self.partitions.entry(topic).or_default().extend(numbers);
        }
    }

    /// Whether all are part of the transaction.
    pub fn contains(&self, partitions: &TxnPartitions) -> bool {
        partitions
            .iter()
            .all(|(topic, numbers)| self.partitions.get(topic).is_some_and(|known| numbers.is_subset(known)))
    }

    /// Decides the end. `fresh_id` is the id to go on with when the epochs of who speaks are used up.
    pub fn prepare(
        &mut self,
        end: TxnState,
        version: TransactionVersion,
        fresh_id: Option<i64>,
        now_ms: i64,
    ) {
        let speaker = self.speaker();
        if self.state != TxnState::Ongoing {
            self.start_ms = now_ms;
        }
        if version.bumps_epoch() {
            self.previous_id = speaker.id;
            self.last_epoch = self.producer.epoch;
            self.producer = self.producer.raised();
            self.next = match fresh_id {
                Some(id) => Some(ProducerIdentity { id, epoch: 0 }),
                None => self.next.map(ProducerIdentity::raised),
            };
        }
        self.version = version;
        self.enter(end, now_ms);
    }

    /// Every partition has its marker.
    pub fn complete(&mut self, now_ms: i64) {
        let end = if self.state == TxnState::PrepareCommit {
            TxnState::CompleteCommit
        } else {
            TxnState::CompleteAbort
        };
        self.enter(end, now_ms);
        self.partitions.clear();
        if let Some(next) = self.next.take() {
            self.last_epoch = self.producer.epoch;
            self.producer = next;
        }
    }

    /// The producer that goes on when the decided end is complete.
    pub fn successor(&self) -> ProducerIdentity {
        self.next.unwrap_or(self.producer)
    }

    fn enter(&mut self, state: TxnState, now_ms: i64) {
        debug_assert!(state.may_follow(self.state), "{state:?} after {:?}", self.state);
        self.state = state;
        // A clock that is set back must not make the id look younger than it was.
        self.last_update_ms = self.last_update_ms.max(now_ms);
    }
}
