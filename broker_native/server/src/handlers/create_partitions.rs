//! CreatePartitions: decided by Python.
//!
//! KIP-195. Version 3 knows quotas (KIP-599).
use super::common::decided::{Decision, decided_then};
use crate::authorization::table::CREATE_PARTITIONS_TOPIC;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_partitions::CreatePartitionsTopicResult;
use pylog_wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

/// Asks for the partitions.
pub fn handle(call: Call, mut request: CreatePartitionsRequest) -> Outcome {
    let refused = call.set_aside(&mut request.topics, &CREATE_PARTITIONS_TOPIC, |topic| &topic.name);
    let error = CREATE_PARTITIONS_TOPIC.error();
    let refused = CreatePartitionsRequest { topics: refused, ..Default::default() };
    let refused = error_response(&refused, error, error.sentence());
    if request.topics.is_empty() && !refused.results.is_empty() {
        return Outcome::Now(call.answer(&refused));
    }
    let decision = Decision { timeout_ms: request.timeout_ms, ..Kind::CreatePartitions.into() };
    decided_then(call, decision, request, error_response, |answer| {
        answer.results.extend(refused.results);
    })
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
