//! EndTxn: a transaction is committed or aborted. Answered when that is decided. Markers that wait for nothing are written
//! by then; those for other brokers, for logs that others copy or with `durability=flushed` may come later.
//!
//! KIP-98. Version 2 knows PRODUCER_FENCED (KIP-588); 4 TRANSACTION_ABORTABLE; 5 raises the epoch and answers with it
//! (KIP-890).
use super::common::answered::answered;
use super::common::transactions::{FENCED_FROM, ask, fenced_as};
use crate::authorization::table::END_TXN_TRANSACTION;
use crate::call::{Call, Outcome, Reply};
use pylog_coordinator::transaction::{TxnReply, TxnRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{EndTxnRequest, EndTxnResponse};

/// Hands the request to the coordinator.
pub fn handle(call: Call, request: EndTxnRequest) -> Outcome {
    if let Err(error) = call.check(&END_TXN_TRANSACTION, &request.transactional_id) {
        return Outcome::Now(reply(&call, Err(error)));
    }
    let transactional_id = request.transactional_id.clone();
    let waiting = ask(&call, &transactional_id, TxnRequest::EndTxn(request));
    answered(call, waiting, reply)
}

fn reply(call: &Call, answer: Result<TxnReply, ErrorCode>) -> Reply {
    let error_response = |error: ErrorCode| EndTxnResponse { error_code: error.code(), ..Default::default() };
    let mut response = match answer {
        Ok(TxnReply::EndTxn(response)) => response,
        Ok(_) => error_response(ErrorCode::UnknownServerError),
        Err(error) => error_response(error),
    };
    response.error_code = fenced_as(response.error_code, call.version >= FENCED_FROM);
    call.answer(&response)
}
