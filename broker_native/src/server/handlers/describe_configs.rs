//! DescribeConfigs: answered by Python, which declares every setting.
use super::decided::decided;
use crate::server::decide::Kind;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::describe_configs::DescribeConfigsResult;
use crate::wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

/// Asks for the settings.
pub fn handle(call: Call, request: DescribeConfigsRequest) -> Outcome {
    decided(call, Kind::DescribeConfigs, request, 0, refused)
}

fn refused(request: &DescribeConfigsRequest, error: ErrorCode, why: &str) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| DescribeConfigsResult {
        error_code: error.code(),
        error_message: Some(why.into()),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}
