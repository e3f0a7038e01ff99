//! OffsetCommit (8): a group's next offsets to read.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Offsets by topic and partition.
    OffsetCommitRequest of OffsetCommit {
        group_id: String [0+],
        /// -1: nobody of the group in particular.
        generation_id_or_member_epoch: i32 [1+] = -1,
        member_id: String [1+],
        group_instance_id: Option<String> [7+],
        /// -1: by the broker's retention.
        retention_time_ms: i64 [2-4] = -1,
        topics: Vec<OffsetCommitRequestTopic> [0+],
    }

    /// The partitions of a topic.
    OffsetCommitRequestTopic {
        name: String [0-9],
        topic_id: Uuid [10+],
        partitions: Vec<OffsetCommitRequestPartition> [0+],
    }

    /// The offset of a partition.
    OffsetCommitRequestPartition {
        partition_index: i32 [0+],
        committed_offset: i64 [0+],
        committed_leader_epoch: i32 [6+] = -1,
        committed_metadata: Option<String> [0+] = Some(String::new()),
    }

    /// What became of each partition.
    OffsetCommitResponse of OffsetCommit {
        throttle_time_ms: i32 [3+],
        topics: Vec<OffsetCommitResponseTopic> [0+],
    }

    /// The partitions of a topic.
    OffsetCommitResponseTopic {
        name: String [0-9],
        topic_id: Uuid [10+],
        partitions: Vec<OffsetCommitResponsePartition> [0+],
    }

    /// What became of a partition's offset.
    OffsetCommitResponsePartition {
        partition_index: i32 [0+],
        error_code: i16 [0+],
    }
}
