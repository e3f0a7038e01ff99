//! IncrementalAlterConfigs: decided by Python.
//!
//! KIP-339. No version added anything.
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::incremental_alter_configs::AlterConfigsResourceResponse;
use pylog_wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

/// Asks for the change.
pub fn handle(call: Call, request: IncrementalAlterConfigsRequest) -> Outcome {
    decided(call, Kind::IncrementalAlterConfigs, request, 0, error_response)
}

fn error_response(
    request: &IncrementalAlterConfigsRequest,
    error: ErrorCode,
    why: &str,
) -> IncrementalAlterConfigsResponse {
    let responses = request.resources.iter().map(|resource| AlterConfigsResourceResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
    });
    IncrementalAlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}
