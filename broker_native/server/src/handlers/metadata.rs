//! Metadata: the live brokers and where to reach them, topics and who leads them; creates topics that a client asks for by name.
//!
//! Version 1 has racks, the controller and internal topics; 2 the cluster's id (KIP-78); 4 says whether topics may be
//! created; 5 has offline replicas (KIP-112); 7 leaders' epochs (KIP-320); 8 what the client may do (KIP-430), of the cluster
//! until 10 (then DescribeCluster, KIP-700); 10 has topics' ids, 12 asks by them (KIP-516); 13 has an error of the whole
//! answer (KIP-1102).
use std::collections::HashSet;
use std::sync::Arc;

use super::common::brokers::{BrokerEndpoint, Brokers};
use super::common::decided::room_for;
use super::common::forwarded_metadata::{self, ForwardedAnswer};
use super::common::operations::{on_cluster, on_topic};
use crate::authorization::table::{
    METADATA_ALL_TOPICS, METADATA_CREATE_CLUSTER, METADATA_CREATE_TOPIC, METADATA_OPERATIONS, METADATA_TOPIC,
};
use crate::call::{Call, Outcome, Reply};
use crate::decide::{Kind, ask};
use crate::state::topics::{MetadataImage, Partition, Topic};
use pylog_log::loggers::REQUEST;
use pylog_log::warn;
use pylog_security::acl::{CLUSTER_NAME, Operation, ResourceType};
use pylog_storage::MAX_TOPIC_NAME_LEN;
use pylog_wire::ErrorCode;
use pylog_wire::messages::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use pylog_wire::messages::{MetadataRequest, MetadataResponse};

/// From this version on an empty list of topics means none; before, all.
const EMPTY_MEANS_NONE_FROM: i16 = 1;
/// From this version on a topic may be asked for by id, with a null name. The two before have the field, but no client
/// may use it.
const TOPIC_IDS_FROM: i16 = 12;
/// From this version on clients know the error for a leader without a listener of the name that they came over.
const LISTENER_NOT_FOUND_FROM: i16 = 6;
/// Most topics that one request makes by naming them; a client that asks for more asks again until they are there.
const CREATED_MAX: usize = 1_000;

/// Answers at once, or after missing topics were made.
pub fn handle(call: Call, mut request: MetadataRequest) -> Outcome {
    // Before version 1 an empty list means all; from here on only null does.
    if call.version < EMPTY_MEANS_NONE_FROM && request.topics.as_ref().is_some_and(Vec::is_empty) {
        request.topics = None;
    }
    let image = call.shared.topics.now();
    let forwards = forwarded_metadata::is_needed(&call);
    // A topic that this broker does not know may be there all the same while it has no lease.
    let creates =
        request.allow_auto_topic_creation && call.shared.settings.auto_create_topics_enable && !forwards;
    let mut refused = remove_denied(&call, &mut request, &image);
    if forwards {
        return Outcome::later(async move { forwarded(&call, request, refused).await });
    }
    let missing = if creates { missing(&call, &mut request, &image, &mut refused) } else { Vec::new() };
    if missing.is_empty() {
        return Outcome::Now(reply(&call, &request, &image, refused));
    }
    call.shared.metrics.events.increment();
    let asks_much = request.topics.as_ref().is_some_and(|topics| topics.len() > CREATED_MAX);
    let json = serde_json::json!({ "topics": missing }).to_string();
    let room = room_for(&call, json.len(), 0);
    let made = async move {
        let asked = match room {
            Ok(_held) => ask(call.shared.decider.as_ref(), Kind::AutoCreateTopics, json, 0).await,
            Err(why) => Err(why),
        };
        if let Err(why) = asked {
            let (first, count) = (missing.first().map_or("", String::as_str), missing.len());
            let client = call.peer.ip();
            warn!(
                target: REQUEST, %client,
                "{count} topics ({first:?} and so on) are not created for a client at {client}: {why}"
            );
        }
        reply(&call, &request, &call.shared.topics.now(), refused)
    };
    // A request that names much is not kept beside many others of its connection.
    if asks_much { Outcome::in_order(made) } else { Outcome::later(made) }
}

/// The answer of a broker without a lease: forwarded to the other brokers.
async fn forwarded(call: &Call, request: MetadataRequest, refused: Vec<MetadataResponseTopic>) -> Reply {
    let mut asked = request.clone();
    // Another broker creates topics for this one, whoever its client is; it may know of fewer topics.
    let mut names = asked.topics.iter().flatten().filter_map(|topic| topic.name.as_deref());
    // Nothing is refused here, so nothing is logged: most of these topics are there.
    let creates = |resource| call.could(Operation::Create, resource);
    asked.allow_auto_topic_creation &= creates((ResourceType::Cluster, CLUSTER_NAME))
        || names.all(|name| creates((ResourceType::Topic, name)));
    match forwarded_metadata::ask(call, asked, |answer| answer.error_code == ErrorCode::None.code()).await {
        ForwardedAnswer::Known(mut answer) => {
            if !forwarded_metadata::is_over_inter_broker_listener(call) {
                // The other broker named those of the listener that it was asked over.
                let brokers = Brokers::of(call);
                let found = answer.brokers.iter().filter_map(|broker| brokers.find(broker.node_id));
                answer.brokers = found.map(listed).collect();
            }
            call.answer(&visible(call, &request, answer, refused))
        }
        ForwardedAnswer::Nothing => reply(call, &request, &call.shared.topics.now(), refused),
        ForwardedAnswer::CutOff => forwarded_metadata::cut_off(),
    }
}

/// Another broker's answer to this one, as far as the client may see it.
fn visible(
    call: &Call,
    request: &MetadataRequest,
    mut answer: MetadataResponse,
    refused: Vec<MetadataResponseTopic>,
) -> MetadataResponse {
    if call.is_guarded() {
        let all = request.topics.is_none();
        answer.topics.retain(|topic| {
            // One that was asked for by its id has got its name only now.
            let right = if all { &METADATA_ALL_TOPICS } else { &METADATA_TOPIC };
            topic.name.as_ref().is_none_or(|name| call.may(right, name))
        });
        for topic in &mut answer.topics {
            topic.topic_authorized_operations = operations_on(call, request, topic);
        }
        answer.cluster_authorized_operations = cluster_operations(call, request);
    }
    answer.topics.extend(refused);
    answer
}

/// Takes out the topics that the client may not know of; answers them.
fn remove_denied(
    call: &Call,
    request: &mut MetadataRequest,
    image: &MetadataImage,
) -> Vec<MetadataResponseTopic> {
    let Some(topics) = &mut request.topics else { return Vec::new() };
    let denied = call.set_aside_where(topics, |asked| match name_of(asked) {
        Some(name) => !call.may(&METADATA_TOPIC, name),
        None => image.with_id(&asked.topic_id).is_some_and(|topic| !call.may(&METADATA_TOPIC, &topic.name)),
    });
    refusals(&denied)
}

/// What is asked for by its name: an id goes first, and what a client says besides it is not believed.
fn name_of(asked: &MetadataRequestTopic) -> Option<&str> {
    asked.name.as_deref().filter(|_| asked.topic_id.is_nil())
}

/// The name of what is asked for by its name and is not there.
fn missing_name<'a>(asked: &'a MetadataRequestTopic, image: &MetadataImage) -> Option<&'a str> {
    name_of(asked).filter(|name| image.named(name).is_none())
}

/// The answer for topics that the client may not know of or not create, each once.
fn refusals(topics: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
    let mut seen = HashSet::new();
    let once = topics.iter().filter(|topic| seen.insert((&topic.name, topic.topic_id)));
    let refusal = |asked: &MetadataRequestTopic| MetadataResponseTopic {
        error_code: METADATA_TOPIC.error().code(),
        name: asked.name.clone(),
        topic_id: asked.topic_id,
        ..Default::default()
    };
    once.map(refusal).collect()
}

fn may_create(call: &Call, name: &str) -> bool {
    call.may_cluster(&METADATA_CREATE_CLUSTER) || call.may(&METADATA_CREATE_TOPIC, name)
}

/// What the client may do with the topic, where it asks for that.
fn operations_on(call: &Call, request: &MetadataRequest, topic: &MetadataResponseTopic) -> i32 {
    let name = topic.name.as_deref().unwrap_or_default();
    on_topic(call, request.include_topic_authorized_operations, name)
}

/// What the client may do with the cluster, where it asks for that: nothing, where it may not even describe it.
fn cluster_operations(call: &Call, request: &MetadataRequest) -> i32 {
    let asked = request.include_cluster_authorized_operations;
    match !asked || call.may_cluster(&METADATA_OPERATIONS) {
        true => on_cluster(call, asked),
        false => 0,
    }
}

/// Topics to be made before the answer. Those that the client may not create are taken out of the request, and join the `refused`.
fn missing(
    call: &Call,
    request: &mut MetadataRequest,
    image: &MetadataImage,
    refused: &mut Vec<MetadataResponseTopic>,
) -> Vec<String> {
    let Some(topics) = &mut request.topics else { return Vec::new() };
    let denied = call.set_aside_where(topics, |asked| {
        missing_name(asked, image).is_some_and(|name| !may_create(call, name))
    });
    refused.extend(refusals(&denied));
    let mut seen = HashSet::new();
    let created = topics
        .iter()
        .filter_map(|asked| missing_name(asked, image))
        .filter(|name| is_legal(name) && seen.insert(*name));
    created.take(CREATED_MAX).map(str::to_owned).collect()
}

fn reply(
    call: &Call,
    request: &MetadataRequest,
    image: &MetadataImage,
    refused: Vec<MetadataResponseTopic>,
) -> Reply {
    let settings = &call.shared.settings;
    let brokers = Brokers::of(call);
    let mut topics: Vec<_> = if request.topics.is_none() {
        let visible = image.all().filter(|topic| call.may(&METADATA_ALL_TOPICS, &topic.name));
        visible.map(|topic| described(topic, &brokers)).collect()
    } else {
        // One that is asked for twice is described once.
        let mut seen = HashSet::new();
        let asked =
            request.topics.iter().flatten().filter(|topic| seen.insert((&topic.name, topic.topic_id)));
        asked.map(|topic| find(call, topic, image, &brokers)).collect()
    };
    for topic in &mut topics {
        topic.topic_authorized_operations = operations_on(call, request, topic);
    }
    topics.extend(refused);
    if call.version < LISTENER_NOT_FOUND_FROM {
        hide_listeners(&mut topics);
    }
    // To a broker that forwards a request this one says when it does not know either.
    let is_known = call.shared.cluster.may_lead() || !forwarded_metadata::is_peer(call);
    let error = if is_known { ErrorCode::None } else { ErrorCode::LeaderNotAvailable };
    call.answer(&MetadataResponse {
        error_code: error.code(),
        brokers: brokers.all().into_iter().map(listed).collect(),
        cluster_id: Some(settings.cluster_id.clone()),
        controller_id: brokers.controller_id(),
        topics,
        cluster_authorized_operations: cluster_operations(call, request),
        ..Default::default()
    })
}

/// Says of partitions whose leader has no such listener that they have no leader, as old clients expect.
fn hide_listeners(topics: &mut [MetadataResponseTopic]) {
    let partitions = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    for partition in partitions.filter(|partition| partition.error_code == ErrorCode::ListenerNotFound.code())
    {
        partition.error_code = ErrorCode::LeaderNotAvailable.code();
    }
}

fn listed(broker: BrokerEndpoint) -> MetadataResponseBroker {
    MetadataResponseBroker { node_id: broker.id, host: broker.host, port: broker.port, rack: broker.rack }
}

fn find(
    call: &Call,
    asked: &MetadataRequestTopic,
    image: &MetadataImage,
    brokers: &Brokers,
) -> MetadataResponseTopic {
    let by_id = !asked.topic_id.is_nil();
    if by_id && call.version < TOPIC_IDS_FROM {
        let name = Some(asked.name.clone().unwrap_or_default());
        let error_code = ErrorCode::InvalidRequest.code();
        return MetadataResponseTopic { error_code, name, topic_id: asked.topic_id, ..Default::default() };
    }
    let found = match &asked.name {
        Some(name) if !by_id => image.named(name),
        // One that was applied since the right was asked for.
        _ => image
            .with_id(&asked.topic_id)
            .filter(|topic| call.could(Operation::Describe, (ResourceType::Topic, &topic.name))),
    };
    if let Some(topic) = found {
        return described(topic, brokers);
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

fn described(topic: &Arc<Topic>, brokers: &Brokers) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| described_partition(partition, brokers))
            .collect(),
        ..Default::default()
    }
}

fn described_partition(partition: &Partition, brokers: &Brokers) -> MetadataResponsePartition {
    let spec = &partition.spec;
    let state = state_of(partition, brokers);
    MetadataResponsePartition {
        error_code: state.error.code(),
        partition_index: spec.partition,
        leader_id: state.leader_id,
        leader_epoch: spec.leader_epoch,
        replica_nodes: spec.replicas.clone(),
        isr_nodes: state.isr,
        offline_replicas: state.offline,
    }
}

/// What an answer says about a partition besides what is stored of it.
pub struct PartitionState {
    /// Why there is no leader.
    pub error: ErrorCode,
    /// Who leads, -1 when nobody does who lives and has the log.
    pub leader_id: i32,
    /// Replicas in sync, but for a log that this broker cannot use.
    pub isr: Vec<i32>,
    /// Replicas of brokers that do not live, or whose log this broker cannot use.
    pub offline: Vec<i32>,
}

/// The partition as `brokers` leave it.
pub fn state_of(partition: &Partition, brokers: &Brokers) -> PartitionState {
    let spec = &partition.spec;
    // Only this broker knows about its own disk.
    let broken = partition.is_offline().then_some(brokers.own_id());
    let is_offline = |id: i32| !brokers.is_reached(id) || broken == Some(id);
    let error = match spec.leader {
        leader if broken == Some(leader) => ErrorCode::KafkaStorageError,
        leader if leader < 0 || !brokers.is_alive(leader) => ErrorCode::LeaderNotAvailable,
        leader if !brokers.is_reached(leader) => ErrorCode::ListenerNotFound,
        // So that clients ask another broker, which knows.
        leader if !brokers.may_lead(leader) => ErrorCode::LeaderNotAvailable,
        _ => ErrorCode::None,
    };
    PartitionState {
        error,
        leader_id: if error == ErrorCode::None { spec.leader } else { -1 },
        isr: spec.isr.iter().copied().filter(|&id| broken != Some(id)).collect(),
        offline: spec.replicas.iter().copied().filter(|&id| is_offline(id)).collect(),
    }
}

/// Whether a topic may have this name, as in Kafka.
pub fn is_legal(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=MAX_TOPIC_NAME_LEN).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}
