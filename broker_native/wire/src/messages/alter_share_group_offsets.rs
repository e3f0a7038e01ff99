//! AlterShareGroupOffsets (91): moves a share group without members to other offsets.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Whither.
    AlterShareGroupOffsetsRequest of AlterShareGroupOffsets {
        group_id: String [0+],
        topics: Vec<AlterShareGroupOffsetsRequestTopic> [0+],
    }

    /// A topic.
    AlterShareGroupOffsetsRequestTopic {
        topic_name: String [0+],
        partitions: Vec<AlterShareGroupOffsetsRequestPartition> [0+],
    }

    /// A partition.
    AlterShareGroupOffsetsRequestPartition {
        partition_index: i32 [0+],
        start_offset: i64 [0+],
    }

    /// Whether it was done.
    AlterShareGroupOffsetsResponse of AlterShareGroupOffsets {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        responses: Vec<AlterShareGroupOffsetsResponseTopic> [0+],
    }

    /// A topic.
    AlterShareGroupOffsetsResponseTopic {
        topic_name: String [0+],
        topic_id: Uuid [0+],
        partitions: Vec<AlterShareGroupOffsetsResponsePartition> [0+],
    }

    /// A partition.
    AlterShareGroupOffsetsResponsePartition {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
