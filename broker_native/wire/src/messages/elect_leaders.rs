//! ElectLeaders (43): the preferred replica, or any live one, becomes leader.
use crate::schema::messages;

messages! {
    /// Partitions whose leaders shall be elected.
    ElectLeadersRequest of ElectLeaders {
        /// 0: the preferred replica; 1: any live one when none is in sync.
        election_type: i8 [1+],
        /// Null means all partitions.
        topic_partitions: Option<Vec<ElectLeadersTopicPartitions>> [0+],
        timeout_ms: i32 [0+] = 60_000,
    }

    /// Partitions of a topic.
    ElectLeadersTopicPartitions {
        topic: String [0+],
        partitions: Vec<i32> [0+],
    }

    /// What became of each partition.
    ElectLeadersResponse of ElectLeaders {
        throttle_time_ms: i32 [0+],
        error_code: i16 [1+],
        replica_election_results: Vec<ReplicaElectionResult> [0+],
    }

    /// Outcomes for a topic.
    ReplicaElectionResult {
        topic: String [0+],
        partition_result: Vec<PartitionResult> [0+],
    }

    /// Outcome for a partition.
    PartitionResult {
        partition_id: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
