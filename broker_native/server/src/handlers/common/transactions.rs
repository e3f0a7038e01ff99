//! What the requests about transactions have in common.
use crate::call::Call;
use crate::coordinators::Waiting;
use pylog_coordinator::transaction::{TxnEvent, TxnReply, TxnRequest};
use pylog_wire::ErrorCode;

/// From this version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn on a producer knows PRODUCER_FENCED.
pub const FENCED_FROM: i16 = 2;

/// Asks the coordinator of `transactional_id`. The machine has taken the request when this returns.
pub fn ask(call: &Call, transactional_id: &str, request: TxnRequest) -> Waiting<TxnReply> {
    let caller = call.caller();
    let event = |ticket| TxnEvent::Asked { ticket, caller, request };
    call.shared.coordinators.transactions.call(transactional_id, event)
}

/// PRODUCER_FENCED as INVALID_PRODUCER_EPOCH, for a producer that does not know it.
pub fn fenced_as(error_code: i16, knows_fenced: bool) -> i16 {
    if error_code == ErrorCode::ProducerFenced.code() && !knows_fenced {
        return ErrorCode::InvalidProducerEpoch.code();
    }
    error_code
}
