//! AddPartitionsToTxn (24): partitions that a transaction is going to write to, or is asked about.
use crate::schema::messages;

messages! {
    /// One transaction up to version 3, in the fields that say so; several from version 4 on.
    AddPartitionsToTxnRequest of AddPartitionsToTxn {
        transactions: Vec<AddPartitionsToTxnTransaction> [4+],
        v3_and_below_transactional_id: String [0-3],
        v3_and_below_producer_id: i64 [0-3],
        v3_and_below_producer_epoch: i16 [0-3],
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic> [0-3],
    }

    /// One transaction.
    AddPartitionsToTxnTransaction {
        transactional_id: String [4+],
        producer_id: i64 [4+],
        producer_epoch: i16 [4+],
        /// Nothing is added: are they part of the transaction already?
        verify_only: bool [4+],
        topics: Vec<AddPartitionsToTxnTopic> [4+],
    }

    /// Partitions of a topic.
    AddPartitionsToTxnTopic {
        name: String [0+],
        partitions: Vec<i32> [0+],
    }

    /// What became of each partition.
    AddPartitionsToTxnResponse of AddPartitionsToTxn {
        throttle_time_ms: i32 [0+],
        error_code: i16 [4+],
        results_by_transaction: Vec<AddPartitionsToTxnResult> [4+],
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult> [0-3],
    }

    /// One transaction.
    AddPartitionsToTxnResult {
        transactional_id: String [4+],
        topic_results: Vec<AddPartitionsToTxnTopicResult> [4+],
    }

    /// Partitions of a topic.
    AddPartitionsToTxnTopicResult {
        name: String [0+],
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult> [0+],
    }

    /// One partition.
    AddPartitionsToTxnPartitionResult {
        partition_index: i32 [0+],
        partition_error_code: i16 [0+],
    }
}
