//! `__transaction_state`: where a transactional id stands.
use super::Stored;
use crate::schema::messages;

messages! {
    /// Which transactional id.
    TransactionLogKey {
        transactional_id: String [0+],
    }

    /// Its producer and its transaction.
    TransactionLogValue {
        producer_id: i64 [0+],
        /// Of the transaction before.
        previous_producer_id: i64 [1+ tag 0] = -1,
        /// Comes into force when the transaction is over.
        next_producer_id: i64 [1+ tag 1] = -1,
        producer_epoch: i16 [0+],
        transaction_timeout_ms: i32 [0+],
        transaction_status: i8 [0+],
        /// Null in the state Empty.
        transaction_partitions: Option<Vec<PartitionsSchema>> [0+],
        transaction_last_update_timestamp_ms: i64 [0+],
        /// -1 when there is no transaction.
        transaction_start_timestamp_ms: i64 [0+],
        client_transaction_version: i16 [1+ tag 2],
        /// Of `next_producer_id`; -1 stands for 0.
        next_producer_epoch: i16 [1+ tag 3] = -1,
    }

    /// Partitions of a topic.
    PartitionsSchema {
        topic: String [0+],
        partition_ids: Vec<i32> [0+],
    }
}

impl Stored for TransactionLogKey {
    const NAME: &'static str = "TransactionLogKey";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 0;
}

impl Stored for TransactionLogValue {
    const NAME: &'static str = "TransactionLogValue";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 1;
    const FLEXIBLE_FROM: i16 = 1;
}
