//! DescribeAcls: there are no rules, and nobody who would keep them.
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
