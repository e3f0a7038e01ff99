//! DescribeTransactions: the state of transactional ids.
//!
//! KIP-664.
use super::common::transactions::ask;
use crate::authorization::table::{DESCRIBE_TRANSACTIONS_TOPIC, DESCRIBE_TRANSACTIONS_TRANSACTION};
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use pylog_coordinator::transaction::{TxnReply, TxnRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_transactions::TransactionState;
use pylog_wire::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};

/// Asks the coordinator of each id.
pub fn handle(call: Call, request: DescribeTransactionsRequest) -> Outcome {
    let describe = |transactional_id: String| {
        let request = TxnRequest::Describe(transactional_id.clone());
        let waiting = match call.check(&DESCRIBE_TRANSACTIONS_TRANSACTION, &transactional_id) {
            Ok(()) => ask(&call, &transactional_id, request),
            Err(error) => Waiting::now(Err(error)),
        };
        (transactional_id, waiting)
    };
    let asked: Vec<_> = request.transactional_ids.into_iter().map(describe).collect();
    Outcome::later(async move {
        let mut transaction_states = Vec::with_capacity(asked.len());
        for (transactional_id, waiting) in asked {
            transaction_states.push(match waiting.await {
                Ok(TxnReply::Describe(mut state)) => {
                    state.topics.retain(|topic| call.may(&DESCRIBE_TRANSACTIONS_TOPIC, &topic.topic));
                    state
                }
                Ok(_) => error_response(transactional_id, ErrorCode::UnknownServerError),
                // Without the internal topic there never was a transaction.
                Err(ErrorCode::CoordinatorNotAvailable) => {
                    error_response(transactional_id, ErrorCode::TransactionalIdNotFound)
                }
                Err(error) => error_response(transactional_id, error),
            });
        }
        call.answer(&DescribeTransactionsResponse { transaction_states, ..Default::default() })
    })
}

fn error_response(transactional_id: String, error: ErrorCode) -> TransactionState {
    TransactionState { error_code: error.code(), transactional_id, ..Default::default() }
}
