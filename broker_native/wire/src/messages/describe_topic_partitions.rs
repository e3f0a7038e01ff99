//! DescribeTopicPartitions (75): topics and their partitions, a page at a time (KIP-966).
use uuid::Uuid;

use super::metadata::OPERATIONS_NOT_ASKED;
use crate::schema::messages;

messages! {
    /// Topics to describe; none stands for all.
    DescribeTopicPartitionsRequest of DescribeTopicPartitions {
        topics: Vec<TopicRequest> [0+],
        /// Most partitions in the answer.
        response_partition_limit: i32 [0+] = 2000,
        /// Where to begin; null: at the first topic.
        cursor: Option<Cursor> [0+],
    }

    /// A topic.
    TopicRequest {
        name: String [0+],
    }

    /// A place in the list of all partitions, which is ordered by topic name.
    Cursor {
        topic_name: String [0+],
        partition_index: i32 [0+],
    }

    /// A page.
    DescribeTopicPartitionsResponse of DescribeTopicPartitions {
        throttle_time_ms: i32 [0+],
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0+],
        /// Where the next page begins; null: this is the last one.
        next_cursor: Option<Cursor> [0+],
    }

    /// A topic and its partitions, or some of them.
    DescribeTopicPartitionsResponseTopic {
        error_code: i16 [0+],
        name: Option<String> [0+] = Some(String::new()),
        topic_id: Uuid [0+],
        is_internal: bool [0+],
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0+],
        topic_authorized_operations: i32 [0+] = OPERATIONS_NOT_ASKED,
    }

    /// A partition, its leader and replicas.
    DescribeTopicPartitionsResponsePartition {
        error_code: i16 [0+],
        partition_index: i32 [0+],
        leader_id: i32 [0+],
        leader_epoch: i32 [0+] = -1,
        replica_nodes: Vec<i32> [0+],
        isr_nodes: Vec<i32> [0+],
        eligible_leader_replicas: Option<Vec<i32>> [0+],
        last_known_elr: Option<Vec<i32>> [0+],
        offline_replicas: Vec<i32> [0+],
    }
}
