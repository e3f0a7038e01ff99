//! AddOffsetsToTxn: the partition that keeps a group's offsets becomes part of a transaction.
//!
//! KIP-98. Version 2 knows PRODUCER_FENCED (KIP-588); 4 TRANSACTION_ABORTABLE (KIP-890).
use super::common::answered::answered;
use super::common::internal_topic;
use super::common::transactions::{FENCED_FROM, fenced_as};
use crate::authorization::table::{ADD_OFFSETS_TO_TXN_GROUP, ADD_OFFSETS_TO_TXN_TRANSACTION};
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::GROUPS_TOPIC;
use pylog_coordinator::transaction::{TransactionVersion, TxnReply};
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use pylog_wire::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};

/// Adds the partition; makes its topic when nobody has needed that before. Only producers that speak transaction version 0
/// or 1 ask; for others TxnOffsetCommit does.
pub fn handle(call: Call, request: AddOffsetsToTxnRequest) -> Outcome {
    let allowed = call.check(&ADD_OFFSETS_TO_TXN_TRANSACTION, &request.transactional_id);
    let allowed = allowed.and_then(|()| call.check(&ADD_OFFSETS_TO_TXN_GROUP, &request.group_id));
    if let Err(error) = allowed {
        return Outcome::Now(answer(&call, error));
    }
    let Some(topic) = internal_topic::missing(&call.shared.coordinators.groups) else {
        return add(call, request);
    };
    call.shared.metrics.events.increment();
    Outcome::later(async move {
        internal_topic::make(&call, topic).await;
        add(call, request).reply().await
    })
}

fn add(call: Call, request: AddOffsetsToTxnRequest) -> Outcome {
    let coordinators = &call.shared.coordinators;
    let Some(partition) = coordinators.groups.partition_of(&request.group_id) else {
        return Outcome::Now(answer(&call, ErrorCode::CoordinatorNotAvailable));
    };
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: request.transactional_id,
        producer_id: request.producer_id,
        producer_epoch: request.producer_epoch,
        verify_only: false,
        topics: vec![AddPartitionsToTxnTopic { name: GROUPS_TOPIC.to_owned(), partitions: vec![partition] }],
    };
    let waiting = coordinators.ask_for_partitions(call.caller(), transaction, TransactionVersion::V0, false);
    answered(call, waiting, |call, reply| answer(call, error(reply)))
}

fn error(reply: Result<TxnReply, ErrorCode>) -> ErrorCode {
    match reply {
        Ok(TxnReply::AddPartitions(answers)) => answers.first().map_or(ErrorCode::None, |(_, error)| *error),
        Ok(_) => ErrorCode::UnknownServerError,
        Err(error) => error,
    }
}

fn answer(call: &Call, error: ErrorCode) -> Reply {
    let error_code = fenced_as(error.code(), call.version >= FENCED_FROM);
    call.answer(&AddOffsetsToTxnResponse { error_code, ..Default::default() })
}
