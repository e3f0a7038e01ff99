//! DescribeProducers (61): who writes to a partition, and which transactions are open there.
use crate::schema::messages;

messages! {
    /// The partitions to look at.
    DescribeProducersRequest of DescribeProducers {
        topics: Vec<TopicRequest> [0+],
    }

    /// The partitions of a topic.
    TopicRequest {
        name: String [0+],
        partition_indexes: Vec<i32> [0+],
    }

    /// Producers by topic and partition.
    DescribeProducersResponse of DescribeProducers {
        throttle_time_ms: i32 [0+],
        topics: Vec<TopicResponse> [0+],
    }

    /// The partitions of a topic.
    TopicResponse {
        name: String [0+],
        partitions: Vec<PartitionResponse> [0+],
    }

    /// The producers of a partition.
    PartitionResponse {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        active_producers: Vec<ProducerState> [0+],
    }

    /// A producer that is remembered; -1 for what it does not have.
    ProducerState {
        producer_id: i64 [0+],
        producer_epoch: i32 [0+],
        last_sequence: i32 [0+] = -1,
        last_timestamp: i64 [0+] = -1,
        coordinator_epoch: i32 [0+],
        current_txn_start_offset: i64 [0+] = -1,
    }
}
