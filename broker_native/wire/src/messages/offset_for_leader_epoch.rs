//! OffsetForLeaderEpoch (23): where a leader's epoch ended, to find out whether a log was truncated.
use crate::schema::messages;

messages! {
    /// Epochs by topic and partition.
    OffsetForLeaderEpochRequest of OffsetForLeaderEpoch {
        /// -1 for a consumer, -2 in versions without the field.
        replica_id: i32 [3+] = -2,
        topics: Vec<OffsetForLeaderTopic> [0+],
    }

    /// The partitions of a topic.
    OffsetForLeaderTopic {
        topic: String [0+],
        partitions: Vec<OffsetForLeaderPartition> [0+],
    }

    /// A partition and the epoch looked for.
    OffsetForLeaderPartition {
        partition: i32 [0+],
        current_leader_epoch: i32 [2+] = -1,
        leader_epoch: i32 [0+],
    }

    /// Ends of epochs by topic and partition.
    OffsetForLeaderEpochResponse of OffsetForLeaderEpoch {
        throttle_time_ms: i32 [2+],
        topics: Vec<OffsetForLeaderTopicResult> [0+],
    }

    /// The partitions of a topic.
    OffsetForLeaderTopicResult {
        topic: String [0+],
        partitions: Vec<EpochEndOffset> [0+],
    }

    /// The last epoch at or below the one asked for, and the offset after its last record; -1 and -1 for none.
    EpochEndOffset {
        error_code: i16 [0+],
        partition: i32 [0+],
        leader_epoch: i32 [1+] = -1,
        end_offset: i64 [0+] = -1,
    }
}
