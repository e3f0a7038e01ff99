//! DescribeUserScramCredentials: answered by Python.
//!
//! KIP-554.
use super::common::decided::decided;
use super::common::repeated::is_repeated;
use crate::authorization::table::DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_user_scram_credentials::DescribeUserScramCredentialsResult;
use pylog_wire::messages::{DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse};

/// Asks for the users.
pub fn handle(call: Call, request: DescribeUserScramCredentialsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER) {
        let mut answer = error_response(&request, error, error.sentence());
        let users = request.users.as_deref().unwrap_or_default();
        if is_repeated(users.iter().map(|_user| 0)) {
            // As in Kafka: one for each user, none of which is named.
            answer.results = users.iter().map(|_user| refusal(error)).collect();
        }
        return Outcome::Now(call.answer(&answer));
    }
    decided(call, Kind::DescribeUserScramCredentials.into(), request, error_response)
}

fn refusal(error: ErrorCode) -> DescribeUserScramCredentialsResult {
    DescribeUserScramCredentialsResult {
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        ..Default::default()
    }
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
