//! CreatePartitions (37): adds partitions to topics.
use crate::schema::messages;

messages! {
    /// Topics to extend.
    CreatePartitionsRequest of CreatePartitions {
        topics: Vec<CreatePartitionsTopic> [0+],
        timeout_ms: i32 [0+],
        /// Check only, create nothing.
        validate_only: bool [0+],
    }

    /// A topic and how many partitions it shall have.
    CreatePartitionsTopic {
        name: String [0+],
        count: i32 [0+],
        /// Null leaves the choice of brokers to the controller.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0+],
    }

    /// The brokers of a new partition, the preferred leader first.
    CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0+],
    }

    /// What became of each topic.
    CreatePartitionsResponse of CreatePartitions {
        throttle_time_ms: i32 [0+],
        results: Vec<CreatePartitionsTopicResult> [0+],
    }

    /// Whether the partitions were added.
    CreatePartitionsTopicResult {
        name: String [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
