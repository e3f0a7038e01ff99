//! AlterPartitionReassignments: decided by Python; the replicas move afterwards.
//!
//! KIP-455. Version 1 says whether the number of replicas may change (KIP-860).
use super::common::decided::{Decision, decided};
use super::common::repeated::is_repeated;
use crate::authorization::table::ALTER_PARTITION_REASSIGNMENTS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopicResponse,
};
use pylog_wire::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};

/// Asks for the moves.
pub fn handle(call: Call, request: AlterPartitionReassignmentsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ALTER_PARTITION_REASSIGNMENTS_CLUSTER) {
        let mut answer = error_response(&request, error, error.sentence());
        answer.responses = refusals(&request, error);
        return Outcome::Now(call.answer(&answer));
    }
    let timeout_ms = request.timeout_ms;
    decided(
        call,
        Decision { timeout_ms, ..Kind::AlterPartitionReassignments.into() },
        request,
        error_response,
    )
}

/// All that was asked, each with the error.
fn refusals(
    request: &AlterPartitionReassignmentsRequest,
    error: ErrorCode,
) -> Vec<ReassignableTopicResponse> {
    if !is_repeated(request.topics.iter().map(|topic| topic.partitions.len())) {
        return Vec::new();
    }
    let refused = |asked: &ReassignablePartition| ReassignablePartitionResponse {
        partition_index: asked.partition_index,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
    };
    let topics = request.topics.iter().map(|topic| ReassignableTopicResponse {
        name: topic.name.clone(),
        partitions: topic.partitions.iter().map(refused).collect(),
    });
    topics.collect()
}

fn error_response(
    _request: &AlterPartitionReassignmentsRequest,
    error: ErrorCode,
    why: &str,
) -> AlterPartitionReassignmentsResponse {
    AlterPartitionReassignmentsResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
