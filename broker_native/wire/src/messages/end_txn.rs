//! EndTxn (26): commits or aborts a transaction.
use crate::schema::messages;

messages! {
    /// Which transaction, and how it ends.
    EndTxnRequest of EndTxn {
        transactional_id: String [0+],
        producer_id: i64 [0+],
        producer_epoch: i16 [0+],
        /// False: it is aborted.
        committed: bool [0+],
    }

    /// Whether it ends so; from version 5 on the id and epoch of the next transaction.
    EndTxnResponse of EndTxn {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        producer_id: i64 [5+] = -1,
        producer_epoch: i16 [5+] = -1,
    }
}
