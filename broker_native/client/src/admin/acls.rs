//! ACLs: which there are, more of them, fewer of them (KIP-140).
use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, error_name, refuse_saying, said};
use crate::error::{ClientError, Result};
use crate::metadata::cluster::Cluster;
use pylog_wire::messages::create_acls::AclCreation;
use pylog_wire::messages::delete_acls::{DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsMatchingAcl};
use pylog_wire::messages::describe_acls::{AclDescription, DescribeAclsResource};
use pylog_wire::messages::{CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest};

/// Kafka's names of numbers, from 0 on.
const RESOURCE_TYPES: &[&str] =
    &["UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];
const PATTERN_TYPES: &[&str] = &["UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"];
const OPERATIONS: &[&str] = &[
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
];
const PERMISSIONS: &[&str] = &["UNKNOWN", "ANY", "DENY", "ALLOW"];

/// One ACL; enumerations by Kafka's names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acl {
    resource_type: String,
    resource_name: String,
    pattern_type: String,
    principal: String,
    host: String,
    operation: String,
    permission: String,
}

/// Which ACLs: `None` and "ANY" let all through.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    resource_type: String,
    resource_name: Option<String>,
    pattern_type: String,
    principal: Option<String>,
    host: Option<String>,
    operation: String,
    permission: String,
}

/// The ACLs that `filter` lets through, sorted: {resource_type, resource_name, pattern_type, principal, host, operation,
/// permission}.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown word, those of the connection and of the whole request.
pub fn describe(cluster: &mut Cluster, filter: &Filter) -> Result<Vec<Value>> {
    let what = "describe ACLs";
    let request = DescribeAclsRequest {
        resource_type_filter: number(RESOURCE_TYPES, "resource type", &filter.resource_type)?,
        resource_name_filter: filter.resource_name.clone(),
        pattern_type_filter: number(PATTERN_TYPES, "pattern type", &filter.pattern_type)?,
        principal_filter: filter.principal.clone(),
        host_filter: filter.host.clone(),
        operation: number(OPERATIONS, "operation", &filter.operation)?,
        permission_type: number(PERMISSIONS, "permission", &filter.permission)?,
    };
    let answer = cluster.retrying(what, |cluster| cluster.call_any(&request))?;
    refuse_saying(answer.error_code, answer.error_message.as_deref(), what)?;
    let of = |resource: DescribeAclsResource| {
        let one = move |acl: &AclDescription| {
            acl_json(
                (resource.resource_type, &resource.resource_name, resource.pattern_type),
                (&acl.principal, &acl.host, acl.operation, acl.permission_type),
            )
        };
        resource.acls.iter().map(one).collect::<Vec<_>>()
    };
    let mut found: Vec<Value> = answer.resources.into_iter().flat_map(of).collect();
    found.sort_by_cached_key(Value::to_string);
    Ok(found)
}

/// Creates ACLs: for each one, in order, {error, message}.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown word, those of the connection.
pub fn create(cluster: &mut Cluster, acls: &[Acl]) -> Result<Vec<Value>> {
    let creation = |acl: &Acl| {
        Ok(AclCreation {
            resource_type: number(RESOURCE_TYPES, "resource type", &acl.resource_type)?,
            resource_name: acl.resource_name.clone(),
            resource_pattern_type: number(PATTERN_TYPES, "pattern type", &acl.pattern_type)?,
            principal: acl.principal.clone(),
            host: acl.host.clone(),
            operation: number(OPERATIONS, "operation", &acl.operation)?,
            permission_type: number(PERMISSIONS, "permission", &acl.permission)?,
        })
    };
    let creations: Vec<_> = acls.iter().map(creation).collect::<Result<_>>()?;
    let answer = change(cluster, "create ACLs", &CreateAclsRequest { creations })?;
    let results = answer.results.iter().map(|result| {
        json!({
            "error": error_name(result.error_code),
            "message": said(result.error_code, result.error_message.as_deref()),
        })
    });
    Ok(results.collect())
}

/// Deletes the ACLs that filters let through: for each filter, in order, {acls: those that are gone, error, message}.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown word, those of the connection.
pub fn delete(cluster: &mut Cluster, filters: &[Filter]) -> Result<Vec<Value>> {
    let asked = |filter: &Filter| {
        Ok(DeleteAclsFilter {
            resource_type_filter: number(RESOURCE_TYPES, "resource type", &filter.resource_type)?,
            resource_name_filter: filter.resource_name.clone(),
            pattern_type_filter: number(PATTERN_TYPES, "pattern type", &filter.pattern_type)?,
            principal_filter: filter.principal.clone(),
            host_filter: filter.host.clone(),
            operation: number(OPERATIONS, "operation", &filter.operation)?,
            permission_type: number(PERMISSIONS, "permission", &filter.permission)?,
        })
    };
    let filters: Vec<_> = filters.iter().map(asked).collect::<Result<_>>()?;
    let answer = change(cluster, "delete ACLs", &DeleteAclsRequest { filters })?;
    Ok(answer.filter_results.iter().map(deleted_json).collect())
}

fn deleted_json(result: &DeleteAclsFilterResult) -> Value {
    let gone = |acl: &&DeleteAclsMatchingAcl| acl.error_code == 0;
    let shown = |acl: &DeleteAclsMatchingAcl| {
        acl_json(
            (acl.resource_type, &acl.resource_name, acl.pattern_type),
            (&acl.principal, &acl.host, acl.operation, acl.permission_type),
        )
    };
    // An ACL that could not be deleted is the filter's error; there is hardly ever one.
    let left = result.matching_acls.iter().find(|acl| acl.error_code != 0);
    let (error, message) = left
        .filter(|_| result.error_code == 0)
        .map_or((result.error_code, &result.error_message), |acl| (acl.error_code, &acl.error_message));
    json!({
        "acls": result.matching_acls.iter().filter(gone).map(shown).collect::<Vec<_>>(),
        "error": error_name(error),
        "message": said(error, message.as_deref()),
    })
}

fn acl_json(pattern: (i8, &str, i8), entry: (&str, &str, i8, i8)) -> Value {
    let (resource_type, resource_name, pattern_type) = pattern;
    let (principal, host, operation, permission) = entry;
    json!({
        "resource_type": name(RESOURCE_TYPES, resource_type),
        "resource_name": resource_name,
        "pattern_type": name(PATTERN_TYPES, pattern_type),
        "principal": principal,
        "host": host,
        "operation": name(OPERATIONS, operation),
        "permission": name(PERMISSIONS, permission),
    })
}

fn name(names: &[&'static str], number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|at| names.get(at)).copied().unwrap_or("UNKNOWN")
}

fn number(names: &[&str], what: &str, given: &str) -> Result<i8> {
    let found = names.iter().skip(1).position(|known| *known == given);
    found.and_then(|at| i8::try_from(at + 1).ok()).ok_or_else(|| {
        ClientError::invalid(format!("the {what} {given:?} must be one of {}", names[1..].join(", ")))
    })
}
