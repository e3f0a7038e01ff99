//! DeleteTopics: decided by Python.
//!
//! KIP-4. Version 5 has a sentence for each error, and knows quotas (KIP-599); 6 names topics by id too (KIP-516).
use uuid::Uuid;

use super::common::decided::decided_then;
use crate::authorization::table::{DELETE_TOPICS_CLUSTER, DELETE_TOPICS_DESCRIBE, DELETE_TOPICS_TOPIC};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_topics::DeletableTopicResult;
use pylog_wire::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

/// Asks for the deletion.
pub fn handle(call: Call, mut request: DeleteTopicsRequest) -> Outcome {
    let refused = refused(&call, &mut request);
    if request.topics.is_empty() && request.topic_names.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&DeleteTopicsResponse { responses: refused, ..Default::default() }));
    }
    let timeout_ms = request.timeout_ms;
    decided_then(call, Kind::DeleteTopics, request, timeout_ms, error_response, |answer| {
        answer.responses.extend(refused);
    })
}

/// Takes out what the client may not delete, and answers it. Who may describe a topic that is not there is told so.
fn refused(call: &Call, request: &mut DeleteTopicsRequest) -> Vec<DeletableTopicResult> {
    if !call.is_guarded() || call.may_cluster(&DELETE_TOPICS_CLUSTER) {
        return Vec::new();
    }
    let image = call.shared.topics.now();
    let may_describe = |name: &str| call.may(&DELETE_TOPICS_DESCRIBE, name);
    let may_delete = |name: &str| call.may(&DELETE_TOPICS_TOPIC, name);
    let error = DELETE_TOPICS_TOPIC.error();
    let refusal = |name, topic_id| DeletableTopicResult {
        name,
        topic_id,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
    };
    let is_refused = |name: &str| !may_describe(name) || (image.named(name).is_some() && !may_delete(name));
    let names = call.set_aside_where(&mut request.topic_names, |name| is_refused(name));
    let mut refused: Vec<_> = names.into_iter().map(|name| refusal(Some(name), Uuid::nil())).collect();
    for topic in call.set_aside_where(&mut request.topics, |topic| match &topic.name {
        Some(name) => is_refused(name),
        None => image.with_id(&topic.topic_id).is_some_and(|known| !may_delete(&known.name)),
    }) {
        let known = image.with_id(&topic.topic_id).map(|known| known.name.clone());
        let shown = topic.name.or(known.filter(|name| may_describe(name)));
        refused.push(refusal(shown, topic.topic_id));
    }
    refused
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
