//! Metadata: this broker, its topics, and which address to use; creates topics that a client asks for by name.
use std::collections::HashSet;
use std::sync::Arc;

use super::operations::{on_cluster, on_topic};
use crate::server::decide::{Kind, ask};
use crate::server::dispatch::{Call, Outcome, Reply};
use crate::server::notice::notice;
use crate::server::topics::{Partition, Picture, Topic};
use crate::wire::ErrorCode;
use crate::wire::messages::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use crate::wire::messages::{MetadataRequest, MetadataResponse};

/// From this version on an empty list of topics means none; before, all.
const EMPTY_MEANS_NONE_FROM: i16 = 1;
/// From this version on a topic may be asked for by id, with a null name. The two before have the field, but no client
/// may use it.
const TOPIC_IDS_FROM: i16 = 12;
/// Longest topic name.
const NAME_LEN_MAX: usize = 249;

/// Answers at once, or after missing topics were made.
pub fn handle(call: Call, request: MetadataRequest) -> Outcome {
    let picture = call.shared.topics.now();
    let missing = missing(&call, &request, &picture);
    if missing.is_empty() {
        return Outcome::Now(reply(&call, &request, &picture));
    }
    call.shared.metrics.events.one();
    Outcome::later(async move {
        let json = serde_json::json!({ "topics": missing }).to_string();
        if let Err(why) = ask(call.shared.decider.as_ref(), Kind::AutoCreateTopics, json, 0).await {
            notice(&format!("topics {missing:?} were not made: {why}"));
        }
        reply(&call, &request, &call.shared.topics.now())
    })
}

/// The address that the client is told: as configured, or the one it dialled.
pub fn advertised(call: &Call) -> (String, i32) {
    let settings = &call.shared.settings;
    (
        settings.advertised_host.clone().unwrap_or_else(|| call.local.ip().to_canonical().to_string()),
        settings.advertised_port.unwrap_or_else(|| call.local.port().into()),
    )
}

/// Topics to be made before the answer.
fn missing(call: &Call, request: &MetadataRequest, picture: &Picture) -> Vec<String> {
    if !(request.allow_auto_topic_creation && call.shared.settings.auto_create_topics_enable) {
        return Vec::new();
    }
    let names = request.topics.iter().flatten().filter_map(|topic| topic.name.as_ref());
    names.filter(|name| is_legal(name) && picture.named(name).is_none()).cloned().collect()
}

fn reply(call: &Call, request: &MetadataRequest, picture: &Picture) -> Reply {
    let settings = &call.shared.settings;
    let (host, port) = advertised(call);
    let all = match &request.topics {
        None => true,
        Some(topics) => topics.is_empty() && call.version < EMPTY_MEANS_NONE_FROM,
    };
    let operations = on_topic(request.include_topic_authorized_operations);
    let mut topics: Vec<_> = if all {
        picture.all().map(described).collect()
    } else {
        // One that is asked for twice is described once.
        let mut seen = HashSet::new();
        let asked = request.topics.iter().flatten().filter(|one| seen.insert((&one.name, one.topic_id)));
        asked.map(|one| find(call, one, picture)).collect()
    };
    topics.iter_mut().for_each(|topic| topic.topic_authorized_operations = operations);
    call.answer(&MetadataResponse {
        brokers: vec![MetadataResponseBroker { node_id: settings.node_id, host, port, rack: None }],
        cluster_id: Some(settings.cluster_id.clone()),
        controller_id: settings.node_id,
        topics,
        cluster_authorized_operations: on_cluster(request.include_cluster_authorized_operations),
        ..Default::default()
    })
}

fn find(call: &Call, asked: &MetadataRequestTopic, picture: &Picture) -> MetadataResponseTopic {
    let by_id = !asked.topic_id.is_nil();
    if by_id && call.version < TOPIC_IDS_FROM {
        let name = Some(asked.name.clone().unwrap_or_default());
        let error_code = ErrorCode::InvalidRequest.code();
        return MetadataResponseTopic { error_code, name, topic_id: asked.topic_id, ..Default::default() };
    }
    let found = match &asked.name {
        Some(name) if !by_id => picture.named(name),
        _ => picture.with_id(&asked.topic_id),
    };
    if let Some(topic) = found {
        return described(topic);
    }
    let error = match &asked.name {
        _ if by_id => ErrorCode::UnknownTopicId,
        Some(name) if is_legal(name) => ErrorCode::UnknownTopicOrPartition,
        Some(_) => ErrorCode::InvalidTopicException,
        None => ErrorCode::InvalidRequest,
    };
    let name = asked.name.clone().or_else(|| (call.version < TOPIC_IDS_FROM).then(String::new));
    MetadataResponseTopic { error_code: error.code(), name, topic_id: asked.topic_id, ..Default::default() }
}

fn described(topic: &Arc<Topic>) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: topic.partitions.iter().map(|partition| described_partition(partition)).collect(),
        ..Default::default()
    }
}

fn described_partition(partition: &Partition) -> MetadataResponsePartition {
    let spec = &partition.spec;
    let offline = partition.log.is_err();
    let error = match (offline, spec.leader < 0) {
        (true, _) => ErrorCode::KafkaStorageError,
        (false, true) => ErrorCode::LeaderNotAvailable,
        (false, false) => ErrorCode::None,
    };
    MetadataResponsePartition {
        error_code: error.code(),
        partition_index: spec.partition,
        leader_id: if offline { -1 } else { spec.leader },
        leader_epoch: spec.leader_epoch,
        replica_nodes: spec.replicas.clone(),
        isr_nodes: if offline { Vec::new() } else { spec.isr.clone() },
        offline_replicas: if offline { spec.replicas.clone() } else { Vec::new() },
    }
}

/// Whether a topic may have this name, as in Kafka.
pub fn is_legal(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=NAME_LEN_MAX).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}
