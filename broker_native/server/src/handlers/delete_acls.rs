//! DeleteAcls (31): a filter that makes no sense is refused here; what the others mean is found and deleted by Python.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use super::common::acls::{NO_AUTHORIZER, merged, sorted_out};
use super::common::decided::decided_then;
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
    let (filters, refusals) = sorted_out(request.filters, |asked| filter(asked).map(|_valid| ()));
    if filters.is_empty() {
        let filter_results = merged(Vec::new(), refusals, result);
        return Outcome::Now(call.answer(&DeleteAclsResponse { filter_results, ..Default::default() }));
    }
    let valid = DeleteAclsRequest { filters };
    decided_then(call, Kind::DeleteAcls.into(), valid, error_response, |answer| {
        answer.filter_results = merged(std::mem::take(&mut answer.filter_results), refusals, result);
    })
}

/// Which ACLs are meant.
fn filter(asked: &DeleteAclsFilter) -> Result<AclFilter, InvalidFilter> {
    AclFilter::of_request(
        (asked.resource_type_filter, asked.resource_name_filter.as_deref(), asked.pattern_type_filter),
        (asked.principal_filter.as_deref(), asked.host_filter.as_deref()),
        (asked.operation, asked.permission_type),
    )
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
