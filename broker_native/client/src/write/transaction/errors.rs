//! What a coordinator's refusal means for a writer, in one sentence.
use crate::error::ClientError;
use pylog_wire::ErrorCode;

/// The error of a transaction that a coordinator answered with `error`.
pub fn refusal(transactional_id: &str, error: ErrorCode) -> ClientError {
    let said = match error {
        ErrorCode::ProducerFenced | ErrorCode::InvalidProducerEpoch => {
            "belongs to a newer producer: it timed out (transaction.timeout.ms), or its transactional id was taken over; write again with a new writer"
        }
        ErrorCode::InvalidTxnState => {
            "is not open any more: it was ended before, or timed out (transaction.timeout.ms); write again with a new writer"
        }
        ErrorCode::InvalidProducerIdMapping | ErrorCode::TransactionalIdNotFound => {
            "is not known to its coordinator: it was ended and forgotten, or never begun"
        }
        ErrorCode::InvalidTransactionTimeout => {
            "asks for a longer transaction.timeout.ms than the broker's transaction.max.timeout.ms; lower the one or raise the other"
        }
        ErrorCode::TransactionalIdAuthorizationFailed => {
            "is refused: no permission for its transactional id; ask for it or choose another one"
        }
        ErrorCode::TransactionAbortable => "can only be aborted: the brokers lost a part of it; write again",
        error => error.sentence(),
    };
    ClientError {
        kind: error.name(),
        message: format!("transaction {transactional_id} {said}"),
        retriable: error.is_retriable(),
    }
}
