//! DescribeTransactions (65): the state of transactional ids.
use crate::schema::messages;

messages! {
    /// Which ones.
    DescribeTransactionsRequest of DescribeTransactions {
        transactional_ids: Vec<String> [0+],
    }

    /// Their states.
    DescribeTransactionsResponse of DescribeTransactions {
        throttle_time_ms: i32 [0+],
        transaction_states: Vec<TransactionState> [0+],
    }

    /// One transactional id.
    TransactionState {
        error_code: i16 [0+],
        transactional_id: String [0+],
        transaction_state: String [0+],
        transaction_timeout_ms: i32 [0+],
        /// -1 when there is no transaction.
        transaction_start_time_ms: i64 [0+],
        producer_id: i64 [0+],
        producer_epoch: i16 [0+],
        /// While it ends: those without a marker.
        topics: Vec<TopicData> [0+],
    }

    /// Partitions of a topic.
    TopicData {
        topic: String [0+],
        partitions: Vec<i32> [0+],
    }
}
