//! A share partition as a record of `__share_group_state`, and back.
use super::partition::{Run, SharePartition, State};
use super::requests::ShareKey;
use crate::coordinator::Record;
use crate::wire::WireError;
use crate::wire::stored::Stored;
use crate::wire::stored::shares::{SHARE_SNAPSHOT, ShareSnapshotKey, ShareSnapshotValue, StateBatch};

const AVAILABLE: i8 = 0;
const ACKNOWLEDGED: i8 = 2;
const ARCHIVED: i8 = 4;
const VALUE: i16 = 0;

/// The record that says how `partition` is now; `None`: that it is gone.
///
/// # Errors
/// [`WireError::TooLong`] for a group whose name is too long for a record.
pub fn record(key: &ShareKey, partition: Option<&SharePartition>, now_ms: i64) -> Result<Record, WireError> {
    let stored_key =
        ShareSnapshotKey { group_id: key.group_id.clone(), topic_id: key.topic_id, partition: key.partition };
    let value = partition.map(|partition| value_of(partition, now_ms).to_bytes(VALUE)).transpose()?;
    Ok(Record { key: stored_key.to_bytes(SHARE_SNAPSHOT)?, value })
}

/// Reads a record.
///
/// # Errors
/// What is wrong with it.
pub fn read(record: &Record) -> Result<(ShareKey, Option<SharePartition>), WireError> {
    let ShareSnapshotKey { group_id, topic_id, partition } = ShareSnapshotKey::from_bytes(&record.key)?;
    let value = record.value.as_ref().map(ShareSnapshotValue::from_bytes).transpose()?;
    Ok((ShareKey { group_id, topic_id, partition }, value.map(|value| partition_of(&value))))
}

fn value_of(partition: &SharePartition, now_ms: i64) -> ShareSnapshotValue {
    ShareSnapshotValue {
        snapshot_epoch: partition.snapshot_epoch,
        state_epoch: partition.state_epoch,
        leader_epoch: 0,
        start_offset: partition.start_offset,
        delivery_complete_count: i32::try_from(partition.complete_count()).unwrap_or(i32::MAX),
        create_timestamp: partition.created_ms,
        write_timestamp: now_ms,
        state_batches: partition.runs().filter_map(|(first, run)| batch_of(first, run)).collect(),
    }
}

/// Nothing of records that are as if nobody had ever had them. A delivery that goes on is not known to have happened.
fn batch_of(first_offset: i64, run: &Run) -> Option<StateBatch> {
    let (delivery_state, delivery_count) = match run.state {
        State::Available => (AVAILABLE, run.delivery_count),
        State::Acquired { .. } => (AVAILABLE, run.delivery_count.saturating_sub(1)),
        State::Acknowledged => (ACKNOWLEDGED, run.delivery_count),
        State::Archived => (ARCHIVED, run.delivery_count),
    };
    let is_untouched = delivery_state == AVAILABLE && delivery_count == 0;
    let batch = StateBatch { first_offset, last_offset: run.last, delivery_state, delivery_count };
    (!is_untouched).then_some(batch)
}

fn partition_of(value: &ShareSnapshotValue) -> SharePartition {
    let mut partition = SharePartition::new(value.start_offset, value.create_timestamp);
    partition.state_epoch = value.state_epoch;
    partition.snapshot_epoch = value.snapshot_epoch;
    for batch in &value.state_batches {
        // What is not mentioned was not delivered; what is behind the start already, or upside down, counts for nothing.
        if batch.first_offset < partition.end_offset || batch.last_offset < batch.first_offset {
            continue;
        }
        if batch.first_offset > partition.end_offset {
            partition.push(batch.first_offset - 1, State::Available, 0);
        }
        let state = match batch.delivery_state {
            ACKNOWLEDGED => State::Acknowledged,
            ARCHIVED => State::Archived,
            _ => State::Available,
        };
        partition.push(batch.last_offset, state, batch.delivery_count);
    }
    partition.advance();
    partition.dirty = false;
    partition
}
