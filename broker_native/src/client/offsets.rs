//! Offsets by timestamp, earliest and latest, asked from the leaders of many partitions at once.
use std::collections::{BTreeMap, HashMap};

use super::cluster::{Cluster, topic_error};
use super::config::Isolation;
use super::error::{ClientError, Result, code};
use crate::wire::ErrorCode;
use crate::wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};

/// Timestamp that stands for the first offset.
pub const EARLIEST: i64 = -2;

/// Topic, partition, timestamp (-1 latest, -2 earliest, -3 of the largest timestamp).
pub type Wanted = (String, i32, i64);

/// An offset found; -1 when no record is at or after the timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The offset.
    pub offset: i64,
    /// Its record's timestamp, -1 for the named positions.
    pub timestamp: i64,
}

/// Finds all `wanted`, in their order.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION` and the errors of single partitions; retriable ones after `default.api.timeout.ms`.
pub fn list_offsets(cluster: &mut Cluster, wanted: &[Wanted], isolation: Isolation) -> Result<Vec<Found>> {
    let mut found: Vec<Option<Found>> = vec![None; wanted.len()];
    cluster.retrying("list offsets", |cluster| attempt(cluster, wanted, isolation, &mut found))?;
    Ok(found.into_iter().flatten().collect())
}

/// Asks for what is not found yet; what was found stays when another partition fails.
fn attempt(
    cluster: &mut Cluster,
    wanted: &[Wanted],
    isolation: Isolation,
    found: &mut [Option<Found>],
) -> Result<()> {
    let mut rounds: BTreeMap<i32, Vec<Vec<usize>>> = BTreeMap::new();
    let leaders = leaders(cluster, wanted)?;
    for (index, (topic, partition, _)) in wanted.iter().enumerate() {
        if found.get(index).is_some_and(Option::is_none) {
            let Some(leader) = leaders.get(&(topic.as_str(), *partition)) else { continue };
            spread(rounds.entry(*leader).or_default(), wanted, index);
        }
    }
    for (leader, requests) in rounds {
        for indexes in requests {
            ask(cluster, leader, wanted, &indexes, isolation, found)?;
        }
    }
    Ok(())
}

/// A request may name a partition only once (Kafka refuses duplicates): a second timestamp goes into the next one.
fn spread(requests: &mut Vec<Vec<usize>>, wanted: &[Wanted], index: usize) {
    let same = |other: &usize| match (wanted.get(*other), wanted.get(index)) {
        (Some(left), Some(right)) => left.0 == right.0 && left.1 == right.1,
        _ => false,
    };
    match requests.iter_mut().find(|request| !request.iter().any(same)) {
        Some(request) => request.push(index),
        None => requests.push(vec![index]),
    }
}

fn leaders<'a>(cluster: &mut Cluster, wanted: &'a [Wanted]) -> Result<HashMap<(&'a str, i32), i32>> {
    let mut names: Vec<&str> = wanted.iter().map(|(topic, _, _)| topic.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let answer = cluster.metadata(Some(&names), false)?;
    let topics: HashMap<&str, _> =
        answer.topics.iter().filter_map(|topic| Some((topic.name.as_deref()?, topic))).collect();
    let mut leaders = HashMap::with_capacity(wanted.len());
    for (name, partition, _) in wanted {
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let topic = topics.get(name.as_str()).ok_or_else(|| topic_error(name, unknown, false))?;
        match code(topic.error_code) {
            ErrorCode::None => {}
            // Unknown to one broker is believed here: the caller asked for metadata before.
            error if error == unknown => {
                return Err(ClientError { retriable: false, ..topic_error(name, error, false) });
            }
            error => return Err(topic_error(name, error, false)),
        }
        let shown = topic.partitions.iter().find(|shown| shown.partition_index == *partition);
        let shown = shown.ok_or_else(|| {
            let message =
                format!("topic {name} has no partition {partition}; it has {}", topic.partitions.len());
            ClientError::fatal(unknown.name(), message)
        })?;
        if shown.leader_id < 0 {
            let message = format!("partition {name}-{partition} has no leader now");
            return Err(ClientError::retriable(ErrorCode::LeaderNotAvailable.name(), message));
        }
        leaders.insert((name.as_str(), *partition), shown.leader_id);
    }
    Ok(leaders)
}

fn ask(
    cluster: &mut Cluster,
    leader: i32,
    wanted: &[Wanted],
    indexes: &[usize],
    isolation: Isolation,
    found: &mut [Option<Found>],
) -> Result<()> {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    let mut index_of: HashMap<(&str, i32), usize> = HashMap::new();
    for (index, (topic, partition, timestamp)) in
        indexes.iter().filter_map(|at| Some((*at, wanted.get(*at)?)))
    {
        index_of.insert((topic, *partition), index);
        topics.entry(topic).or_default().push(ListOffsetsPartition {
            partition_index: *partition,
            current_leader_epoch: -1,
            timestamp: *timestamp,
        });
    }
    let topics =
        topics.into_iter().map(|(name, partitions)| ListOffsetsTopic { name: name.into(), partitions });
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation.code(),
        topics: topics.collect(),
        ..Default::default()
    };
    let answer = cluster.call(leader, &request)?;
    for topic in &answer.topics {
        for partition in &topic.partitions {
            let name = topic.name.as_str();
            match code(partition.error_code) {
                ErrorCode::None => {}
                error => return Err(partition_error(name, partition.partition_index, error)),
            }
            let place =
                index_of.get(&(name, partition.partition_index)).and_then(|index| found.get_mut(*index));
            if let Some(place) = place {
                *place = Some(Found { offset: partition.offset, timestamp: partition.timestamp });
            }
        }
    }
    Ok(())
}

/// The sentence for a partition that an answer shows with an error.
pub fn partition_error(topic: &str, partition: i32, error: ErrorCode) -> ClientError {
    ClientError {
        kind: error.name(),
        message: format!("partition {topic}-{partition}: {}", error.sentence()),
        retriable: error.is_retriable(),
    }
}
