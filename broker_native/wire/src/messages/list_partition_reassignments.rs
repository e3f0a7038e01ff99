//! ListPartitionReassignments (46): replicas that are moving (KIP-455).
use crate::schema::messages;

messages! {
    /// Which partitions to look at.
    ListPartitionReassignmentsRequest of ListPartitionReassignments {
        timeout_ms: i32 [0+] = 60_000,
        /// Null means all.
        topics: Option<Vec<ListPartitionReassignmentsTopics>> [0+],
    }

    /// Partitions of a topic.
    ListPartitionReassignmentsTopics {
        name: String [0+],
        partition_indexes: Vec<i32> [0+],
    }

    /// What is moving.
    ListPartitionReassignmentsResponse of ListPartitionReassignments {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        topics: Vec<OngoingTopicReassignment> [0+],
    }

    /// What is moving of a topic.
    OngoingTopicReassignment {
        name: String [0+],
        partitions: Vec<OngoingPartitionReassignment> [0+],
    }

    /// A partition that is moving.
    OngoingPartitionReassignment {
        partition_index: i32 [0+],
        /// All that have it now.
        replicas: Vec<i32> [0+],
        adding_replicas: Vec<i32> [0+],
        removing_replicas: Vec<i32> [0+],
    }
}
