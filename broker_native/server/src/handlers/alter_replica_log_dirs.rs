//! AlterReplicaLogDirs: a broker has one data directory, so a replica is where it is asked to go, or cannot go there.
//!
//! KIP-113. No version added anything.
use std::collections::BTreeMap;

use crate::authorization::table::ALTER_REPLICA_LOG_DIRS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::state::topics::MetadataImage;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use pylog_wire::messages::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse};

/// Answers for each partition as Kafka does. Of one that is named for two directories the last counts.
pub fn handle(call: &Call, request: &AlterReplicaLogDirsRequest) -> Outcome {
    let refused = call.check_cluster(&ALTER_REPLICA_LOG_DIRS_CLUSTER).err();
    let topics = call.shared.topics.now();
    let here = call.shared.logs.dir().display().to_string();
    let mut results: BTreeMap<&str, BTreeMap<i32, ErrorCode>> = BTreeMap::new();
    for dir in &request.dirs {
        for topic in &dir.topics {
            for &number in &topic.partitions {
                let error = match refused {
                    Some(error) => error,
                    None if dir.path == here => stays(&topics, &topic.name, number),
                    None => ErrorCode::LogDirNotFound,
                };
                results.entry(&topic.name).or_default().insert(number, error);
            }
        }
    }
    let results = results.into_iter().map(|(name, partitions)| AlterReplicaLogDirTopicResult {
        topic_name: name.to_owned(),
        partitions: partitions
            .into_iter()
            .map(|(partition_index, error)| AlterReplicaLogDirPartitionResult {
                partition_index,
                error_code: error.code(),
            })
            .collect(),
    });
    Outcome::Now(
        call.answer(&AlterReplicaLogDirsResponse { results: results.collect(), ..Default::default() }),
    )
}

/// Whether the replica is in this broker's directory.
fn stays(topics: &MetadataImage, name: &str, number: i32) -> ErrorCode {
    match topics.named(name).and_then(|topic| topic.partition(number)) {
        None => ErrorCode::UnknownTopicOrPartition,
        Some(partition) if partition.is_offline() => ErrorCode::KafkaStorageError,
        Some(partition) if partition.log.is_err() => ErrorCode::ReplicaNotAvailable,
        Some(_) => ErrorCode::None,
    }
}
