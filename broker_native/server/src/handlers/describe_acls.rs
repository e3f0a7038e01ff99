//! DescribeAcls: there are no rules, and nobody who would keep them.
//!
//! KIP-140. Version 1 has patterns (KIP-290); 3 users as resources (KIP-373).
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeAclsRequest, DescribeAclsResponse};

/// Answers as Kafka does without an authorizer: an empty list would say that nobody may do anything.
pub fn handle(call: &Call, _request: &DescribeAclsRequest) -> Outcome {
    Outcome::Now(call.answer(&DescribeAclsResponse {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some("No Authorizer is configured: everybody may do everything here.".into()),
        ..Default::default()
    }))
}
