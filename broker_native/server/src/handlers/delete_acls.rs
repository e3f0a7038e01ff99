//! DeleteAcls (31): a filter that makes no sense is refused here; what the others mean is found and deleted by Python.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use super::common::decided::decided_then;
use super::create_acls::NO_AUTHORIZER;
use crate::authorization::table::DELETE_ACLS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_security::acl::AclFilter;
use pylog_security::acl::filter::InvalidFilter;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_acls::{DeleteAclsFilter, DeleteAclsFilterResult};
use pylog_wire::messages::{DeleteAclsRequest, DeleteAclsResponse};

/// Answers in the order of the request.
pub fn handle(call: Call, request: DeleteAclsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DELETE_ACLS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    if !call.is_guarded() {
        let error = ErrorCode::SecurityDisabled;
        return Outcome::Now(call.answer(&error_response(&request, error, NO_AUTHORIZER)));
    }
    let refusals: Vec<_> = request.filters.iter().map(|asked| filter(asked).err()).collect();
    let filters = request.filters.into_iter().zip(&refusals);
    let filters: Vec<_> = filters.filter(|(_, why)| why.is_none()).map(|(filter, _)| filter).collect();
    if filters.is_empty() {
        let mut answer = DeleteAclsResponse::default();
        merge(&mut answer, refusals);
        return Outcome::Now(call.answer(&answer));
    }
    let valid = DeleteAclsRequest { filters };
    decided_then(call, Kind::DeleteAcls, valid, 0, error_response, |answer| merge(answer, refusals))
}

/// Which ACLs are meant.
fn filter(asked: &DeleteAclsFilter) -> Result<AclFilter, InvalidFilter> {
    AclFilter::of_request(
        (asked.resource_type_filter, asked.resource_name_filter.as_deref(), asked.pattern_type_filter),
        (asked.principal_filter.as_deref(), asked.host_filter.as_deref()),
        (asked.operation, asked.permission_type),
    )
}

/// Puts what was refused here between what was decided.
fn merge(answer: &mut DeleteAclsResponse, refusals: Vec<Option<InvalidFilter>>) {
    let mut decided = std::mem::take(&mut answer.filter_results).into_iter();
    let results = refusals.into_iter().map(|refusal| match refusal {
        None => decided.next().unwrap_or_else(|| result(ErrorCode::UnknownServerError, "")),
        Some(why) => result(ErrorCode::InvalidRequest, &why.to_string()),
    });
    answer.filter_results = results.collect();
}

fn result(error: ErrorCode, why: &str) -> DeleteAclsFilterResult {
    DeleteAclsFilterResult {
        error_code: error.code(),
        error_message: Some(why.to_owned()),
        ..Default::default()
    }
}

fn error_response(request: &DeleteAclsRequest, error: ErrorCode, why: &str) -> DeleteAclsResponse {
    let filter_results = request.filters.iter().map(|_filter| result(error, why));
    DeleteAclsResponse { filter_results: filter_results.collect(), ..Default::default() }
}
