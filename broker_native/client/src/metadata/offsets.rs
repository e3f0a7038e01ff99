//! Offsets by timestamp, earliest and latest, asked from the leaders of many partitions at once.
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, topic_error};
use super::topic_partition::TopicPartition;
use crate::config::Isolation;
use crate::error::{ClientError, Result, code};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ListOffsetsResponse;
use pylog_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};

/// Timestamp that stands for the first offset.
pub const EARLIEST: i64 = -2;

/// How long a topic may be unknown to one of several brokers before that is believed.
const UNKNOWN_TOPIC_GRACE: Duration = Duration::from_millis(5000);

/// A partition, and the time whose offset is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetQuery {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// Milliseconds since the epoch, or -1 latest, -2 earliest, -3 of the largest timestamp.
    pub timestamp: i64,
}

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
pub fn list_offsets(
    cluster: &mut Cluster,
    wanted: &[OffsetQuery],
    isolation: Isolation,
) -> Result<Vec<Found>> {
    let mut found: Vec<Option<Found>> = vec![None; wanted.len()];
    let begun = Instant::now();
    cluster.retrying("list offsets", |cluster| attempt(cluster, wanted, isolation, begun, &mut found))?;
    let all: Option<Vec<Found>> = found.into_iter().collect();
    all.ok_or_else(|| ClientError::protocol("any", "it says nothing of a partition that was asked for"))
}

/// Asks for what is not found yet; what was found stays when another partition fails.
fn attempt(
    cluster: &mut Cluster,
    wanted: &[OffsetQuery],
    isolation: Isolation,
    begun: Instant,
    found: &mut [Option<Found>],
) -> Result<()> {
    let mut rounds: BTreeMap<i32, Vec<Vec<usize>>> = BTreeMap::new();
    let partitions: Vec<&TopicPartition> = wanted.iter().map(|query| &query.topic_partition).collect();
    let leaders = leaders(cluster, &partitions).map_err(|error| of_unknown(cluster, error, begun))?;
    let mut times: HashMap<(&str, i32), usize> = HashMap::with_capacity(wanted.len());
    for (index, (partition, leader)) in partitions.iter().zip(leaders).enumerate() {
        if found.get(index).is_some_and(Option::is_none) {
            let asked_before = times.entry((&*partition.topic, partition.partition)).or_default();
            spread(rounds.entry(leader).or_default(), *asked_before, index);
            *asked_before += 1;
        }
    }
    let asked: Vec<(i32, Vec<usize>)> = rounds
        .into_iter()
        .flat_map(|(leader, each)| each.into_iter().map(move |indexes| (leader, indexes)))
        .collect();
    let requests: Vec<_> =
        asked.iter().map(|(leader, indexes)| (*leader, request(wanted, indexes, isolation))).collect();
    let outcome = cluster.call_each(&requests).and_then(|answers| {
        let mut each = asked.iter().zip(&answers);
        each.try_for_each(|((_, indexes), answer)| take(wanted, indexes, answer, found))
    });
    outcome.inspect_err(|_| cluster.forget_leaders())
}

/// A request may name a partition only once (Kafka refuses duplicates): a second timestamp goes into the next one.
fn spread(requests: &mut Vec<Vec<usize>>, asked_before: usize, index: usize) {
    match requests.get_mut(asked_before) {
        Some(request) => request.push(index),
        None => requests.push(vec![index]),
    }
}

/// Unknown to the only broker is believed: the caller asked for metadata before. One of several may be behind.
fn of_unknown(cluster: &mut Cluster, error: ClientError, begun: Instant) -> ClientError {
    if error.kind != ErrorCode::UnknownTopicOrPartition.name() {
        return error;
    }
    cluster.distrust_metadata();
    ClientError { retriable: cluster.has_several() && begun.elapsed() < UNKNOWN_TOPIC_GRACE, ..error }
}

/// The leader of each partition, in their order: those that metadata showed last, else metadata is asked for.
///
/// # Errors
/// Those of [`Cluster::metadata`] and of the topics; `LEADER_NOT_AVAILABLE`.
pub fn leaders(cluster: &mut Cluster, wanted: &[&TopicPartition]) -> Result<Vec<i32>> {
    let known: Option<Vec<i32>> = wanted.iter().map(|partition| cluster.leader(partition)).collect();
    match known {
        Some(known) => Ok(known),
        None => asked_leaders(cluster, wanted),
    }
}

fn asked_leaders(cluster: &mut Cluster, wanted: &[&TopicPartition]) -> Result<Vec<i32>> {
    let mut names: Vec<&str> = wanted.iter().map(|partition| &*partition.topic).collect();
    names.sort_unstable();
    names.dedup();
    let answer = cluster.metadata(Some(&names), false)?;
    let topics: HashMap<&str, _> =
        answer.topics.iter().filter_map(|topic| Some((topic.name.as_deref()?, topic))).collect();
    let mut leaders = Vec::with_capacity(wanted.len());
    for topic_partition in wanted {
        let (name, partition) = (&*topic_partition.topic, topic_partition.partition);
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let topic = topics.get(name).ok_or_else(|| topic_error(name, unknown, false))?;
        let error = code(topic.error_code);
        if error != ErrorCode::None {
            return Err(topic_error(name, error, false));
        }
        let shown = topic.partitions.iter().find(|shown| shown.partition_index == partition);
        let shown = shown.ok_or_else(|| {
            let message =
                format!("topic {name} has no partition {partition}; it has {}", topic.partitions.len());
            ClientError::fatal(unknown.name(), message)
        })?;
        if shown.leader_id < 0 {
            let message = format!("partition {topic_partition} has no leader now");
            return Err(ClientError::retriable(ErrorCode::LeaderNotAvailable.name(), message));
        }
        leaders.push(shown.leader_id);
    }
    Ok(leaders)
}

fn request(wanted: &[OffsetQuery], indexes: &[usize], isolation: Isolation) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for query in indexes.iter().filter_map(|index| wanted.get(*index)) {
        topics.entry(&query.topic_partition.topic).or_default().push(ListOffsetsPartition {
            partition_index: query.topic_partition.partition,
            current_leader_epoch: -1,
            timestamp: query.timestamp,
        });
    }
    let topics =
        topics.into_iter().map(|(name, partitions)| ListOffsetsTopic { name: name.into(), partitions });
    ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation.code(),
        topics: topics.collect(),
        ..Default::default()
    }
}

/// Puts what an answer says in the places of `indexes`.
fn take(
    wanted: &[OffsetQuery],
    indexes: &[usize],
    answer: &ListOffsetsResponse,
    found: &mut [Option<Found>],
) -> Result<()> {
    let named = |index: &usize| {
        let partition = &wanted.get(*index)?.topic_partition;
        Some(((&*partition.topic, partition.partition), *index))
    };
    let index_of: HashMap<(&str, i32), usize> = indexes.iter().filter_map(named).collect();
    for topic in &answer.topics {
        for partition in &topic.partitions {
            let name = topic.name.as_str();
            match code(partition.error_code) {
                ErrorCode::None => {}
                error => return Err(partition_error(name, partition.partition_index, error)),
            }
            let answered =
                index_of.get(&(name, partition.partition_index)).and_then(|index| found.get_mut(*index));
            if let Some(answered) = answered {
                *answered = Some(Found { offset: partition.offset, timestamp: partition.timestamp });
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::tests::fake::{FakeBroker, metadata};
    use pylog_wire::AnyRequest;
    use pylog_wire::messages::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};

    /// What was asked so far.
    #[derive(Default)]
    struct Count {
        port: AtomicUsize,
        metadata: AtomicUsize,
        offsets: AtomicUsize,
    }

    impl Count {
        fn taken(&self) -> (usize, usize) {
            (self.metadata.swap(0, Ordering::SeqCst), self.offsets.swap(0, Ordering::SeqCst))
        }
    }

    /// A broker that answers earliest with 5 and latest with 9; the first `wrong` times it says that it does not lead.
    fn broker(wrong: usize) -> (FakeBroker, Arc<Count>) {
        let count = Arc::new(Count::default());
        let (seen, refused) = (count.clone(), AtomicUsize::new(wrong));
        let broker = FakeBroker::start(move |asked| match &asked.request {
            AnyRequest::Metadata(_) => {
                seen.metadata.fetch_add(1, Ordering::SeqCst);
                asked.answer(&metadata(seen.port.load(Ordering::SeqCst) as u16))
            }
            AnyRequest::ListOffsets(request) => {
                seen.offsets.fetch_add(1, Ordering::SeqCst);
                let refuse = refused
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok();
                let error = if refuse { ErrorCode::NotLeaderOrFollower } else { ErrorCode::None };
                let offset = if request.topics[0].partitions[0].timestamp == EARLIEST { 5 } else { 9 };
                let partition =
                    ListOffsetsPartitionResponse { error_code: error.code(), offset, ..Default::default() };
                let topic = ListOffsetsTopicResponse { name: "t".into(), partitions: vec![partition] };
                asked.answer(&ListOffsetsResponse { topics: vec![topic], ..Default::default() })
            }
            _ => None,
        });
        count.port.store(broker.port.into(), Ordering::SeqCst);
        (broker, count)
    }

    fn both(cluster: &mut Cluster) -> Vec<i64> {
        let wanted = [EARLIEST, -1]
            .map(|timestamp| OffsetQuery { topic_partition: TopicPartition::by_name("t", 0), timestamp });
        let found = list_offsets(cluster, &wanted, Isolation::ReadUncommitted).unwrap();
        found.iter().map(|found| found.offset).collect()
    }

    #[test]
    fn leaders_are_asked_for_once_and_two_times_of_a_partition_in_two_requests() {
        let (broker, count) = broker(0);
        let mut cluster = broker.cluster(&[]);
        assert_eq!(both(&mut cluster), [5, 9]);
        assert_eq!(count.taken(), (1, 2));
        assert_eq!(both(&mut cluster), [5, 9]);
        assert_eq!(count.taken(), (0, 2));
    }

    #[test]
    fn a_leader_that_moved_is_looked_for_again() {
        let (broker, count) = broker(1);
        let mut cluster = broker.cluster(&[]);
        assert_eq!(both(&mut cluster), [5, 9]);
        assert_eq!(count.taken().0, 2);
    }
}
