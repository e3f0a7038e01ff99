//! AlterConfigs: decided by Python.
//!
//! KIP-133. No version added anything.
use super::common::decided::decided_then;
use super::common::naming::{self, NamingRights};
use crate::authorization::table::{
    ALTER_CONFIGS_CLUSTER, ALTER_CONFIGS_DEAD_LETTERS, ALTER_CONFIGS_GROUP, ALTER_CONFIGS_KEPT_FOR,
    ALTER_CONFIGS_TOPIC, Right,
};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::CLUSTER_NAME;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_configs::{AlterConfigsResource, AlterConfigsResourceResponse};
use pylog_wire::messages::describe_configs::{RESOURCE_GROUP, RESOURCE_TOPIC};
use pylog_wire::messages::{AlterConfigsRequest, AlterConfigsResponse};

const NAMING: NamingRights =
    NamingRights { dead_letters: &ALTER_CONFIGS_DEAD_LETTERS, groups: &ALTER_CONFIGS_KEPT_FOR };

/// Asks for the change.
pub fn handle(call: Call, mut request: AlterConfigsRequest) -> Outcome {
    let mut refused = Vec::new();
    for resource in call.set_aside_where(&mut request.resources, |resource| {
        let (right, name) = right_to(resource);
        !call.may(right, name)
    }) {
        let error = right_to(&resource).0.error();
        let resource = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
        refused.extend(error_response(&resource, error, error.sentence()).responses);
    }
    for (resource, error) in
        call.set_aside_with(&mut request.resources, |resource| check_naming(&call, resource))
    {
        let resource = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
        refused.extend(error_response(&resource, error, &naming::why(error)).responses);
    }
    for resource in request.resources.iter_mut().filter(|resource| resource.resource_type == RESOURCE_TOPIC) {
        naming::record_owner(&call, &mut resource.configs);
    }
    if request.resources.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&AlterConfigsResponse { responses: refused, ..Default::default() }));
    }
    decided_then(call, Kind::AlterConfigs.into(), request, error_response, |answer| {
        answer.responses.extend(refused)
    })
}

/// What is demanded of who changes the resource. Those of types that are not known are refused by who decides.
fn right_to(resource: &AlterConfigsResource) -> (&'static Right, &str) {
    match resource.resource_type {
        RESOURCE_TOPIC => (&ALTER_CONFIGS_TOPIC, &resource.resource_name),
        RESOURCE_GROUP => (&ALTER_CONFIGS_GROUP, &resource.resource_name),
        _ => (&ALTER_CONFIGS_CLUSTER, CLUSTER_NAME),
    }
}

/// Whether the client has a right to what settings of a topic name.
fn check_naming(call: &Call, resource: &AlterConfigsResource) -> Result<(), ErrorCode> {
    match resource.resource_type {
        RESOURCE_TOPIC => naming::check(call, &NAMING, &resource.configs),
        _ => Ok(()),
    }
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
