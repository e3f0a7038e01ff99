//! CreateAcls (30): what is wrong with an ACL is found here, the others are stored by Python, all or none of them.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use super::common::acls::{NO_AUTHORIZER, merged, sorted_out};
use super::common::decided::decided_then;
use crate::authorization::table::CREATE_ACLS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::{AclBinding, InvalidAcl};
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_acls::{AclCreation, AclCreationResult};
use pylog_wire::messages::{CreateAclsRequest, CreateAclsResponse};

/// Answers in the order of the request.
pub fn handle(call: Call, request: CreateAclsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&CREATE_ACLS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    if !call.is_guarded() {
        let error = ErrorCode::SecurityDisabled;
        return Outcome::Now(call.answer(&error_response(&request, error, NO_AUTHORIZER)));
    }
    let (creations, refusals) = sorted_out(request.creations, |asked| binding(asked).map(|_valid| ()));
    if creations.is_empty() {
        let results = merged(Vec::new(), refusals, result);
        return Outcome::Now(call.answer(&CreateAclsResponse { results, ..Default::default() }));
    }
    let valid = CreateAclsRequest { creations };
    decided_then(call, Kind::CreateAcls.into(), valid, error_response, |answer| {
        answer.results = merged(std::mem::take(&mut answer.results), refusals, result);
    })
}

/// The ACL that is asked for.
fn binding(asked: &AclCreation) -> Result<AclBinding, InvalidAcl> {
    AclBinding::of_request(
        (asked.resource_type, &asked.resource_name, asked.resource_pattern_type),
        (&asked.principal, &asked.host),
        (asked.operation, asked.permission_type),
    )
}

fn result(error: ErrorCode, why: &str) -> AclCreationResult {
    AclCreationResult { error_code: error.code(), error_message: Some(why.to_owned()) }
}

fn error_response(request: &CreateAclsRequest, error: ErrorCode, why: &str) -> CreateAclsResponse {
    let results = request.creations.iter().map(|_creation| result(error, why));
    CreateAclsResponse { results: results.collect(), ..Default::default() }
}
