//! Produce requests and what their answers mean.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::identity::ProducerIdentity;
use super::partition_queue::{ProduceOutcome, ProducerBatch};
use crate::config::{Acks, Settings};
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::address::Address;
use crate::metadata::cluster::{Cluster, topic_error};
use crate::metadata::topic_partition::TopicPartition;
use crate::net::connection::{Connection, Sent};
use pylog_wire::ErrorCode;
use pylog_wire::messages::metadata::MetadataResponse;
use pylog_wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse,
};

/// The produce version from which topics are named by id.
const TOPIC_ID_VERSION: i16 = 13;
/// The produce version from which a batch adds its partition to the transaction.
const ADDS_PARTITIONS_VERSION: i16 = 12;

/// A request without an answer yet.
#[derive(Debug)]
pub struct Request {
    /// What identifies the answer.
    pub sent: Sent,
    /// When it was sent.
    pub at: Instant,
    /// What it carried.
    pub batches: Vec<(TopicPartition, ProducerBatch)>,
}

/// Sends sealed batches, one for each partition.
///
/// # Errors
/// Those of the connection.
pub fn send(
    connection: &mut Connection,
    settings: &Settings,
    identity: &ProducerIdentity,
    batches: &[(TopicPartition, ProducerBatch)],
) -> Result<Sent> {
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for (topic_partition, batch) in batches {
        let (index, records) = (topic_partition.partition, Some(batch.bytes()));
        let data = PartitionProduceData { index, records, ..Default::default() };
        match topics.last_mut().filter(|topic| topic.name.as_str() == &*topic_partition.topic) {
            Some(topic) => topic.partition_data.push(data),
            None => topics.push(TopicProduceData {
                name: (*topic_partition.topic).into(),
                topic_id: topic_partition.topic_id,
                partition_data: vec![data],
            }),
        }
    }
    let request = ProduceRequest {
        transactional_id: identity.transactional_id.clone(),
        acks: settings.acks.code(),
        timeout_ms: i32::try_from(settings.request_timeout_ms).unwrap_or(i32::MAX),
        topic_data: topics,
        ..Default::default()
    };
    let mut version = connection.versions().pick::<ProduceRequest>(connection.broker())?;
    if batches.iter().any(|(topic_partition, _)| topic_partition.topic_id.is_nil()) {
        version = version.min(TOPIC_ID_VERSION - 1);
    }
    if identity.transactional_id.is_some() && !identity.adds_partitions {
        version = version.min(ADDS_PARTITIONS_VERSION - 1);
    }
    let sent = connection.send_as(&request, version)?;
    if settings.acks == Acks::None {
        connection.has_no_answer(sent);
    }
    Ok(sent)
}

/// What `answer` says about the batch for `topic_partition`.
pub fn outcome(answer: &ProduceResponse, topic_partition: &TopicPartition) -> ProduceOutcome {
    let topic = answer.responses.iter().find(|topic| is_topic(topic, topic_partition));
    let found = topic.and_then(|topic| {
        topic.partition_responses.iter().find(|found| found.index == topic_partition.partition)
    });
    let Some(found) = found else {
        let message = format!("the broker's answer does not mention partition {topic_partition}");
        return ProduceOutcome::Again(ClientError::retriable(kind::PROTOCOL, message));
    };
    let code = code(found.error_code);
    let broker_message = found.error_message.as_deref().unwrap_or_default();
    let error = error(topic_partition, code, broker_message);
    match code {
        ErrorCode::None => ProduceOutcome::Stored(found.base_offset),
        // Stored by an earlier attempt, whose offset the broker does not remember.
        ErrorCode::DuplicateSequenceNumber => ProduceOutcome::Stored(-1),
        ErrorCode::OutOfOrderSequenceNumber => ProduceOutcome::AfterEarlier(error),
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => ProduceOutcome::TooLarge(error),
        _ if error.retriable => ProduceOutcome::Again(error),
        _ => ProduceOutcome::Refused(error),
    }
}

/// The leader that `answer` names for `topic_partition` instead of the broker that answers (KIP-951): number, epoch and address.
pub fn hint(
    answer: &ProduceResponse,
    topic_partition: &TopicPartition,
) -> Option<((i32, i32), Option<Address>)> {
    let topic = answer.responses.iter().find(|topic| is_topic(topic, topic_partition))?;
    let found = topic.partition_responses.iter().find(|found| found.index == topic_partition.partition)?;
    let (node, epoch) = (found.current_leader.leader_id, found.current_leader.leader_epoch);
    let endpoint = answer.node_endpoints.iter().find(|endpoint| endpoint.node_id == node);
    let address =
        endpoint.and_then(|endpoint| Some((endpoint.host.clone(), u16::try_from(endpoint.port).ok()?)));
    (node >= 0 && !topic_partition.topic_id.is_nil()).then_some(((node, epoch), address))
}

fn is_topic(topic: &TopicProduceResponse, topic_partition: &TopicPartition) -> bool {
    topic.name.as_str() == &*topic_partition.topic
        || (!topic_partition.topic_id.is_nil() && topic.topic_id == topic_partition.topic_id)
}

fn error(topic_partition: &TopicPartition, code: ErrorCode, broker_message: &str) -> ClientError {
    let message = match code {
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => format!(
            "a record for partition {topic_partition} is larger than the broker takes; raise max.message.bytes of the topic (or message.max.bytes of the broker) or make the record smaller"
        ),
        ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId => format!(
            "partition {topic_partition} does not follow on what this writer wrote before: the log has lost acknowledged records or expired the producer; write again with a new writer"
        ),
        ErrorCode::InvalidProducerEpoch => {
            format!(
                "partition {topic_partition} refuses this writer because a newer one with its producer id took over; write again with a new writer"
            )
        }
        ErrorCode::ProducerFenced
        | ErrorCode::InvalidTxnState
        | ErrorCode::InvalidProducerIdMapping
        | ErrorCode::TransactionalIdNotFound
        | ErrorCode::TransactionAbortable => format!(
            "partition {topic_partition} refuses this writer's transaction: it timed out (transaction.timeout.ms), was ended, or a newer writer took its transactional id over; write again with a new writer"
        ),
        ErrorCode::TopicAuthorizationFailed => {
            format!("no permission to write to topic {}", topic_partition.topic)
        }
        code => format!("partition {topic_partition} did not take the records: {}", code.sentence()),
    };
    let message = if broker_message.is_empty() { message } else { format!("{message} ({broker_message})") };
    // A corrupt message was corrupted on its way: the same bytes may arrive whole the next time.
    let retriable = code.is_retriable() || code == ErrorCode::CorruptMessage;
    ClientError { kind: code.name(), message, retriable }
}

/// The leaders of all partitions in a metadata answer.
pub type LeaderAddresses = HashMap<TopicPartition, Result<Address>>;

/// Reads the leaders of all partitions off a metadata answer.
pub fn leaders(cluster: &Cluster, answer: &MetadataResponse) -> LeaderAddresses {
    let mut leaders = LeaderAddresses::new();
    for topic in &answer.topics {
        let Some(name) = topic.name.as_ref() else { continue };
        let error = code(topic.error_code);
        if error != ErrorCode::None {
            leaders.insert(TopicPartition::by_name(name.as_str(), -1), Err(topic_error(name, error, false)));
        }
        for partition in &topic.partitions {
            let address = cluster.address(partition.leader_id);
            leaders.insert(TopicPartition::by_name(name.as_str(), partition.partition_index), address);
        }
    }
    leaders
}

/// The leader of `topic_partition`.
///
/// # Errors
/// The topic's or partition's error; retriable when it may have a leader later.
pub fn leader_of(leaders: &LeaderAddresses, topic_partition: &TopicPartition) -> Result<Address> {
    let of = |partition: i32| {
        leaders.get(&TopicPartition::by_name(topic_partition.topic.clone(), partition)).cloned()
    };
    of(-1).or_else(|| of(topic_partition.partition)).unwrap_or_else(|| {
        let message = format!("partition {topic_partition} does not exist");
        Err(ClientError::retriable(ErrorCode::UnknownTopicOrPartition.name(), message))
    })
}

/// The sentence for a batch that waited too long.
pub fn overdue(
    topic_partition: &TopicPartition,
    limit: Duration,
    cause: Option<&ClientError>,
) -> ClientError {
    let seconds = limit.as_secs_f64();
    let message = format!(
        "records for partition {topic_partition} were not acknowledged within delivery.timeout.ms ({seconds} s)"
    );
    match cause {
        Some(cause) => ClientError::fatal(cause.kind, format!("{message}: {}", cause.message)),
        None => ClientError::fatal(kind::TIMED_OUT, message),
    }
}
