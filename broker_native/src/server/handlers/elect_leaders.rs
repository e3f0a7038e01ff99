//! ElectLeaders: decided by Python.
use super::decided::decided;
use crate::server::decide::Kind;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// Asks for the elections.
pub fn handle(call: Call, request: ElectLeadersRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::ElectLeaders, request, timeout_ms, |_request, error: ErrorCode, _why| {
        ElectLeadersResponse { error_code: error.code(), ..Default::default() }
    })
}
