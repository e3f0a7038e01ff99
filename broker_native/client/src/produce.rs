//! Produce requests and what their answers mean.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::accumulator::Place;
use super::cluster::{Address, Cluster, topic_error};
use super::config::Settings;
use super::connection::{Connection, Sent};
use super::error::{ClientError, Result, code, kind};
use super::outbox::{Batch, Verdict};
use super::sender::Author;
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
    pub batches: Vec<(Place, Batch)>,
}

/// Sends sealed batches, one for each partition.
///
/// # Errors
/// Those of the connection.
pub fn send(
    connection: &mut Connection,
    settings: &Settings,
    author: &Author,
    batches: &[(Place, Batch)],
) -> Result<Sent> {
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for (place, batch) in batches {
        let data = PartitionProduceData { index: place.partition, records: Some(batch.bytes()) };
        match topics.last_mut().filter(|topic| topic.name.as_str() == &*place.topic) {
            Some(topic) => topic.partition_data.push(data),
            None => topics.push(TopicProduceData {
                name: (*place.topic).into(),
                topic_id: place.topic_id,
                partition_data: vec![data],
            }),
        }
    }
    let request = ProduceRequest {
        transactional_id: author.transactional_id.clone(),
        acks: settings.acks.code(),
        timeout_ms: i32::try_from(settings.request_timeout_ms).unwrap_or(i32::MAX),
        topic_data: topics,
    };
    let mut version = connection.versions().pick::<ProduceRequest>(connection.broker())?;
    if batches.iter().any(|(place, _)| place.topic_id.is_nil()) {
        version = version.min(TOPIC_ID_VERSION - 1);
    }
    if author.transactional_id.is_some() && !author.adds_partitions {
        version = version.min(ADDS_PARTITIONS_VERSION - 1);
    }
    connection.send_as(&request, version)
}

/// What `answer` says about the batch for `place`.
pub fn verdict(answer: &ProduceResponse, place: &Place) -> Verdict {
    let topic = answer.responses.iter().find(|topic| is_topic(topic, place));
    let found =
        topic.and_then(|topic| topic.partition_responses.iter().find(|one| one.index == place.partition));
    let Some(found) = found else {
        let message = format!("the broker's answer does not mention partition {}", name(place));
        return Verdict::Again(ClientError::retriable(kind::PROTOCOL, message));
    };
    let code = code(found.error_code);
    let told = found.error_message.as_deref().unwrap_or_default();
    let error = error(place, code, told);
    match code {
        ErrorCode::None => Verdict::Stored(found.base_offset),
        // Stored by an earlier attempt, whose offset the broker does not remember.
        ErrorCode::DuplicateSequenceNumber => Verdict::Stored(-1),
        ErrorCode::OutOfOrderSequenceNumber => Verdict::AfterEarlier(error),
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => Verdict::TooLarge(error),
        _ if error.retriable => Verdict::Again(error),
        _ => Verdict::Refused(error),
    }
}

/// The leader that `answer` names for `place` instead of the broker that answers (KIP-951): number, epoch and address.
pub fn hint(answer: &ProduceResponse, place: &Place) -> Option<((i32, i32), Option<Address>)> {
    let topic = answer.responses.iter().find(|topic| is_topic(topic, place))?;
    let found = topic.partition_responses.iter().find(|one| one.index == place.partition)?;
    let (node, epoch) = (found.current_leader.leader_id, found.current_leader.leader_epoch);
    let told = answer.node_endpoints.iter().find(|one| one.node_id == node);
    let address = told.and_then(|one| Some((one.host.clone(), u16::try_from(one.port).ok()?)));
    (node >= 0 && !place.topic_id.is_nil()).then_some(((node, epoch), address))
}

fn is_topic(topic: &TopicProduceResponse, place: &Place) -> bool {
    topic.name.as_str() == &*place.topic || (!place.topic_id.is_nil() && topic.topic_id == place.topic_id)
}

fn error(place: &Place, code: ErrorCode, told: &str) -> ClientError {
    let name = name(place);
    let message = match code {
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => format!(
            "a record for partition {name} is larger than the broker takes; raise max.message.bytes of the topic (or message.max.bytes of the broker) or make the record smaller"
        ),
        ErrorCode::OutOfOrderSequenceNumber | ErrorCode::UnknownProducerId => format!(
            "partition {name} does not follow on what this writer wrote before: the log has lost acknowledged records or expired the producer; write again with a new writer"
        ),
        ErrorCode::InvalidProducerEpoch => {
            format!(
                "partition {name} refuses this writer because a newer one with its producer id took over; write again with a new writer"
            )
        }
        ErrorCode::ProducerFenced
        | ErrorCode::InvalidTxnState
        | ErrorCode::InvalidProducerIdMapping
        | ErrorCode::TransactionalIdNotFound
        | ErrorCode::TransactionAbortable => format!(
            "partition {name} refuses this writer's transaction: it timed out (transaction.timeout.ms), was ended, or a newer writer took its transactional id over; write again with a new writer"
        ),
        ErrorCode::TopicAuthorizationFailed => format!("no permission to write to topic {}", place.topic),
        code => format!("partition {name} did not take the records: {}", code.sentence()),
    };
    let message = if told.is_empty() { message } else { format!("{message} ({told})") };
    // A corrupt message was corrupted on its way: the same bytes may arrive whole the next time.
    let retriable = code.is_retriable() || code == ErrorCode::CorruptMessage;
    ClientError { kind: code.name(), message, retriable }
}

/// The leaders of all partitions in a metadata answer.
pub type Leaders = HashMap<(String, i32), Result<Address>>;

/// Reads the leaders of all partitions off a metadata answer.
pub fn leaders(cluster: &Cluster, answer: &MetadataResponse) -> Leaders {
    let mut leaders = Leaders::new();
    for topic in &answer.topics {
        let Some(name) = topic.name.as_ref() else { continue };
        let error = code(topic.error_code);
        if error != ErrorCode::None {
            leaders.insert((name.to_string(), -1), Err(topic_error(name, error, false)));
        }
        for partition in &topic.partitions {
            let address = cluster.address(partition.leader_id);
            leaders.insert((name.to_string(), partition.partition_index), address);
        }
    }
    leaders
}

/// The leader of `place`.
///
/// # Errors
/// The topic's or partition's error; retriable when it may have a leader later.
pub fn leader_of(leaders: &Leaders, place: &Place) -> Result<Address> {
    let of = |partition: i32| leaders.get(&(place.topic.to_string(), partition)).cloned();
    of(-1).or_else(|| of(place.partition)).unwrap_or_else(|| {
        let message = format!("partition {} does not exist", name(place));
        Err(ClientError::retriable(ErrorCode::UnknownTopicOrPartition.name(), message))
    })
}

/// The sentence for a batch that waited too long.
pub fn overdue(place: &Place, limit: Duration, cause: Option<&ClientError>) -> ClientError {
    let name = name(place);
    let seconds = limit.as_secs_f64();
    let message = format!(
        "records for partition {name} were not acknowledged within delivery.timeout.ms ({seconds} s)"
    );
    match cause {
        Some(cause) => ClientError::fatal(cause.kind, format!("{message}: {}", cause.message)),
        None => ClientError::fatal(kind::TIMED_OUT, message),
    }
}

fn name(place: &Place) -> String {
    format!("{}-{}", place.topic, place.partition)
}
