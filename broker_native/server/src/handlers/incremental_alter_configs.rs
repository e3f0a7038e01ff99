//! IncrementalAlterConfigs: decided by Python.
//!
//! KIP-339. No version added anything.
use super::common::decided::{Decision, decided_then};
use super::common::naming::{self, NamingRights};
use crate::authorization::table::{
    INCREMENTAL_ALTER_CONFIGS_CLUSTER, INCREMENTAL_ALTER_CONFIGS_DEAD_LETTERS,
    INCREMENTAL_ALTER_CONFIGS_GROUP, INCREMENTAL_ALTER_CONFIGS_KEPT_FOR, INCREMENTAL_ALTER_CONFIGS_TOPIC,
    Right,
};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::CLUSTER_NAME;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_configs::{RESOURCE_BROKER_LOGGER, RESOURCE_GROUP, RESOURCE_TOPIC};
use pylog_wire::messages::incremental_alter_configs::{AlterConfigsResource, AlterConfigsResourceResponse};
use pylog_wire::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

const NAMING: NamingRights = NamingRights {
    dead_letters: &INCREMENTAL_ALTER_CONFIGS_DEAD_LETTERS,
    groups: &INCREMENTAL_ALTER_CONFIGS_KEPT_FOR,
};

/// Asks for the change.
pub fn handle(call: Call, mut request: IncrementalAlterConfigsRequest) -> Outcome {
    let mut refused = Vec::new();
    for resource in call.set_aside_where(&mut request.resources, |resource| {
        let (right, name) = right_to(resource);
        !call.may(right, name)
    }) {
        let error = right_to(&resource).0.error();
        let resource = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        refused.extend(error_response(&resource, error, error.sentence()).responses);
    }
    for (resource, error) in
        call.set_aside_with(&mut request.resources, |resource| check_naming(&call, resource))
    {
        let resource = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        refused.extend(error_response(&resource, error, &naming::why(error)).responses);
    }
    for resource in request.resources.iter_mut().filter(|resource| resource.resource_type == RESOURCE_TOPIC) {
        naming::record_owner(&call, &mut resource.configs);
    }
    if request.resources.is_empty() && !refused.is_empty() {
        return Outcome::Now(
            call.answer(&IncrementalAlterConfigsResponse { responses: refused, ..Default::default() }),
        );
    }
    // Levels of loggers are the broker's own.
    let needs_store =
        request.resources.iter().any(|resource| resource.resource_type != RESOURCE_BROKER_LOGGER);
    let decision = Decision { needs_store, ..Kind::IncrementalAlterConfigs.into() };
    decided_then(call, decision, request, error_response, |answer| answer.responses.extend(refused))
}

/// What is demanded of who changes the resource. Those of types that are not known are refused by who decides.
fn right_to(resource: &AlterConfigsResource) -> (&'static Right, &str) {
    match resource.resource_type {
        RESOURCE_TOPIC => (&INCREMENTAL_ALTER_CONFIGS_TOPIC, &resource.resource_name),
        RESOURCE_GROUP => (&INCREMENTAL_ALTER_CONFIGS_GROUP, &resource.resource_name),
        _ => (&INCREMENTAL_ALTER_CONFIGS_CLUSTER, CLUSTER_NAME),
    }
}

/// Whether the client has a right to what settings of a topic name.
fn check_naming(call: &Call, resource: &AlterConfigsResource) -> Result<(), ErrorCode> {
    match resource.resource_type {
        RESOURCE_TOPIC => naming::check(call, &NAMING, &resource.configs),
        _ => Ok(()),
    }
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
