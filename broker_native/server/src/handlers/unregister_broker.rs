//! UnregisterBroker: decided by Python.
//!
//! KIP-631.
use super::common::decided::decided;
use crate::authorization::table::UNREGISTER_BROKER_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

/// Asks for a broker to be forgotten. The request has no time-out of its own.
pub fn handle(call: Call, request: UnregisterBrokerRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&UNREGISTER_BROKER_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    decided(call, Kind::UnregisterBroker.into(), request, error_response)
}

fn error_response(
    _request: &UnregisterBrokerRequest,
    error: ErrorCode,
    why: &str,
) -> UnregisterBrokerResponse {
    UnregisterBrokerResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
