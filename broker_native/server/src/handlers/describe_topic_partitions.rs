//! DescribeTopicPartitions: topics in the order of their names, a bounded number of partitions at a time (KIP-966).
use std::collections::BTreeSet;
use std::ops::Range;

use super::common::brokers::Brokers;
use super::common::operations::on_topic;
use super::metadata::{is_legal, state_of};
use crate::authorization::table::{DESCRIBE_TOPIC_PARTITIONS_ALL, DESCRIBE_TOPIC_PARTITIONS_TOPIC};
use crate::call::{Call, Outcome};
use crate::state::topics::{MetadataImage, Partition, Topic};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use pylog_wire::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};

/// Most partitions in one answer (Kafka's max.request.partition.size.limit).
const PARTITIONS_MAX: i32 = 2000;

/// Answers with one page.
pub fn handle(call: &Call, request: &DescribeTopicPartitionsRequest) -> Outcome {
    let topics = call.shared.topics.now();
    let answer = match names(request, &topics) {
        Ok(mut names) => {
            let refused = remove_denied(call, request, &mut names);
            let mut answer = page(call, request, &topics, &names);
            answer.topics.extend(refused);
            answer
        }
        Err(error) => error_response(request, error),
    };
    Outcome::Now(call.answer(&answer))
}

/// The topics from the cursor on.
fn names<'a>(
    request: &'a DescribeTopicPartitionsRequest,
    topics: &'a MetadataImage,
) -> Result<BTreeSet<&'a str>, ErrorCode> {
    let cursor = request.cursor.as_ref();
    let from = cursor.map_or("", |cursor| cursor.topic_name.as_str());
    let names: BTreeSet<&str> = match request.topics.is_empty() {
        true => topics.all().map(|topic| topic.name.as_str()).filter(|name| *name >= from).collect(),
        false => {
            request.topics.iter().map(|topic| topic.name.as_str()).filter(|name| *name >= from).collect()
        }
    };
    // A cursor's topic may be gone when all are asked for, but must be among those that are named.
    let is_named = request.topics.is_empty() || cursor.is_none() || names.contains(from);
    let is_valid = cursor.is_none_or(|cursor| cursor.partition_index >= 0);
    if is_named && is_valid { Ok(names) } else { Err(ErrorCode::InvalidRequest) }
}

/// Takes out the topics that the client may not know of; answers those that are named.
fn remove_denied(
    call: &Call,
    request: &DescribeTopicPartitionsRequest,
    names: &mut BTreeSet<&str>,
) -> Vec<DescribeTopicPartitionsResponseTopic> {
    let mut refused = Vec::new();
    if !call.is_guarded() {
        return refused;
    }
    let all = request.topics.is_empty();
    let right = if all { &DESCRIBE_TOPIC_PARTITIONS_ALL } else { &DESCRIBE_TOPIC_PARTITIONS_TOPIC };
    names.retain(|name| {
        let may = call.may(right, name);
        if !may && !all {
            refused.push(DescribeTopicPartitionsResponseTopic {
                error_code: right.error().code(),
                name: Some((*name).to_owned()),
                ..Default::default()
            });
        }
        may
    });
    refused
}

fn page(
    call: &Call,
    request: &DescribeTopicPartitionsRequest,
    topics: &MetadataImage,
    names: &BTreeSet<&str>,
) -> DescribeTopicPartitionsResponse {
    let brokers = &Brokers::of(call);
    let limit = request.response_partition_limit.clamp(1, PARTITIONS_MAX);
    let mut left = usize::try_from(limit).unwrap_or(1);
    let mut answer = DescribeTopicPartitionsResponse::default();
    for name in names {
        if left == 0 {
            answer.next_cursor = Some(Cursor { topic_name: (*name).to_owned(), partition_index: 0 });
            break;
        }
        let Some(topic) = topics.named(name) else {
            if !request.topics.is_empty() {
                answer.topics.push(unknown(call, name));
            }
            continue;
        };
        let begun = request.cursor.as_ref().filter(|cursor| cursor.topic_name == **name);
        let first = begun.map_or(0, |cursor| usize::try_from(cursor.partition_index).unwrap_or(0));
        let end = first.saturating_add(left).min(topic.partitions.len());
        answer.topics.push(described(call, topic, first..end, brokers));
        if end < topic.partitions.len() {
            let partition_index = i32::try_from(end).unwrap_or(i32::MAX);
            answer.next_cursor = Some(Cursor { topic_name: (*name).to_owned(), partition_index });
            break;
        }
        left -= end.saturating_sub(first);
    }
    answer
}

fn described(
    call: &Call,
    topic: &Topic,
    shown: Range<usize>,
    brokers: &Brokers,
) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: topic
            .partitions
            .get(shown)
            .unwrap_or_default()
            .iter()
            .map(|shown| partition(shown, brokers))
            .collect(),
        topic_authorized_operations: on_topic(call, true, &topic.name),
        ..Default::default()
    }
}

fn partition(partition: &Partition, brokers: &Brokers) -> DescribeTopicPartitionsResponsePartition {
    let (spec, state) = (&partition.spec, state_of(partition, brokers));
    DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode::None.code(),
        partition_index: spec.partition,
        leader_id: state.leader_id,
        leader_epoch: spec.leader_epoch,
        replica_nodes: spec.replicas.clone(),
        isr_nodes: state.isr,
        eligible_leader_replicas: Some(spec.elr.clone()),
        last_known_elr: Some(Vec::new()),
        offline_replicas: state.offline,
    }
}

fn unknown(call: &Call, name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error = match is_legal(name) {
        true => ErrorCode::UnknownTopicOrPartition,
        false => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: error.code(),
        name: Some(name.to_owned()),
        topic_authorized_operations: on_topic(call, true, name),
        ..Default::default()
    }
}

fn error_response(
    request: &DescribeTopicPartitionsRequest,
    error: ErrorCode,
) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| DescribeTopicPartitionsResponseTopic {
        error_code: error.code(),
        name: Some(topic.name.clone()),
        ..Default::default()
    });
    DescribeTopicPartitionsResponse { topics: topics.collect(), ..Default::default() }
}
