//! Every file name of a data directory, once. All are Apache Kafka's but `.cut`, `.aside`, the inventory and the nonce of local reads.
use std::path::{Path, PathBuf};

use super::error::{Result, StorageError, TopicPartition};

/// Record batches.
pub const LOG_SUFFIX: &str = "log";
/// Offset index.
pub const INDEX_SUFFIX: &str = "index";
/// Time index.
pub const TIME_INDEX_SUFFIX: &str = "timeindex";
/// Aborted transactions; there only when there are some.
pub const TXN_INDEX_SUFFIX: &str = "txnindex";
/// The files of one segment, the `.log` first.
pub const SEGMENT_SUFFIXES: [&str; 4] = [LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX];
/// Producer state.
pub const SNAPSHOT_SUFFIX: &str = "snapshot";
/// Appended to the name of a segment's file that waits for removal.
pub const DELETED_SUFFIX: &str = ".deleted";
/// Appended to the name of a file of a segment that compaction is writing.
pub const CLEANED_SUFFIX: &str = ".cleaned";
/// Appended to the name of a file of a segment that is to take the place of others.
pub const SWAP_SUFFIX: &str = ".swap";
/// Appended to the name of a file that is not read: it was found where none could be.
pub const ASIDE_SUFFIX: &str = ".aside";
/// What recovery cut from a log, kept beside it.
pub const CUT_SUFFIX: &str = "log.cut";
/// Ends the name of a partition's directory that waits for removal.
pub const DELETE_DIR_SUFFIX: &str = "-delete";
/// Ends the name of a checkpoint that is being written.
pub const TMP_SUFFIX: &str = ".tmp";

/// Leader epochs and where each began, in a partition's directory.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// Topic id, in a partition's directory.
pub const PARTITION_METADATA: &str = "partition.metadata";
/// Up to where each log is known to be on the device, in the data directory.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// First readable offset of each log, in the data directory.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// Up to where each compacted log was cleaned, in the data directory.
pub const CLEANER_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// High watermark of each log that has other replicas, in the data directory.
pub const HIGH_WATERMARK_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Cluster id and node id, in the data directory.
pub const META_PROPERTIES: &str = "meta.properties";
/// flock'ed while a broker uses the data directory.
pub const LOCK: &str = ".lock";
/// What the logs were at the last clean stop, see `inventory`.
pub const INVENTORY: &str = "clean-stop-inventory";
/// What readers on the same machine prove by that they see this directory, see [`crate::LogManager::leave_nonce`].
pub const LOCAL_READS: &str = "local-reads";
/// There after a clean stop, until the next start.
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

/// Longest topic name, as in Kafka.
pub const MAX_TOPIC_NAME_LEN: usize = 249;

/// `<dir>/<20 digits>.<suffix>`.
pub fn segment_file(dir: &Path, base_offset: i64, suffix: &str) -> PathBuf {
    dir.join(format!("{base_offset:020}.{suffix}"))
}

/// The offset and suffix of a segment's file name; `None` when it is some other file.
pub fn parse_segment_file(name: &str) -> Option<(i64, &str)> {
    let (digits, suffix) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, suffix))
}

/// `<data_dir>/<topic>-<partition>`.
///
/// # Errors
/// [`StorageError::InvalidTopic`]: the name could leave the data directory or confuse Kafka's tools.
pub fn partition_dir(data_dir: &Path, at: &TopicPartition) -> Result<PathBuf> {
    let name = &*at.topic;
    let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if name.is_empty() || name.len() > MAX_TOPIC_NAME_LEN || name == "." || name == ".." || !legal {
        return Err(StorageError::InvalidTopic { name: name.to_owned() });
    }
    Ok(data_dir.join(at.to_string()))
}

/// The partition that a directory name stands for; `None` when it is some other directory.
pub fn parse_partition_dir(name: &str) -> Option<TopicPartition> {
    if name.ends_with(DELETE_DIR_SUFFIX) {
        return None;
    }
    let (topic, partition) = name.rsplit_once('-')?;
    let partition = partition.parse().ok().filter(|p| *p >= 0)?;
    (!topic.is_empty()).then(|| TopicPartition::new(topic, partition))
}
