//! DeleteTopics: decided by Python.
//!
//! KIP-4. Version 5 has a sentence for each error, and knows quotas (KIP-599); 6 names topics by id too (KIP-516).
use super::common::decided::decided;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_topics::DeletableTopicResult;
use pylog_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

/// Asks for the deletion.
pub fn handle(call: Call, request: DeleteTopicsRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::DeleteTopics, request, timeout_ms, error_response)
}

fn error_response(request: &DeleteTopicsRequest, error: ErrorCode, why: &str) -> DeleteTopicsResponse {
    let refusal = DeletableTopicResult {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    };
    let named = request
        .topic_names
        .iter()
        .map(|name| DeletableTopicResult { name: Some(name.clone()), ..refusal.clone() });
    let states = request.topics.iter().map(|topic| DeletableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        ..refusal.clone()
    });
    DeleteTopicsResponse { responses: named.chain(states).collect(), ..Default::default() }
}
