//! CreateAcls (30): new rules.
use super::describe_acls::LITERAL;
use crate::schema::messages;

messages! {
    /// The rules.
    CreateAclsRequest of CreateAcls {
        creations: Vec<AclCreation> [0+],
    }

    /// One rule.
    AclCreation {
        resource_type: i8 [0+],
        resource_name: String [0+],
        resource_pattern_type: i8 [1+] = LITERAL,
        principal: String [0+],
        host: String [0+],
        operation: i8 [0+],
        permission_type: i8 [0+],
    }

    /// What became of each, in their order.
    CreateAclsResponse of CreateAcls {
        throttle_time_ms: i32 [0+],
        results: Vec<AclCreationResult> [0+],
    }

    /// What became of one.
    AclCreationResult {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
