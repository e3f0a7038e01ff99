//! DeleteRecords (21): moves the start of partitions forward.
use crate::schema::messages;

/// `offset` that stands for the high watermark.
pub const HIGH_WATERMARK: i64 = -1;

messages! {
    /// New first offsets by topic and partition.
    DeleteRecordsRequest of DeleteRecords {
        topics: Vec<DeleteRecordsTopic> [0+],
        timeout_ms: i32 [0+],
    }

    /// The partitions of a topic.
    DeleteRecordsTopic {
        name: String [0+],
        partitions: Vec<DeleteRecordsPartition> [0+],
    }

    /// A partition and the offset before which everything goes.
    DeleteRecordsPartition {
        partition_index: i32 [0+],
        offset: i64 [0+],
    }

    /// What became of each partition.
    DeleteRecordsResponse of DeleteRecords {
        throttle_time_ms: i32 [0+],
        topics: Vec<DeleteRecordsTopicResult> [0+],
    }

    /// The partitions of a topic.
    DeleteRecordsTopicResult {
        name: String [0+],
        partitions: Vec<DeleteRecordsPartitionResult> [0+],
    }

    /// The new first offset of a partition.
    DeleteRecordsPartitionResult {
        partition_index: i32 [0+],
        low_watermark: i64 [0+],
        error_code: i16 [0+],
    }
}
