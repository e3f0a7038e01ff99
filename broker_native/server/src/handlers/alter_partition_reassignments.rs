//! AlterPartitionReassignments: decided by Python; the replicas move afterwards.
//!
//! KIP-455. Version 1 says whether the number of replicas may change (KIP-860).
use super::common::decided::{Decision, decided};
use crate::authorization::table::ALTER_PARTITION_REASSIGNMENTS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};

/// Asks for the moves.
pub fn handle(call: Call, request: AlterPartitionReassignmentsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ALTER_PARTITION_REASSIGNMENTS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    let timeout_ms = request.timeout_ms;
    decided(
        call,
        Decision { timeout_ms, ..Kind::AlterPartitionReassignments.into() },
        request,
        error_response,
    )
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
