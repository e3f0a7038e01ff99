//! DescribeConfigs: answered by Python, which declares every setting.
//!
//! KIP-133. Version 1 has sources and synonyms (KIP-226); 3 types and documentation (KIP-569).
use std::collections::HashSet;

use super::common::decided::decided_with;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_configs::DescribeConfigsResult;
use pylog_wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

/// What the settings of a topic take in the answer, with synonyms and documentation.
const DESCRIBED_BYTES: usize = /* 24 KiB */ 24 << 10;

/// Asks for the settings.
pub fn handle(call: Call, request: DescribeConfigsRequest) -> Outcome {
    // One that is named several times is described once.
    let named = request.resources.iter().map(|resource| (resource.resource_type, &resource.resource_name));
    let different = named.collect::<HashSet<_>>().len();
    decided_with(
        call,
        Kind::DescribeConfigs,
        request,
        0,
        different.saturating_mul(DESCRIBED_BYTES),
        error_response,
    )
}

fn error_response(request: &DescribeConfigsRequest, error: ErrorCode, why: &str) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| DescribeConfigsResult {
        error_code: error.code(),
        error_message: Some(why.into()),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}
