//! AlterClientQuotas: decided by Python.
//!
//! KIP-546; quotas of addresses KIP-612.
use super::common::decided::decided;
use crate::authorization::table::ALTER_CLIENT_QUOTAS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_client_quotas::EntryResult;
use pylog_wire::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse};

/// Asks for the changes. The request has no time-out of its own.
pub fn handle(call: Call, request: AlterClientQuotasRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ALTER_CLIENT_QUOTAS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    decided(call, Kind::AlterClientQuotas.into(), request, error_response)
}

fn error_response(
    request: &AlterClientQuotasRequest,
    error: ErrorCode,
    why: &str,
) -> AlterClientQuotasResponse {
    let entries = request.entries.iter().map(|entry| EntryResult {
        error_code: error.code(),
        error_message: Some(why.into()),
        entity: entry.entity.clone(),
    });
    AlterClientQuotasResponse { entries: entries.collect(), ..Default::default() }
}
