//! DescribeUserScramCredentials: answered by Python.
//!
//! KIP-554.
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse};

/// Asks for the users.
pub fn handle(call: Call, request: DescribeUserScramCredentialsRequest) -> Outcome {
    decided(call, Kind::DescribeUserScramCredentials, request, 0, |_request, error: ErrorCode, why| {
        DescribeUserScramCredentialsResponse {
            error_code: error.code(),
            error_message: Some(why.into()),
            ..Default::default()
        }
    })
}
