//! CreatePartitions: decided by Python.
//!
//! KIP-195. Version 3 knows quotas (KIP-599).
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_partitions::CreatePartitionsTopicResult;
use pylog_wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

/// Asks for the partitions.
pub fn handle(call: Call, request: CreatePartitionsRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::CreatePartitions, request, timeout_ms, error_response)
}

fn error_response(
    request: &CreatePartitionsRequest,
    error: ErrorCode,
    why: &str,
) -> CreatePartitionsResponse {
    let results = request.topics.iter().map(|topic| CreatePartitionsTopicResult {
        name: topic.name.clone(),
        error_code: error.code(),
        error_message: Some(why.into()),
    });
    CreatePartitionsResponse { results: results.collect(), ..Default::default() }
}
