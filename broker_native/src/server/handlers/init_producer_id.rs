//! InitProducerId: an id for an idempotent producer. Transactions are not served yet.
use crate::server::dispatch::{Call, Outcome};
use crate::server::notice::notice;
use crate::wire::ErrorCode;
use crate::wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

/// Answers with an id that nobody had before, epoch 0; also when a producer asks for a new epoch of the id it has
/// (KIP-360), as Kafka does without a transactional id.
pub fn handle(call: &Call, request: &InitProducerIdRequest) -> Outcome {
    let given = match request.transactional_id {
        // A producer takes this as final and says that the broker does not support transactions.
        Some(_) => Err(ErrorCode::UnsupportedVersion),
        None => call.shared.producer_ids.next().map_err(|error| {
            notice(&format!("no producer id could be reserved: {error}"));
            ErrorCode::KafkaStorageError
        }),
    };
    Outcome::Now(call.answer(&match given {
        Ok(producer_id) => InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() },
        Err(error) => {
            InitProducerIdResponse { error_code: error.code(), producer_epoch: -1, ..Default::default() }
        }
    }))
}
