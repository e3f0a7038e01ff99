//! DescribeShareGroupOffsets (90): from which offset on each partition is not done with by a share group.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Which groups.
    DescribeShareGroupOffsetsRequest of DescribeShareGroupOffsets {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup> [0+],
    }

    /// A group.
    DescribeShareGroupOffsetsRequestGroup {
        group_id: String [0+],
        /// Null: all that the group has.
        topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>> [0+],
    }

    /// Partitions of a topic.
    DescribeShareGroupOffsetsRequestTopic {
        topic_name: String [0+],
        partitions: Vec<i32> [0+],
    }

    /// The groups.
    DescribeShareGroupOffsetsResponse of DescribeShareGroupOffsets {
        throttle_time_ms: i32 [0+],
        groups: Vec<DescribeShareGroupOffsetsResponseGroup> [0+],
    }

    /// A group.
    DescribeShareGroupOffsetsResponseGroup {
        group_id: String [0+],
        topics: Vec<DescribeShareGroupOffsetsResponseTopic> [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }

    /// A topic.
    DescribeShareGroupOffsetsResponseTopic {
        topic_name: String [0+],
        topic_id: Uuid [0+],
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition> [0+],
    }

    /// A partition; -1 where there is no offset.
    DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32 [0+],
        start_offset: i64 [0+],
        leader_epoch: i32 [0+],
        /// Records that are not delivered yet, about.
        lag: i64 [1+] = -1,
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
