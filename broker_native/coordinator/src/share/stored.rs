//! A share partition as a record of `__share_group_state` and as its leader says it, and back.
use super::partition::{RecordState, Run, SharePartition};
use super::requests::ShareKey;
use super::state_requests::{StoredState, Written};
use crate::Record;
use pylog_wire::WireError;
use pylog_wire::stored::shares::{SHARE_SNAPSHOT, ShareSnapshotKey, ShareSnapshotValue, StateBatch};
use pylog_wire::stored::{Stored, read_value};

const AVAILABLE: i8 = 0;
const ACKNOWLEDGED: i8 = 2;
const ARCHIVED: i8 = 4;
const VALUE: i16 = 0;

/// The record that says how a share partition is now; `None`: that it is gone.
///
/// # Errors
/// [`WireError::TooLong`] for a group whose name is too long for a record.
pub fn record(key: &ShareKey, value: Option<&ShareSnapshotValue>) -> Result<Record, WireError> {
    let stored_key =
        ShareSnapshotKey { group_id: key.group_id.clone(), topic_id: key.topic_id, partition: key.partition };
    let value = value.map(|value| value.to_bytes(VALUE)).transpose()?;
    Ok(Record { key: stored_key.to_bytes(SHARE_SNAPSHOT)?, value })
}

/// Reads a record.
///
/// # Errors
/// What is wrong with it.
pub fn read(record: &Record) -> Result<(ShareKey, Option<ShareSnapshotValue>), WireError> {
    let ShareSnapshotKey { group_id, topic_id, partition } = ShareSnapshotKey::from_bytes(&record.key)?;
    Ok((ShareKey { group_id, topic_id, partition }, read_value(record.value.as_ref())?))
}

/// What the leader of the partition says of a share partition.
pub fn written(partition: &SharePartition, leader_epoch: i32) -> Written {
    Written {
        state_epoch: partition.state_epoch,
        leader_epoch,
        start_offset: partition.start_offset,
        batches: partition.runs().filter_map(|(first, run)| batch_of(first, run)).collect(),
    }
}

/// `None` for records that were never delivered. A delivery that is under way counts as one that has not happened.
fn batch_of(first_offset: i64, run: &Run) -> Option<StateBatch> {
    let (delivery_state, delivery_count) = match run.state {
        RecordState::Available => (AVAILABLE, run.delivery_count),
        RecordState::Acquired { .. } => (AVAILABLE, run.delivery_count.saturating_sub(1)),
        RecordState::Acknowledged => (ACKNOWLEDGED, run.delivery_count),
        RecordState::Archived => (ARCHIVED, run.delivery_count),
    };
    let is_untouched = delivery_state == AVAILABLE && delivery_count == 0;
    let batch = StateBatch { first_offset, last_offset: run.last, delivery_state, delivery_count };
    (!is_untouched).then_some(batch)
}

/// What a leader goes on with.
pub fn partition_of(kept: &StoredState) -> SharePartition {
    let mut partition = SharePartition::new(kept.start_offset);
    partition.state_epoch = kept.state_epoch;
    for batch in &kept.batches {
        // What is not mentioned was not delivered; what is behind the start already, or upside down, counts for nothing.
        if batch.first_offset < partition.end_offset || batch.last_offset < batch.first_offset {
            continue;
        }
        if batch.first_offset > partition.end_offset {
            partition.push(batch.first_offset - 1, RecordState::Available, 0);
        }
        let state = match batch.delivery_state {
            ACKNOWLEDGED => RecordState::Acknowledged,
            ARCHIVED => RecordState::Archived,
            _ => RecordState::Available,
        };
        partition.push(batch.last_offset, state, batch.delivery_count);
    }
    partition.advance();
    partition.dirty = false;
    partition
}
