//! What a mirror says to the target's brokers, and what they answer.
use std::collections::BTreeMap;

use bytes::Bytes;

use crate::error::{ClientError, Result, code};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::leaders;
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::mirrored::ACKS;
use pylog_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};

/// The last version in which topics are named, not numbered.
const NAMES_UP_TO: i16 = 12;

/// What is said about one partition.
#[derive(Debug, Clone)]
pub struct HandedOver {
    /// The partition.
    pub partition: TopicPartition,
    /// `batches` are all that the source has from here on; a word of [`pylog_wire::messages::produce::mirrored`].
    pub from: i64,
    /// Without batches: the source has nothing before `from`.
    pub batches: Option<Bytes>,
}

/// What a broker answered about a partition.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The partition.
    pub partition: TopicPartition,
    /// Where the target's log ends; -1 when it does not say.
    pub end: i64,
    /// Why not all was taken.
    pub error: Option<ClientError>,
}

/// Hands everything over to the partitions' leaders; answers in the order of theirs.
///
/// # Errors
/// Those of metadata and of the connections, after which nothing is known of what was taken.
pub fn hand_over(cluster: &mut Cluster, source_id: &str, all: Vec<HandedOver>) -> Result<Vec<Taken>> {
    let names: Vec<&TopicPartition> = all.iter().map(|each| &each.partition).collect();
    let leaders = leaders(cluster, &names)?;
    // Half of what the answer may take, so that it comes before it is given up.
    let timeout_ms = i32::try_from(cluster.settings().request_timeout_ms / 2).unwrap_or(i32::MAX);
    let mut requests: BTreeMap<i32, ProduceRequest> = BTreeMap::new();
    for (each, leader) in all.into_iter().zip(leaders) {
        let request = requests.entry(leader).or_insert_with(|| ProduceRequest {
            acks: ACKS,
            timeout_ms,
            mirror_source: Some(source_id.to_owned()),
            ..Default::default()
        });
        add(request, each);
    }
    let requests: Vec<(i32, ProduceRequest)> = requests.into_iter().collect();
    let answers =
        cluster.call_each_up_to(&requests, NAMES_UP_TO).inspect_err(|_| cluster.forget_leaders())?;
    let mut taken = Vec::new();
    for answer in answers {
        for topic in answer.responses {
            taken.extend(topic.partition_responses.iter().map(|found| take(&topic.name, found)));
        }
    }
    if taken.iter().any(|each| each.error.as_ref().is_some_and(|error| error.retriable)) {
        cluster.forget_leaders();
    }
    Ok(taken)
}

fn add(request: &mut ProduceRequest, each: HandedOver) {
    let HandedOver { partition, from, batches } = each;
    let data = PartitionProduceData { index: partition.partition, records: batches, mirrored_from: from };
    let topics = &mut request.topic_data;
    match topics.iter_mut().find(|topic| topic.name.as_str() == &*partition.topic) {
        Some(topic) => topic.partition_data.push(data),
        None => topics.push(TopicProduceData {
            name: (*partition.topic).into(),
            partition_data: vec![data],
            ..Default::default()
        }),
    }
}

fn take(topic: &str, found: &PartitionProduceResponse) -> Taken {
    let partition = TopicPartition::by_name(topic, found.index);
    let error = match code(found.error_code) {
        ErrorCode::None => None,
        error => {
            let said = found.error_message.as_deref().unwrap_or(error.sentence()).trim_end_matches('.');
            let message = match error {
                ErrorCode::InvalidRequiredAcks => format!(
                    "partition {partition}: the target's broker takes no batches of a mirror; it must be a pylog that knows 'pylog mirror'"
                ),
                _ => format!("partition {partition} was not taken by the target: {said}"),
            };
            // The position was wrong; damage on the way may not be repeated.
            let again = matches!(error, ErrorCode::OffsetOutOfRange | ErrorCode::CorruptMessage);
            Some(ClientError { kind: error.name(), message, retriable: error.is_retriable() || again })
        }
    };
    Taken { partition, end: found.log_end_offset, error }
}
