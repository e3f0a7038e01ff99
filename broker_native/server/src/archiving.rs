//! What Python needs to copy the logs that this broker leads to the archive: which ones, how far, and their batches.
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::shared::Shared;
use crate::state::archives::Archived;
use crate::state::topics::{Partition, Topic};
use pylog_record::batches::batches;
use pylog_storage::{PartitionLog, ReadUpTo, StorageError};

/// A partition that this broker leads, of a topic that is archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedPartition {
    /// Name of the topic.
    pub topic: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Number of the partition.
    pub partition: i32,
    /// The epoch in which it is led.
    pub leader_epoch: i32,
    /// First offset of the log here.
    pub log_start_offset: i64,
    /// Whether it is copied (`remote.log.copy.disable` does not say otherwise).
    pub is_copied: bool,
    /// The offset up to which the log may be copied.
    pub closed_until: i64,
    /// Bytes here that the archive does not have, about.
    pub bytes_here: u64,
    /// `retention.ms` and `retention.bytes`.
    pub retention: (i64, i64),
    /// What groups of `retention.until.checkpointed` need, where there are any: from which offset on, for how long at most, and up to which size.
    pub needed: Option<(i64, i64, i64)>,
    /// Whether it is known here what the archive has.
    pub is_known: bool,
}

/// All of them, in no order. What is known of others is forgotten.
pub fn archived_partitions(shared: &Shared) -> Vec<ArchivedPartition> {
    let topics = shared.topics.now();
    let mut found = Vec::new();
    if shared.cluster.may_lead() {
        for topic in topics.all() {
            found.extend(topic.partitions.iter().filter_map(|partition| described(shared, topic, partition)));
        }
    }
    let led: HashSet<_> = found.iter().map(|each| (each.topic_id, each.partition)).collect();
    shared.archives.keep(&led);
    found
}

fn described(shared: &Shared, topic: &Topic, partition: &Partition) -> Option<ArchivedPartition> {
    let (log, spec) = (partition.log.as_ref().ok()?, &partition.spec);
    let config = log.config();
    if spec.leader != shared.settings.node_id || !config.remote_storage_enable {
        return None;
    }
    let known = shared.archives.of(topic.id, spec.partition, spec.leader_epoch);
    let (most_ms, most_bytes) =
        (config.retention_until_checkpointed_max_ms, config.retention_until_checkpointed_max_bytes);
    Some(ArchivedPartition {
        topic: topic.name.clone(),
        topic_id: topic.id,
        partition: spec.partition,
        leader_epoch: spec.leader_epoch,
        log_start_offset: log.offsets().log_start_offset,
        is_copied: config.copies_to_archive(),
        closed_until: log.closed_until(),
        bytes_here: log.bytes_from(known.as_ref().map_or(0, |archived| archived.end)),
        retention: (config.retention_ms, config.retention_bytes),
        needed: config.keeps_for_groups().then(|| (log.needed_from(), most_ms, most_bytes)),
        is_known: known.is_some(),
    })
}

/// Batches of a log from `offset` on, about `max_bytes` of them, and the offset behind them; `None` when this broker does not lead it in
/// that epoch any more.
///
/// # Errors
/// Those of the log.
pub fn read(
    shared: &Shared,
    (topic_id, partition, leader_epoch): (Uuid, i32, i32),
    offset: i64,
    max_bytes: usize,
) -> Result<Option<(Vec<u8>, i64)>, StorageError> {
    let Some(log) = led_log(shared, topic_id, partition, leader_epoch) else { return Ok(None) };
    let slice = log.read(offset, max_bytes, true, ReadUpTo::LastStable)?;
    slice.read().map(|batches| Some((batches, slice.next_offset))).map_err(|error| StorageError::Io {
        action: "read",
        file: log.dir().to_owned(),
        kind: error.kind(),
        reason: error.to_string(),
    })
}

/// Those of some batches that begin before an offset; bytes that are no batch are left out, with all behind them.
pub fn before(data: &Bytes, end: i64) -> Bytes {
    let found = batches(data).map_while(Result::ok).take_while(|(header, _)| header.base_offset < end);
    let len = found.map(|(_, batch)| batch.len()).sum::<usize>();
    data.slice(..len)
}

/// The largest epoch up to `epoch` in a log, and where it ends there; `None` when that is not known, or not led here.
pub fn epoch_end(shared: &Shared, topic_id: Uuid, partition: i32, epoch: i32) -> Option<(i32, i64)> {
    let topics = shared.topics.now();
    let partition = topics.with_id(&topic_id)?.partition(partition)?;
    partition.log.as_ref().ok()?.epoch_end_offset(epoch)
}

/// This is what the archive has of a partition now; false when this broker does not lead it in that epoch any more.
pub fn set_archived(shared: &Shared, topic_id: Uuid, partition: i32, archived: Archived) -> bool {
    let Some(log) = led_log(shared, topic_id, partition, archived.leader_epoch) else { return false };
    log.set_archived_until(archived.end);
    shared.archives.set(topic_id, partition, archived);
    true
}

/// The log of a partition that this broker leads in that epoch.
fn led_log(shared: &Shared, topic_id: Uuid, partition: i32, leader_epoch: i32) -> Option<Arc<PartitionLog>> {
    let topics = shared.topics.now();
    let found = topics.with_id(&topic_id)?.partition(partition)?;
    let spec = &found.spec;
    let is_led = spec.leader == shared.settings.node_id
        && spec.leader_epoch == leader_epoch
        && shared.cluster.may_lead();
    let log = found.log.as_ref().ok().filter(|_| is_led)?;
    Some(Arc::clone(log))
}
