//! What the requests about transactions have in common.
use crate::wire::ErrorCode;

/// From this version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn on a producer knows PRODUCER_FENCED.
pub const FENCED_FROM: i16 = 2;

/// PRODUCER_FENCED in the words of a producer that does not know it.
pub fn fenced_as(error_code: i16, knows_fenced: bool) -> i16 {
    if error_code == ErrorCode::ProducerFenced.code() && !knows_fenced {
        return ErrorCode::InvalidProducerEpoch.code();
    }
    error_code
}
