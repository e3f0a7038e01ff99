//! DescribeConfigs: answered by Python, which declares every setting.
//!
//! KIP-133. Version 1 has sources and synonyms (KIP-226); 3 types and documentation (KIP-569).
use std::collections::HashSet;

use super::common::decided::{Decision, decided_then};
use crate::authorization::table::{
    DESCRIBE_CONFIGS_CLUSTER, DESCRIBE_CONFIGS_GROUP, DESCRIBE_CONFIGS_TOPIC, Right,
};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::CLUSTER_NAME;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResult, RESOURCE_GROUP, RESOURCE_TOPIC,
};
use pylog_wire::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

/// What the settings of a topic take in the answer, with synonyms and documentation.
const DESCRIBED_BYTES: usize = /* 24 KiB */ 24 << 10;

/// Asks for the settings.
pub fn handle(call: Call, mut request: DescribeConfigsRequest) -> Outcome {
    let mut refused = Vec::new();
    for resource in call.set_aside_where(&mut request.resources, |resource| {
        let (right, name) = right_to(resource);
        !call.may(right, name)
    }) {
        let error = right_to(&resource).0.error();
        let resource = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        refused.extend(error_response(&resource, error, error.sentence()).results);
    }
    if request.resources.is_empty() && !refused.is_empty() {
        return Outcome::Now(
            call.answer(&DescribeConfigsResponse { results: refused, ..Default::default() }),
        );
    }
    // One that is named several times is described once.
    let named = request.resources.iter().map(|resource| (resource.resource_type, &resource.resource_name));
    let different = named.collect::<HashSet<_>>().len();
    let answer_bytes = different.saturating_mul(DESCRIBED_BYTES);
    let decision = Decision { answer_bytes, ..Kind::DescribeConfigs.into() };
    decided_then(call, decision, request, error_response, |answer| {
        answer.results.extend(refused);
    })
}

/// What is demanded of who looks at the resource.
fn right_to(resource: &DescribeConfigsResource) -> (&'static Right, &str) {
    match resource.resource_type {
        RESOURCE_TOPIC => (&DESCRIBE_CONFIGS_TOPIC, &resource.resource_name),
        RESOURCE_GROUP => (&DESCRIBE_CONFIGS_GROUP, &resource.resource_name),
        _ => (&DESCRIBE_CONFIGS_CLUSTER, CLUSTER_NAME),
    }
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
