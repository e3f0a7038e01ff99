//! DescribeUserScramCredentials: answered by Python.
//!
//! KIP-554.
use super::common::decided::decided;
use crate::authorization::table::DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse};

/// Asks for the users.
pub fn handle(call: Call, request: DescribeUserScramCredentialsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    decided(call, Kind::DescribeUserScramCredentials.into(), request, error_response)
}

fn error_response(
    _request: &DescribeUserScramCredentialsRequest,
    error: ErrorCode,
    why: &str,
) -> DescribeUserScramCredentialsResponse {
    DescribeUserScramCredentialsResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
