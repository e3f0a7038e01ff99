//! DescribeLogDirs: the data directory, the size of each partition in it, and the room that is left on its volume.
//!
//! KIP-113. Version 3 has an error of the whole answer; 4 the size of the volume (KIP-827).
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use crate::authorization::table::DESCRIBE_LOG_DIRS_CLUSTER;
use crate::call::{Call, Outcome};
use pylog_log::loggers::STORAGE;
use pylog_log::warn;
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use pylog_wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

/// Answers with the one directory there is. Partitions that are not here are left out, as in Kafka.
pub fn handle(call: &Call, request: &DescribeLogDirsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_LOG_DIRS_CLUSTER) {
        return Outcome::Now(
            call.answer(&DescribeLogDirsResponse { error_code: error.code(), ..Default::default() }),
        );
    }
    let dir = call.shared.logs.dir();
    let blank = DescribeLogDirsResult { log_dir: dir.display().to_string(), ..Default::default() };
    let result = match space(&dir) {
        Ok((total_bytes, usable_bytes)) => {
            let topics = described(call, request.topics.as_deref());
            DescribeLogDirsResult { topics, total_bytes, usable_bytes, ..blank }
        }
        Err(error) => {
            let path = dir.display();
            warn!(target: STORAGE, %path, "the size of the volume of {path} cannot be read: {error}");
            DescribeLogDirsResult { error_code: ErrorCode::KafkaStorageError.code(), ..blank }
        }
    };
    Outcome::Now(call.answer(&DescribeLogDirsResponse { results: vec![result], ..Default::default() }))
}

fn described(call: &Call, asked: Option<&[DescribableLogDirTopic]>) -> Vec<DescribeLogDirsTopic> {
    let mut wanted: HashMap<&str, HashSet<i32>> = HashMap::new();
    for topic in asked.unwrap_or_default() {
        wanted.entry(topic.topic.as_str()).or_default().extend(&topic.partitions);
    }
    let is_wanted = |name: &str, number: i32| {
        asked.is_none() || wanted.get(name).is_some_and(|numbers| numbers.contains(&number))
    };
    let topics = call.shared.topics.now();
    let mut by_name = BTreeMap::new();
    for topic in topics.all() {
        let served =
            topic.partitions.iter().filter(|partition| is_wanted(&topic.name, partition.spec.partition));
        let partitions: Vec<_> = served
            .filter_map(|partition| Some(sized(partition.spec.partition, partition.log.as_ref().ok()?)))
            .collect();
        if !partitions.is_empty() {
            by_name.insert(topic.name.as_str(), partitions);
        }
    }
    let topic = |(name, partitions): (&str, _)| DescribeLogDirsTopic { name: name.to_owned(), partitions };
    by_name.into_iter().map(topic).collect()
}

fn sized(partition_index: i32, log: &PartitionLog) -> DescribeLogDirsPartition {
    let offsets = log.offsets();
    DescribeLogDirsPartition {
        partition_index,
        partition_size: i64::try_from(log.size_bytes()).unwrap_or(i64::MAX),
        offset_lag: (offsets.log_end_offset - offsets.high_watermark).max(0),
        is_future_key: false,
    }
}

/// Bytes of the volume, and those that may still be written.
fn space(dir: &Path) -> io::Result<(i64, i64)> {
    let stats = rustix::fs::statvfs(dir)?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(stats.f_frsize)).unwrap_or(i64::MAX);
    Ok((bytes(stats.f_blocks), bytes(stats.f_bavail)))
}
