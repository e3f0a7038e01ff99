//! ElectLeaders: decided by Python.
//!
//! KIP-183. Version 1 may elect replicas that are not in sync (KIP-460).
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// Asks for the elections.
pub fn handle(call: Call, request: ElectLeadersRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::ElectLeaders, request, timeout_ms, |_request, error: ErrorCode, _why| {
        ElectLeadersResponse { error_code: error.code(), ..Default::default() }
    })
}
