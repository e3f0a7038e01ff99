//! AlterPartitionReassignments (45): replicas move to other brokers (KIP-455).
use crate::schema::messages;

messages! {
    /// Where the replicas shall be.
    AlterPartitionReassignmentsRequest of AlterPartitionReassignments {
        timeout_ms: i32 [0+] = 60_000,
        /// Whether the number of replicas may change (KIP-860).
        allow_replication_factor_change: bool [1+] = true,
        topics: Vec<ReassignableTopic> [0+],
    }

    /// A topic's partitions to move.
    ReassignableTopic {
        name: String [0+],
        partitions: Vec<ReassignablePartition> [0+],
    }

    /// A partition to move.
    ReassignablePartition {
        partition_index: i32 [0+],
        /// Null ends a move that is under way, back to where it began.
        replicas: Option<Vec<i32>> [0+],
    }

    /// What became of each.
    AlterPartitionReassignmentsResponse of AlterPartitionReassignments {
        throttle_time_ms: i32 [0+],
        /// As asked.
        allow_replication_factor_change: bool [1+] = true,
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        responses: Vec<ReassignableTopicResponse> [0+],
    }

    /// Outcomes for a topic.
    ReassignableTopicResponse {
        name: String [0+],
        partitions: Vec<ReassignablePartitionResponse> [0+],
    }

    /// Outcome for a partition.
    ReassignablePartitionResponse {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
