//! UnregisterBroker: decided by Python.
use super::decided::decided;
use crate::server::decide::Kind;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

/// Asks for a broker to be forgotten. The request has no time-out of its own.
pub fn handle(call: Call, request: UnregisterBrokerRequest) -> Outcome {
    decided(call, Kind::UnregisterBroker, request, 0, |_request, error: ErrorCode, why| {
        UnregisterBrokerResponse {
            error_code: error.code(),
            error_message: Some(why.into()),
            ..Default::default()
        }
    })
}
