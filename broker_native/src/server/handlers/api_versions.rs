//! ApiVersions: what this broker speaks.
use crate::server::dispatch::{Call, Outcome, SERVED};
use crate::wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use crate::wire::{ApiKey, ErrorCode};

/// Answers with the table.
pub fn handle(call: &Call, _request: &ApiVersionsRequest) -> Outcome {
    Outcome::Now(call.answer(&table(ErrorCode::None)))
}

/// A version newer than ours: version 0 of the answer, whatever was asked for, with the table, so that the client can
/// choose again. Closing instead breaks new clients.
pub fn unknown_version(mut call: Call) -> Outcome {
    call.version = 0;
    Outcome::Now(call.answer(&table(ErrorCode::UnsupportedVersion)))
}

fn table(error: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: error.code(),
        api_keys: SERVED.iter().copied().map(ApiKey::info).map(|info| info.advertisement()).collect(),
        ..Default::default()
    }
}
