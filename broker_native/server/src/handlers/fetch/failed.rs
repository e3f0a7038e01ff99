//! The answer about a partition that cannot be read.
use bytes::Bytes;

use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::PartitionData;

/// The answer about a partition that cannot be read.
pub fn failed(partition_index: i32, error: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: error.code(),
        high_watermark: -1,
        // Kafka has an empty list where it does not look at the partition, and none where reading it failed.
        aborted_transactions: is_unknown(error).then(Vec::new),
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn is_unknown(error: ErrorCode) -> bool {
    use ErrorCode::{TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition};
    matches!(error, UnknownTopicOrPartition | UnknownTopicId | TopicAuthorizationFailed)
}
