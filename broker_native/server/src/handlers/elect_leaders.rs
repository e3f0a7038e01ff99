//! ElectLeaders: decided by Python.
//!
//! KIP-183. Version 1 may elect replicas that are not in sync (KIP-460).
use super::common::decided::{Decision, decided};
use crate::authorization::table::ELECT_LEADERS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// Asks for the elections.
pub fn handle(call: Call, request: ElectLeadersRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ELECT_LEADERS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    let timeout_ms = request.timeout_ms;
    decided(call, Decision { timeout_ms, ..Kind::ElectLeaders.into() }, request, error_response)
}

fn error_response(_request: &ElectLeadersRequest, error: ErrorCode, _why: &str) -> ElectLeadersResponse {
    ElectLeadersResponse { error_code: error.code(), ..Default::default() }
}
