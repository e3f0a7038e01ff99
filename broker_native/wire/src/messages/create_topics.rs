//! CreateTopics (19).
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Topics to create.
    CreateTopicsRequest of CreateTopics {
        topics: Vec<CreatableTopic> [0+],
        timeout_ms: i32 [0+] = 60_000,
        /// Check only, create nothing.
        validate_only: bool [1+],
    }

    /// A topic to create.
    CreatableTopic {
        name: String [0+],
        /// -1 for the broker's default, or when `assignments` are given.
        num_partitions: i32 [0+],
        /// -1 for the broker's default, or when `assignments` are given.
        replication_factor: i16 [0+],
        assignments: Vec<CreatableReplicaAssignment> [0+],
        configs: Vec<CreatableTopicConfig> [0+],
    }

    /// The brokers of a partition, the preferred leader first.
    CreatableReplicaAssignment {
        partition_index: i32 [0+],
        broker_ids: Vec<i32> [0+],
    }

    /// A setting of the topic.
    CreatableTopicConfig {
        name: String [0+],
        value: Option<String> [0+],
    }

    /// What became of each topic.
    CreateTopicsResponse of CreateTopics {
        throttle_time_ms: i32 [2+],
        topics: Vec<CreatableTopicResult> [0+],
    }

    /// The topic as created, or why it was not.
    CreatableTopicResult {
        name: String [0+],
        topic_id: Uuid [7+],
        error_code: i16 [0+],
        error_message: Option<String> [1+],
        topic_config_error_code: i16 [5+ tag 0],
        num_partitions: i32 [5+] = -1,
        replication_factor: i16 [5+] = -1,
        configs: Option<Vec<CreatableTopicConfigs>> [5+] = Some(Vec::new()),
    }

    /// A setting that the topic has.
    CreatableTopicConfigs {
        name: String [5+],
        value: Option<String> [5+],
        read_only: bool [5+],
        config_source: i8 [5+] = -1,
        is_sensitive: bool [5+],
    }
}
