//! CreateTopics: decided by Python.
//!
//! KIP-4. Version 4 leaves counts to the broker (KIP-464); 5 answers with the topics' settings (KIP-525); 6 knows quotas
//! (KIP-599); 7 answers with the topics' ids (KIP-516).
use super::common::decided::decided_with;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_topics::CreatableTopicResult;
use pylog_wire::messages::{CreateTopicsRequest, CreateTopicsResponse};

/// What a new topic takes in the answer, with its settings.
const CREATED_BYTES: usize = /* 8 KiB */ 8 << 10;

/// Asks for the topics.
pub fn handle(call: Call, request: CreateTopicsRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    let answer_bytes = request.topics.len().saturating_mul(CREATED_BYTES);
    decided_with(call, Kind::CreateTopics, request, timeout_ms, answer_bytes, error_response)
}

fn error_response(request: &CreateTopicsRequest, error: ErrorCode, why: &str) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| CreatableTopicResult {
        name: topic.name.clone(),
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    });
    CreateTopicsResponse { topics: topics.collect(), ..Default::default() }
}
