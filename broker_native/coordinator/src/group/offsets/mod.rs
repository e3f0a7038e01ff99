//! The offsets of one group.
//!
//! A committed offset counts at once; one that is part of a transaction is pending until the transaction's marker. Of two
//! for the same partition the one that lies later in the log counts, also when it was pending meanwhile.
//!
//! | file | what it does |
//! |---|---|
//! | [`commit`] | OffsetCommit, TxnOffsetCommit |
//! | [`fetch`] | OffsetFetch |
//! | [`forget`] | OffsetDelete, DeleteGroups, expiry, deleted topics |
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Record;
use pylog_record::TopicPartition;
use pylog_wire::WireError;
use pylog_wire::stored::offsets::{OffsetCommitValue, commit_key, commit_value};

pub mod commit;
pub mod fetch;
pub mod forget;
#[cfg(test)]
mod tests;

/// What an offset costs besides its texts, about.
const OFFSET_BYTES: usize = 200;

/// By topic, then by partition.
pub type ByPartition<T> = BTreeMap<String, BTreeMap<i32, T>>;

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Next offset to read.
    pub offset: i64,
    /// Epoch of the leader it was read from; -1: unknown.
    pub leader_epoch: i32,
    /// The committer's text.
    pub metadata: String,
    /// Milliseconds since the epoch.
    pub commit_timestamp_ms: i64,
    /// Milliseconds since the epoch; -1: by the broker's retention.
    pub expire_timestamp_ms: i64,
    /// Its place among all commits of the machine: later ones are larger.
    pub order: i64,
}

impl CommittedOffset {
    /// What it costs, about.
    pub fn bytes(&self, topic: &str) -> usize {
        OFFSET_BYTES + topic.len() + self.metadata.len()
    }

    /// From the log.
    pub fn of(value: OffsetCommitValue, order: i64) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata,
            commit_timestamp_ms: value.commit_timestamp,
            expire_timestamp_ms: value.expire_timestamp,
            order,
        }
    }
}

/// The offsets of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupOffsets {
    committed: ByPartition<CommittedOffset>,
    /// By producer id.
    pending: HashMap<i64, ByPartition<CommittedOffset>>,
    bytes: usize,
}

impl GroupOffsets {
    /// Whether there is none, not even a transaction that may bring one.
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }

    /// What they cost, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is committed.
    pub fn committed(&self) -> &ByPartition<CommittedOffset> {
        &self.committed
    }

    /// The committed offset of a partition.
    pub fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.committed.get(topic)?.get(&partition)
    }

    /// Whether an open transaction may change the partition's offset.
    pub fn is_pending(&self, topic: &str, partition: i32) -> bool {
        let has = |offsets: &ByPartition<CommittedOffset>| {
            offsets.get(topic).is_some_and(|t| t.contains_key(&partition))
        };
        self.pending.values().any(has)
    }

    /// All partitions with an offset, pending or not.
    pub fn partitions(&self) -> BTreeSet<TopicPartition> {
        let all = self.pending.values().chain([&self.committed]).flatten();
        all.flat_map(|(topic, partitions)| {
            partitions.keys().map(|&number| TopicPartition::new(topic, number))
        })
        .collect()
    }

    /// Commits, at once or when `producer_id`'s transaction does.
    pub fn put(&mut self, topic: &str, partition: i32, committed: CommittedOffset, producer_id: Option<i64>) {
        let into = match producer_id {
            None => &mut self.committed,
            Some(producer_id) => self.pending.entry(producer_id).or_default(),
        };
        self.bytes += committed.bytes(topic);
        self.bytes = self.bytes.saturating_sub(insert(into, topic, partition, committed));
    }

    /// Forgets the partition's offset, and what open transactions would make of it.
    pub fn remove(&mut self, topic: &str, partition: i32) {
        let mut bytes = remove(&mut self.committed, topic, partition);
        self.pending.retain(|_, pending| {
            bytes += remove(pending, topic, partition);
            !pending.is_empty()
        });
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Ends the producer's transaction.
    pub fn end(&mut self, producer_id: i64, commit: bool) {
        let Some(pending) = self.pending.remove(&producer_id) else { return };
        for (topic, partitions) in pending {
            for (partition, committed) in partitions {
                let bytes = committed.bytes(&topic);
                let counts = self.get(&topic, partition).is_none_or(|known| known.order < committed.order);
                let gone = match commit && counts {
                    true => insert(&mut self.committed, &topic, partition, committed),
                    false => bytes,
                };
                self.bytes = self.bytes.saturating_sub(gone);
            }
        }
    }
}

/// Inserts; gives what the offset before costs, which is gone.
fn insert(
    into: &mut ByPartition<CommittedOffset>,
    topic: &str,
    partition: i32,
    committed: CommittedOffset,
) -> usize {
    let Some(partitions) = into.get_mut(topic) else {
        into.insert(topic.to_owned(), BTreeMap::from([(partition, committed)]));
        return 0;
    };
    partitions.insert(partition, committed).map_or(0, |before| before.bytes(topic))
}

/// Removes; gives what the offset cost.
fn remove(from: &mut ByPartition<CommittedOffset>, topic: &str, partition: i32) -> usize {
    let Some(partitions) = from.get_mut(topic) else { return 0 };
    let removed = partitions.remove(&partition);
    if partitions.is_empty() {
        from.remove(topic);
    }
    removed.map_or(0, |before| before.bytes(topic))
}

/// The record of an offset; of none, the one that deletes it.
fn record(
    group_id: &str,
    topic: &str,
    partition: i32,
    committed: Option<&CommittedOffset>,
) -> Result<Record, WireError> {
    let value = match committed {
        None => None,
        Some(committed) => Some(commit_value(
            committed.offset,
            committed.leader_epoch,
            &committed.metadata,
            committed.commit_timestamp_ms,
            committed.expire_timestamp_ms,
        )?),
    };
    Ok(Record { key: commit_key(group_id, topic, partition)?, value })
}
