//! ListPartitionReassignments: answered by Python.
//!
//! KIP-455.
use super::common::decided::{Decision, decided};
use crate::authorization::table::LIST_PARTITION_REASSIGNMENTS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

/// Asks for the moves that are under way.
pub fn handle(call: Call, request: ListPartitionReassignmentsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&LIST_PARTITION_REASSIGNMENTS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    let timeout_ms = request.timeout_ms;
    decided(call, Decision { timeout_ms, ..Kind::ListPartitionReassignments.into() }, request, error_response)
}

fn error_response(
    _request: &ListPartitionReassignmentsRequest,
    error: ErrorCode,
    why: &str,
) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
