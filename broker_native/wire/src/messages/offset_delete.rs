//! OffsetDelete (47): forgets offsets of a group.
use crate::schema::messages;

messages! {
    /// Which partitions' offsets.
    OffsetDeleteRequest of OffsetDelete {
        group_id: String [0+],
        topics: Vec<OffsetDeleteRequestTopic> [0+],
    }

    /// The partitions of a topic.
    OffsetDeleteRequestTopic {
        name: String [0+],
        partitions: Vec<OffsetDeleteRequestPartition> [0+],
    }

    /// A partition.
    OffsetDeleteRequestPartition {
        partition_index: i32 [0+],
    }

    /// What became of each partition.
    OffsetDeleteResponse of OffsetDelete {
        error_code: i16 [0+],
        throttle_time_ms: i32 [0+],
        topics: Vec<OffsetDeleteResponseTopic> [0+],
    }

    /// The partitions of a topic.
    OffsetDeleteResponseTopic {
        name: String [0+],
        partitions: Vec<OffsetDeleteResponsePartition> [0+],
    }

    /// What became of a partition's offset.
    OffsetDeleteResponsePartition {
        partition_index: i32 [0+],
        error_code: i16 [0+],
    }
}
