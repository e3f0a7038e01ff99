//! AlterUserScramCredentials: decided by Python.
//!
//! KIP-554.
use std::collections::BTreeSet;

use super::common::decided::decided;
use crate::authorization::table::ALTER_USER_SCRAM_CREDENTIALS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_user_scram_credentials::AlterUserScramCredentialsResult;
use pylog_wire::messages::{AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse};

/// Asks for the changes. The request has no time-out of its own.
pub fn handle(call: Call, request: AlterUserScramCredentialsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ALTER_USER_SCRAM_CREDENTIALS_CLUSTER) {
        return Outcome::Now(call.answer(&error_response(&request, error, error.sentence())));
    }
    decided(call, Kind::AlterUserScramCredentials.into(), request, error_response)
}

fn error_response(
    request: &AlterUserScramCredentialsRequest,
    error: ErrorCode,
    why: &str,
) -> AlterUserScramCredentialsResponse {
    let deleted = request.deletions.iter().map(|deletion| &deletion.name);
    let users: BTreeSet<&String> =
        deleted.chain(request.upsertions.iter().map(|upsertion| &upsertion.name)).collect();
    let results = users.into_iter().map(|user| AlterUserScramCredentialsResult {
        user: user.clone(),
        error_code: error.code(),
        error_message: Some(why.into()),
    });
    AlterUserScramCredentialsResponse { results: results.collect(), ..Default::default() }
}
