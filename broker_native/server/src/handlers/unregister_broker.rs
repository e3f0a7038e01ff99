//! UnregisterBroker: decided by Python.
//!
//! KIP-631.
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

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
