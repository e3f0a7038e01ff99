//! AddOffsetsToTxn (25): a group's offsets are going to be part of a transaction.
use crate::schema::messages;

messages! {
    /// Which transaction, which group.
    AddOffsetsToTxnRequest of AddOffsetsToTxn {
        transactional_id: String [0+],
        producer_id: i64 [0+],
        producer_epoch: i16 [0+],
        group_id: String [0+],
    }

    /// Whether they are.
    AddOffsetsToTxnResponse of AddOffsetsToTxn {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
    }
}
