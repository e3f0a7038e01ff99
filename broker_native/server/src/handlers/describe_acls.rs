//! DescribeAcls (29): the ACLs that a filter means, from memory, by resource.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use crate::authorization::table::DESCRIBE_ACLS_CLUSTER;
use crate::call::{Call, Outcome};
use pylog_security::acl::filter::InvalidFilter;
use pylog_security::acl::{AclBinding, AclFilter, Pattern, Rules};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_acls::{AclDescription, DescribeAclsResource};
use pylog_wire::messages::{DescribeAclsRequest, DescribeAclsResponse};

/// Answers at once. Without an authorizer as Kafka does: an empty list would say that nobody may do anything.
pub fn handle(call: &Call, request: &DescribeAclsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_ACLS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(error, error.sentence())));
    }
    let Some(authorizer) = &call.shared.authorizer else {
        let why = "No Authorizer is configured on the broker: everybody may do everything here.";
        return Outcome::Now(call.answer(&error_response(ErrorCode::SecurityDisabled, why)));
    };
    let filter = match filter(request) {
        Ok(filter) => filter,
        Err(why) => {
            let answer = error_response(ErrorCode::InvalidRequest, &why.to_string());
            return Outcome::Now(call.answer(&answer));
        }
    };
    let resources = described(&authorizer.rules(), &filter);
    Outcome::Now(call.answer(&DescribeAclsResponse { resources, ..Default::default() }))
}

/// Which ACLs are asked for.
fn filter(asked: &DescribeAclsRequest) -> Result<AclFilter, InvalidFilter> {
    AclFilter::of_request(
        (asked.resource_type_filter, asked.resource_name_filter.as_deref(), asked.pattern_type_filter),
        (asked.principal_filter.as_deref(), asked.host_filter.as_deref()),
        (asked.operation, asked.permission_type),
    )
}

/// The ACLs of one pattern stand together.
fn described(rules: &Rules, filter: &AclFilter) -> Vec<DescribeAclsResource> {
    let mut resources: Vec<DescribeAclsResource> = Vec::new();
    let mut last: Option<&Pattern> = None;
    for AclBinding { pattern, entry } in rules.matching(filter) {
        let acl = AclDescription {
            principal: entry.principal.clone(),
            host: entry.host.clone(),
            operation: entry.operation.code(),
            permission_type: entry.permission.code(),
        };
        match resources.last_mut() {
            Some(resource) if last == Some(pattern) => resource.acls.push(acl),
            _ => resources.push(DescribeAclsResource {
                resource_type: pattern.resource_type.code(),
                resource_name: pattern.name.clone(),
                pattern_type: pattern.pattern_type.code(),
                acls: vec![acl],
            }),
        }
        last = Some(pattern);
    }
    resources
}

fn error_response(error: ErrorCode, why: &str) -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: error.code(),
        error_message: Some(why.to_owned()),
        ..Default::default()
    }
}
