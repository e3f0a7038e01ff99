//! CreateAcls (30): what is wrong with an ACL is found here, the others are stored by Python, all or none of them.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use super::common::decided::decided_then;
use crate::authorization::table::CREATE_ACLS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::{AclBinding, InvalidAcl};
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_acls::{AclCreation, AclCreationResult};
use pylog_wire::messages::{CreateAclsRequest, CreateAclsResponse};

/// Why nothing is done without an authorizer, as in Kafka.
pub const NO_AUTHORIZER: &str = "No Authorizer is configured.";

/// Answers in the order of the request.
pub fn handle(call: Call, request: CreateAclsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&CREATE_ACLS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    if !call.is_guarded() {
        let error = ErrorCode::SecurityDisabled;
        return Outcome::Now(call.answer(&error_response(&request, error, NO_AUTHORIZER)));
    }
    let refusals: Vec<_> = request.creations.iter().map(|creation| binding(creation).err()).collect();
    let creations = request.creations.into_iter().zip(&refusals);
    let creations: Vec<_> =
        creations.filter(|(_, why)| why.is_none()).map(|(creation, _)| creation).collect();
    if creations.is_empty() {
        let mut answer = CreateAclsResponse::default();
        merge(&mut answer, refusals);
        return Outcome::Now(call.answer(&answer));
    }
    let valid = CreateAclsRequest { creations };
    decided_then(call, Kind::CreateAcls, valid, 0, error_response, |answer| merge(answer, refusals))
}

/// The ACL that is asked for.
fn binding(asked: &AclCreation) -> Result<AclBinding, InvalidAcl> {
    AclBinding::of_request(
        (asked.resource_type, &asked.resource_name, asked.resource_pattern_type),
        (&asked.principal, &asked.host),
        (asked.operation, asked.permission_type),
    )
}

/// Puts what was refused here between what was decided.
fn merge(answer: &mut CreateAclsResponse, refusals: Vec<Option<InvalidAcl>>) {
    let mut decided = std::mem::take(&mut answer.results).into_iter();
    let results = refusals.into_iter().map(|refusal| match refusal {
        None => decided.next().unwrap_or_else(|| result(ErrorCode::UnknownServerError, "")),
        Some(why) => result(ErrorCode::InvalidRequest, &why.to_string()),
    });
    answer.results = results.collect();
}

fn result(error: ErrorCode, why: &str) -> AclCreationResult {
    AclCreationResult { error_code: error.code(), error_message: Some(why.to_owned()) }
}

fn error_response(request: &CreateAclsRequest, error: ErrorCode, why: &str) -> CreateAclsResponse {
    let results = request.creations.iter().map(|_creation| result(error, why));
    CreateAclsResponse { results: results.collect(), ..Default::default() }
}
