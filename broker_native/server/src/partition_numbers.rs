//! What monitoring shows of the partitions that this broker has.
use serde::Serialize;

use crate::shared::Shared;
use crate::state::topics::Partition;

/// One replica of this broker. Each number is right; two of them may be a moment apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionNumbers {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// Whether this broker leads it.
    pub leads: bool,
    /// Whether the log cannot be used; the offsets and the size are 0 then.
    pub offline: bool,
    /// Replicas that it should have.
    pub replicas: usize,
    /// Those in sync.
    pub in_sync: usize,
    /// First readable offset.
    pub log_start_offset: i64,
    /// One past the last acknowledged record.
    pub high_watermark: i64,
    /// One past the last written record.
    pub log_end_offset: i64,
    /// Bytes of its segments.
    pub size_bytes: u64,
    /// Of one that this broker leads and copies to the archive: closed segments that are not there yet, and their bytes.
    pub copy_lag: Option<(u64, u64)>,
}

/// Of all partitions that this broker is a replica of, in no order.
pub fn partition_numbers(shared: &Shared) -> Vec<PartitionNumbers> {
    let node_id = shared.settings.node_id;
    let topics = shared.topics.now();
    let mut all = Vec::new();
    for topic in topics.all() {
        let here = topic.partitions.iter().filter(|each| each.log.is_ok() || each.is_offline());
        all.extend(here.map(|each| {
            numbers(&topic.name, each, each.spec.leader == node_id && shared.cluster.may_lead())
        }));
    }
    all
}

fn numbers(topic: &str, partition: &Partition, leads: bool) -> PartitionNumbers {
    let (log, spec) = (partition.log.as_ref().ok(), &partition.spec);
    let offsets = log.map(|log| log.offsets());
    PartitionNumbers {
        topic: topic.to_owned(),
        partition: spec.partition,
        leads,
        offline: log.is_none(),
        replicas: spec.replicas.len(),
        in_sync: spec.isr.len(),
        log_start_offset: offsets.map_or(0, |offsets| offsets.log_start_offset),
        high_watermark: offsets.map_or(0, |offsets| offsets.high_watermark),
        log_end_offset: offsets.map_or(0, |offsets| offsets.log_end_offset),
        size_bytes: log.map_or(0, |log| log.size_bytes()),
        copy_lag: log
            .filter(|log| leads && log.config().copies_to_archive())
            .map(|log| log.closed_and_not_archived()),
    }
}
