//! CreateTopics: decided by Python.
//!
//! KIP-4. Version 4 leaves counts to the broker (KIP-464); 5 answers with the topics' settings (KIP-525); 6 knows quotas
//! (KIP-599); 7 answers with the topics' ids (KIP-516).
use super::common::decided::{Decision, decided_then};
use super::common::naming::{self, NamingRights};
use crate::authorization::table::{
    CREATE_TOPICS_CLUSTER, CREATE_TOPICS_CONFIGS, CREATE_TOPICS_DEAD_LETTERS, CREATE_TOPICS_KEPT_FOR,
    CREATE_TOPICS_TOPIC,
};
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_topics::{CreatableTopic, CreatableTopicResult};
use pylog_wire::messages::{CreateTopicsRequest, CreateTopicsResponse};

/// What a new topic takes in the answer, with its settings.
const CREATED_BYTES: usize = /* 8 KiB */ 8 << 10;
/// The name of the log of Kafka's controllers.
const METADATA_LOG: &str = "__cluster_metadata";
const NAMING: NamingRights =
    NamingRights { dead_letters: &CREATE_TOPICS_DEAD_LETTERS, groups: &CREATE_TOPICS_KEPT_FOR };

/// Asks for the topics.
pub fn handle(call: Call, mut request: CreateTopicsRequest) -> Outcome {
    let mut refused = remove_denied(&call, &mut request);
    refused.extend(remove_naming(&call, &mut request));
    request.topics.iter_mut().for_each(|topic| naming::record_owner(&call, &mut topic.configs));
    if request.topics.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&CreateTopicsResponse { topics: refused, ..Default::default() }));
    }
    let answer_bytes = request.topics.len().saturating_mul(CREATED_BYTES);
    let decision = Decision { timeout_ms: request.timeout_ms, answer_bytes, ..Kind::CreateTopics.into() };
    let caller = call.clone();
    decided_then(call, decision, request, error_response, move |answer| {
        answer.topics.iter_mut().for_each(|topic| hide_configs(&caller, topic));
        answer.topics.extend(refused);
    })
}

/// Takes out what the client may not create, and answers it. Nobody creates the cluster's own log, whatever ACLs say.
fn remove_denied(call: &Call, request: &mut CreateTopicsRequest) -> Vec<CreatableTopicResult> {
    if !call.is_guarded() || call.may_cluster(&CREATE_TOPICS_CLUSTER) {
        return Vec::new();
    }
    let check = |topic: &CreatableTopic| match topic.name == METADATA_LOG {
        true => Err(ErrorCode::InvalidRequest),
        false => call.check(&CREATE_TOPICS_TOPIC, &topic.name),
    };
    let refused = call.set_aside_with(&mut request.topics, check).into_iter().flat_map(|(topic, error)| {
        let alone = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
        error_response(&alone, error, error.sentence()).topics
    });
    refused.collect()
}

/// Takes out the topics whose settings name what the client has no right to, and answers them.
fn remove_naming(call: &Call, request: &mut CreateTopicsRequest) -> Vec<CreatableTopicResult> {
    let check = |topic: &CreatableTopic| naming::check(call, &NAMING, &topic.configs);
    let refused = call.set_aside_with(&mut request.topics, check).into_iter().flat_map(|(topic, error)| {
        let alone = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
        error_response(&alone, error, &naming::why(error)).topics
    });
    refused.collect()
}

/// Leaves the settings out for who may create the topic and not look at them.
fn hide_configs(call: &Call, topic: &mut CreatableTopicResult) {
    if topic.error_code != ErrorCode::None.code() || call.may(&CREATE_TOPICS_CONFIGS, &topic.name) {
        return;
    }
    topic.topic_config_error_code = CREATE_TOPICS_CONFIGS.error().code();
    (topic.num_partitions, topic.replication_factor, topic.configs) = (-1, -1, None);
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
