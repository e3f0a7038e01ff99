//! InitProducerId: an id for an idempotent producer, an id and an epoch for a transactional one.
//!
//! KIP-98. Version 3 lets a producer go on with its id (KIP-360); 4 knows PRODUCER_FENCED (KIP-588); 5 TRANSACTION_ABORTABLE
//! (KIP-890); 6 has two-phase commit (KIP-939).
use super::common::answered::answered;
use super::common::transactions::{ask, fenced_as};
use crate::authorization::table::{
    INIT_PRODUCER_ID_CLUSTER, INIT_PRODUCER_ID_SOME_TOPIC, INIT_PRODUCER_ID_TRANSACTION,
    INIT_PRODUCER_ID_TWO_PHASE,
};
use crate::call::{Call, Outcome, Reply};
use pylog_coordinator::transaction::{ProducerIdSource, TxnReply, TxnRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

/// From this version on a producer knows PRODUCER_FENCED.
const FENCED_FROM: i16 = 4;

/// Without a transactional id: an id that nobody had before, epoch 0; also when a producer asks for a new epoch of the id
/// it has (KIP-360), as Kafka does.
pub fn handle(call: Call, request: InitProducerIdRequest) -> Outcome {
    if let Err(error) = check(&call, &request) {
        return Outcome::Now(call.answer(&error_response(error)));
    }
    let Some(transactional_id) = request.transactional_id.clone() else {
        let given = ProducerIdSource::next(&*call.shared.producer_ids);
        return Outcome::Now(call.answer(&match given {
            Ok(producer_id) => {
                InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() }
            }
            Err(error) => error_response(error),
        }));
    };
    let waiting = ask(&call, &transactional_id, TxnRequest::InitProducerId(request));
    answered(call, waiting, reply)
}

/// Whether the client may use the transactional id; without one, whether it may write idempotently, or to some topic.
fn check(call: &Call, request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    match &request.transactional_id {
        Some(id) => {
            call.check(&INIT_PRODUCER_ID_TRANSACTION, id)?;
            if request.enable_2_pc { call.check(&INIT_PRODUCER_ID_TWO_PHASE, id) } else { Ok(()) }
        }
        None if call.may_cluster(&INIT_PRODUCER_ID_CLUSTER) => Ok(()),
        None if call.may_some(&INIT_PRODUCER_ID_SOME_TOPIC) => Ok(()),
        None => Err(INIT_PRODUCER_ID_CLUSTER.error()),
    }
}

fn reply(call: &Call, answer: Result<TxnReply, ErrorCode>) -> Reply {
    let mut response = match answer {
        Ok(TxnReply::InitProducerId(response)) => response,
        Ok(_) => error_response(ErrorCode::UnknownServerError),
        Err(error) => error_response(error),
    };
    response.error_code = fenced_as(response.error_code, call.version >= FENCED_FROM);
    call.answer(&response)
}

fn error_response(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: error.code(), producer_epoch: -1, ..Default::default() }
}
