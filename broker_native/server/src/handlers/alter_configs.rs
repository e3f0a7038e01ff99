//! AlterConfigs: decided by Python.
//!
//! KIP-133. No version added anything.
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_configs::AlterConfigsResourceResponse;
use pylog_wire::messages::{AlterConfigsRequest, AlterConfigsResponse};

/// Asks for the change.
pub fn handle(call: Call, request: AlterConfigsRequest) -> Outcome {
    decided(call, Kind::AlterConfigs, request, 0, error_response)
}

fn error_response(request: &AlterConfigsRequest, error: ErrorCode, why: &str) -> AlterConfigsResponse {
    let responses = request.resources.iter().map(|resource| AlterConfigsResourceResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
    });
    AlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}
