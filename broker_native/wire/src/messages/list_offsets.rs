//! ListOffsets (2): the offset of a timestamp, or of an end of the log.
use crate::schema::messages;

/// `timestamp` that asks for the end of the log (of committed data, with isolation level 1).
pub const LATEST: i64 = -1;
/// `timestamp` that asks for the first offset.
pub const EARLIEST: i64 = -2;
/// `timestamp` that asks for the record with the largest timestamp; version 7 and later.
pub const MAX_TIMESTAMP: i64 = -3;
/// `timestamp` that asks for the first offset on the local disk; version 8 and later.
pub const EARLIEST_LOCAL: i64 = -4;
/// `timestamp` that asks for the last offset in tiered storage; version 9 and later.
pub const LATEST_TIERED: i64 = -5;
/// `timestamp` that asks for the first offset not yet in tiered storage; version 11 and later.
pub const EARLIEST_PENDING_UPLOAD: i64 = -6;

messages! {
    /// Timestamps by topic and partition.
    ListOffsetsRequest of ListOffsets {
        /// -1 for a consumer.
        replica_id: i32 [0+] = -1,
        /// 0: read uncommitted; 1: read committed.
        isolation_level: i8 [2+],
        topics: Vec<ListOffsetsTopic> [0+],
        timeout_ms: i32 [10+],
    }

    /// The partitions of a topic.
    ListOffsetsTopic {
        name: String [0+],
        partitions: Vec<ListOffsetsPartition> [0+],
    }

    /// A partition and the timestamp looked for.
    ListOffsetsPartition {
        partition_index: i32 [0+],
        current_leader_epoch: i32 [4+] = -1,
        /// Milliseconds since the epoch, or one of this module's negative constants.
        timestamp: i64 [0+],
    }

    /// Offsets by topic and partition.
    ListOffsetsResponse of ListOffsets {
        throttle_time_ms: i32 [2+],
        topics: Vec<ListOffsetsTopicResponse> [0+],
    }

    /// The partitions of a topic.
    ListOffsetsTopicResponse {
        name: String [0+],
        partitions: Vec<ListOffsetsPartitionResponse> [0+],
    }

    /// The first record at or after the timestamp; -1 and -1 when there is none.
    ListOffsetsPartitionResponse {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        timestamp: i64 [1+] = -1,
        offset: i64 [1+] = -1,
        leader_epoch: i32 [4+] = -1,
    }
}
