//! ListOffsets: the offset at a time, or at an end of the log.
//!
//! KIP-79. Version 2 has the isolation level (KIP-98); 4 the leader's epoch (KIP-320); 5 knows OFFSET_NOT_AVAILABLE
//! (KIP-207); 7 asks for the record with the largest timestamp (KIP-734); 8, 9 and 11 for places in tiered storage (KIP-405,
//! KIP-1005, KIP-1023); 10 has a timeout for those (KIP-1075).
use std::collections::HashSet;
use std::sync::Arc;

use super::common::archived::ask_and_wait;
use super::common::lookup::{is_replica, led};
use crate::authorization::table::{LIST_OFFSETS_REPLICA, LIST_OFFSETS_TOPIC};
use crate::call::{Call, Outcome, Reply, guarded_now};
use crate::errors::of_storage;
use crate::state::archives::{Answered, Archived, Wanted};
use crate::state::topics::{Partition, Topic};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::list_offsets::{
    self as asks, ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use pylog_wire::messages::{ListOffsetsRequest, ListOffsetsResponse};

/// Stands for "no offset" and "no timestamp".
const NONE: i64 = -1;
const READ_COMMITTED: i8 = 1;
/// Older clients do not know OFFSET_NOT_AVAILABLE.
const NOT_AVAILABLE_FROM: i16 = 5;

/// Looks each partition up by itself. To find a time batches are decompressed, which may take long.
pub fn handle(call: Call, request: ListOffsetsRequest) -> Outcome {
    let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    match asked.any(|partition| partition.timestamp >= 0 || partition.timestamp == asks::MAX_TIMESTAMP) {
        true => Outcome::slowly(call, move |call| found(call, &request)),
        false => Outcome::Now(found(&call, &request)),
    }
}

fn found(call: &Call, request: &ListOffsetsRequest) -> Reply {
    let topics = call.shared.topics.now();
    let repeated = repeated(request);
    let may_copy = request.replica_id < 0 || call.may_cluster(&LIST_OFFSETS_REPLICA);
    let results = request.topics.iter().map(|asked| {
        let allowed = match may_copy {
            true => call.check(&LIST_OFFSETS_TOPIC, &asked.name),
            false => Err(LIST_OFFSETS_REPLICA.error()),
        };
        let topic = topics.named(&asked.name);
        let mut answered = HashSet::new();
        let once = asked.partitions.iter().filter(|partition| answered.insert(partition.partition_index));
        let partitions = once.map(|partition| {
            let blank = ListOffsetsPartitionResponse {
                partition_index: partition.partition_index,
                ..Default::default()
            };
            let is_repeated = repeated.contains(&(asked.name.as_str(), partition.partition_index));
            let found = match (allowed, is_repeated) {
                (Err(error), _) => Err(error),
                (Ok(()), true) => Err(ErrorCode::InvalidRequest),
                (Ok(()), false) => guarded_now(&call.shared, || find(call, topic, partition, request))
                    .unwrap_or(Err(ErrorCode::UnknownServerError)),
            };
            match found {
                Ok((offset, timestamp, leader_epoch)) => {
                    ListOffsetsPartitionResponse { offset, timestamp, leader_epoch, ..blank }
                }
                Err(error) => ListOffsetsPartitionResponse { error_code: error.code(), ..blank },
            }
        });
        ListOffsetsTopicResponse { name: asked.name.clone(), partitions: partitions.collect() }
    });
    call.answer(&ListOffsetsResponse { topics: results.collect(), ..Default::default() })
}

/// Offset, timestamp, leader epoch.
fn find(
    call: &Call,
    topic: Option<&Arc<Topic>>,
    asked: &asks::ListOffsetsPartition,
    request: &ListOffsetsRequest,
) -> Result<(i64, i64, i32), ErrorCode> {
    let by_replica = request.replica_id >= 0;
    if by_replica && !is_replica(&call.shared, topic, asked.partition_index, request.replica_id) {
        return Err(ErrorCode::ClusterAuthorizationFailed);
    }
    if asked.timestamp < 0 && !is_known(asked.timestamp, call.version) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let (partition, log) = led(&call.shared, topic, asked.partition_index, asked.current_leader_epoch)?;
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let offsets = log.offsets();
    let end = match request.isolation_level {
        _ if by_replica => offsets.log_end_offset,
        READ_COMMITTED => offsets.last_stable_offset,
        _ => offsets.high_watermark,
    };
    let known = match by_replica {
        true => Ok(()),
        false => is_end_known(partition, offsets.high_watermark, call.version),
    };
    let epoch = partition.spec.leader_epoch;
    let visible = |found: Option<(i64, i64)>| match found.filter(|(offset, _)| *offset < end) {
        Some((offset, timestamp)) => Ok((offset, timestamp, epoch)),
        // It may be among what is not known to be committed yet.
        None => known.map(|()| (NONE, NONE, -1)),
    };
    let failed = |error| of_storage(&error);
    match asked.timestamp {
        asks::LATEST => known.map(|()| (end, NONE, epoch)),
        asks::EARLIEST_LOCAL => Ok((offsets.log_start_offset, NONE, epoch)),
        asks::EARLIEST if by_replica => Ok((offsets.log_start_offset, NONE, epoch)),
        asks::EARLIEST => {
            let start = call.shared.archives.start(topic, partition, log).map_err(|_| not_yet(call.version));
            Ok((start?, NONE, epoch))
        }
        asks::MAX_TIMESTAMP => visible(log.max_timestamp_offset().map_err(failed)?),
        // Nothing is in tiered storage, nor will be.
        asks::LATEST_TIERED | asks::EARLIEST_PENDING_UPLOAD if !log.config().remote_storage_enable => {
            Ok((NONE, NONE, -1))
        }
        asks::LATEST_TIERED => match known_archive(call, topic, partition)? {
            archived if archived.start < archived.end => Ok((archived.end - 1, NONE, epoch)),
            _ => Ok((NONE, NONE, -1)),
        },
        asks::EARLIEST_PENDING_UPLOAD => {
            let archived = known_archive(call, topic, partition)?;
            Ok((archived.end.max(offsets.log_start_offset), NONE, epoch))
        }
        timestamp_ms => {
            if let Some((offset, timestamp)) = find_archived(call, topic, partition, log, timestamp_ms)? {
                return Ok((offset, timestamp, epoch));
            }
            visible(log.offset_for_timestamp(timestamp_ms).map_err(failed)?)
        }
    }
}

/// Whether the end of what is committed is known: a new leader knows it once everything before its epoch is committed. Until then its
/// high watermark could be lower than the one that clients were given by the leader before.
fn is_end_known(partition: &Partition, high_watermark: i64, version: i16) -> Result<(), ErrorCode> {
    let is_behind = partition
        .leader_state
        .as_ref()
        .is_some_and(|leader_state| leader_state.epoch_start() > high_watermark);
    if is_behind { Err(not_yet(version)) } else { Ok(()) }
}

/// The error for what will be known soon.
fn not_yet(version: i16) -> ErrorCode {
    match version >= NOT_AVAILABLE_FROM {
        true => ErrorCode::OffsetNotAvailable,
        false => ErrorCode::LeaderNotAvailable,
    }
}

/// What the archive has of a partition that is archived.
fn known_archive(call: &Call, topic: &Topic, partition: &Partition) -> Result<Arc<Archived>, ErrorCode> {
    let (archives, spec) = (&call.shared.archives, &partition.spec);
    archives.of(topic.id, spec.partition, spec.leader_epoch).ok_or_else(|| {
        archives.miss();
        not_yet(call.version)
    })
}

/// The first record at this time or later, where only the archive has it. Called by a thread for slow requests.
fn find_archived(
    call: &Call,
    topic: &Topic,
    partition: &Partition,
    log: &PartitionLog,
    timestamp_ms: i64,
) -> Result<Option<(i64, i64)>, ErrorCode> {
    if !log.config().remote_storage_enable {
        return Ok(None);
    }
    let archived = known_archive(call, topic, partition)?;
    let here = log.offsets().log_start_offset;
    if archived.start >= archived.end.min(here) {
        return Ok(None);
    }
    match ask_and_wait(call, log, Wanted::Time(timestamp_ms))? {
        // What is here, too, is read here.
        Some(Answered::Offset(found)) => Ok(found.filter(|(offset, _)| *offset < here)),
        Some(Answered::Batches(..) | Answered::Refused(_)) | None => Err(ErrorCode::KafkaStorageError),
    }
}

/// Whether a request of this version may ask for a position with this negative name.
fn is_known(timestamp: i64, version: i16) -> bool {
    let since = match timestamp {
        asks::LATEST | asks::EARLIEST => 1,
        asks::MAX_TIMESTAMP => 7,
        asks::EARLIEST_LOCAL => 8,
        asks::LATEST_TIERED => 9,
        asks::EARLIEST_PENDING_UPLOAD => 11,
        _ => return false,
    };
    version >= since
}

/// Partitions that the request names more than once; Kafka refuses them, with one answer each.
fn repeated(request: &ListOffsetsRequest) -> HashSet<(&str, i32)> {
    let mut seen = HashSet::new();
    let each = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    each.filter(|partition| !seen.insert(*partition)).collect()
}
