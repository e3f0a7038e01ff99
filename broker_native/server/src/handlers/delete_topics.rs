//! DeleteTopics: decided by Python.
//!
//! A topic that the client may not delete is never asked for, also one that this broker does not know: who decides may know of it already.
//!
//! KIP-4. Version 5 has a sentence for each error, and knows quotas (KIP-599); 6 names topics by id too (KIP-516).
use uuid::Uuid;

use super::common::decided::{Decision, decided_then};
use crate::authorization::table::{DELETE_TOPICS_CLUSTER, DELETE_TOPICS_DESCRIBE, DELETE_TOPICS_TOPIC};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use crate::state::topics::MetadataImage;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_topics::{DeletableTopicResult, DeleteTopicState};
use pylog_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

/// Asks for the deletion.
pub fn handle(call: Call, mut request: DeleteTopicsRequest) -> Outcome {
    let refused = remove_denied(&call, &mut request);
    if request.topics.is_empty() && request.topic_names.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&DeleteTopicsResponse { responses: refused, ..Default::default() }));
    }
    let decision = Decision { timeout_ms: request.timeout_ms, ..Kind::DeleteTopics.into() };
    decided_then(call, decision, request, error_response, |answer| {
        answer.responses.extend(refused);
    })
}

/// Takes out what the client may not delete, and answers it.
fn remove_denied(call: &Call, request: &mut DeleteTopicsRequest) -> Vec<DeletableTopicResult> {
    if !call.is_guarded() || call.may_cluster(&DELETE_TOPICS_CLUSTER) {
        return Vec::new();
    }
    let image = call.shared.topics.now();
    let mut refused = Vec::new();
    request.topic_names.retain(|name| {
        let refusal = refusal_by_name(call, &image, name);
        refused.extend(refusal.map(|error| answered(Some(name.clone()), Uuid::nil(), error)));
        refusal.is_none()
    });
    request.topics.retain(|topic| {
        let refusal = match &topic.name {
            Some(name) => refusal_by_name(call, &image, name)
                .map(|error| answered(Some(name.clone()), topic.topic_id, error)),
            None => refusal_by_id(call, &image, topic),
        };
        let is_asked_for = refusal.is_none();
        refused.extend(refusal);
        is_asked_for
    });
    refused
}

/// Why the client may not delete the topic called `name`. Who may describe one that is not there is told so.
fn refusal_by_name(call: &Call, image: &MetadataImage, name: &str) -> Option<ErrorCode> {
    let denied = DELETE_TOPICS_TOPIC.error();
    match call.may(&DELETE_TOPICS_DESCRIBE, name) {
        false => Some(denied),
        true if call.may(&DELETE_TOPICS_TOPIC, name) => None,
        true if image.named(name).is_none() => Some(ErrorCode::UnknownTopicOrPartition),
        true => Some(denied),
    }
}

/// As [`refusal_by_name`], of a topic that is named by its id. Whose an unknown id is, nobody can say here.
fn refusal_by_id(
    call: &Call,
    image: &MetadataImage,
    topic: &DeleteTopicState,
) -> Option<DeletableTopicResult> {
    if topic.topic_id.is_nil() {
        // Neither a name nor an id: who decides says so.
        return None;
    }
    let Some(known) = image.with_id(&topic.topic_id) else {
        return Some(answered(None, topic.topic_id, ErrorCode::UnknownTopicId));
    };
    if call.may(&DELETE_TOPICS_TOPIC, &known.name) {
        return None;
    }
    let shown = call.may(&DELETE_TOPICS_DESCRIBE, &known.name).then(|| known.name.clone());
    Some(answered(shown, topic.topic_id, DELETE_TOPICS_TOPIC.error()))
}

fn answered(name: Option<String>, topic_id: Uuid, error: ErrorCode) -> DeletableTopicResult {
    let (error_code, error_message) = (error.code(), Some(error.sentence().to_owned()));
    DeletableTopicResult { name, topic_id, error_code, error_message }
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
