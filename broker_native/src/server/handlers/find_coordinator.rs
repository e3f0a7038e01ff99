//! FindCoordinator: there is none yet, and a client is told so in words it knows (retriable, so that it does not die of it).
//!
//! Served all the same: librdkafka compresses with lz4 only when a broker advertises this API
//! (`RD_KAFKA_FEATURE_LZ4` in rdkafka_feature.c), and otherwise sends uncompressed without a word.
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::find_coordinator::Coordinator;
use crate::wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};

const WHY: &str =
    "This broker keeps no consumer groups and no transactions; assign partitions instead of subscribing.";
/// Node id, and port, of a coordinator that is not there.
const NONE: i32 = -1;

/// Answers COORDINATOR_NOT_AVAILABLE for every key.
pub fn handle(call: &Call, request: &FindCoordinatorRequest) -> Outcome {
    let error_code = ErrorCode::CoordinatorNotAvailable.code();
    let coordinators = request.coordinator_keys.iter().map(|key| Coordinator {
        key: key.clone(),
        node_id: NONE,
        port: NONE,
        error_code,
        error_message: Some(WHY.into()),
        ..Default::default()
    });
    Outcome::Now(call.answer(&FindCoordinatorResponse {
        error_code,
        error_message: Some(WHY.into()),
        node_id: NONE,
        port: NONE,
        coordinators: coordinators.collect(),
        ..Default::default()
    }))
}
