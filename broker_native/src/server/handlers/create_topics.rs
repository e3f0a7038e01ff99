//! CreateTopics: decided by Python.
use super::decided::decided;
use crate::server::decide::Kind;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::create_topics::CreatableTopicResult;
use crate::wire::messages::{CreateTopicsRequest, CreateTopicsResponse};

/// Asks for the topics.
pub fn handle(call: Call, request: CreateTopicsRequest) -> Outcome {
    let timeout_ms = request.timeout_ms;
    decided(call, Kind::CreateTopics, request, timeout_ms, refused)
}

fn refused(request: &CreateTopicsRequest, error: ErrorCode, why: &str) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| CreatableTopicResult {
        name: topic.name.clone(),
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    });
    CreateTopicsResponse { topics: topics.collect(), ..Default::default() }
}
