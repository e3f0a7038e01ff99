//! InitProducerId (22): a producer's id and epoch, for idempotence and transactions.
use crate::schema::messages;

messages! {
    /// Asks for an id; a null transactional id asks for idempotence only.
    InitProducerIdRequest of InitProducerId {
        transactional_id: Option<String> [0+],
        transaction_timeout_ms: i32 [0+],
        /// -1, or the id to raise the epoch of.
        producer_id: i64 [3+] = -1,
        producer_epoch: i16 [3+] = -1,
        enable_2_pc: bool [6+],
        keep_prepared_txn: bool [6+],
    }

    /// The id and epoch.
    InitProducerIdResponse of InitProducerId {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        producer_id: i64 [0+] = -1,
        producer_epoch: i16 [0+],
        ongoing_txn_producer_id: i64 [6+] = -1,
        ongoing_txn_producer_epoch: i16 [6+] = -1,
    }
}
