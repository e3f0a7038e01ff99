//! DescribeAcls (29): who may do what.
use crate::schema::messages;

/// `pattern_type` of a name that is meant literally.
pub(super) const LITERAL: i8 = 3;

messages! {
    /// Which rules; null and "any" let all through.
    DescribeAclsRequest of DescribeAcls {
        resource_type_filter: i8 [0+],
        resource_name_filter: Option<String> [0+],
        pattern_type_filter: i8 [1+] = LITERAL,
        principal_filter: Option<String> [0+],
        host_filter: Option<String> [0+],
        operation: i8 [0+],
        permission_type: i8 [0+],
    }

    /// The rules, by resource.
    DescribeAclsResponse of DescribeAcls {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        resources: Vec<DescribeAclsResource> [0+],
    }

    /// The rules for one resource.
    DescribeAclsResource {
        resource_type: i8 [0+],
        resource_name: String [0+],
        pattern_type: i8 [1+] = LITERAL,
        acls: Vec<AclDescription> [0+],
    }

    /// One rule.
    AclDescription {
        principal: String [0+],
        host: String [0+],
        operation: i8 [0+],
        permission_type: i8 [0+],
    }
}
