//! DeleteAcls (31): all rules that filters let through are removed.
use super::describe_acls::LITERAL;
use crate::schema::messages;

messages! {
    /// The filters.
    DeleteAclsRequest of DeleteAcls {
        filters: Vec<DeleteAclsFilter> [0+],
    }

    /// Which rules; null and "any" let all through.
    DeleteAclsFilter {
        resource_type_filter: i8 [0+],
        resource_name_filter: Option<String> [0+],
        pattern_type_filter: i8 [1+] = LITERAL,
        principal_filter: Option<String> [0+],
        host_filter: Option<String> [0+],
        operation: i8 [0+],
        permission_type: i8 [0+],
    }

    /// What each filter let through, in their order.
    DeleteAclsResponse of DeleteAcls {
        throttle_time_ms: i32 [0+],
        filter_results: Vec<DeleteAclsFilterResult> [0+],
    }

    /// What one filter let through.
    DeleteAclsFilterResult {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        matching_acls: Vec<DeleteAclsMatchingAcl> [0+],
    }

    /// One rule that is gone, or why it is not.
    DeleteAclsMatchingAcl {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        resource_type: i8 [0+],
        resource_name: String [0+],
        pattern_type: i8 [1+] = LITERAL,
        principal: String [0+],
        host: String [0+],
        operation: i8 [0+],
        permission_type: i8 [0+],
    }
}
