//! UpdateFeatures: decided by Python.
use super::decided::decided;
use crate::server::decide::Kind;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

/// Asks for the levels.
pub fn handle(call: Call, request: UpdateFeaturesRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::UpdateFeatures, request, timeout_ms, |_request, error: ErrorCode, why| {
        UpdateFeaturesResponse {
            error_code: error.code(),
            error_message: Some(why.into()),
            ..Default::default()
        }
    })
}
