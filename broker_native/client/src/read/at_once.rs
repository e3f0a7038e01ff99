//! Small ranges of many partitions, asked from all their leaders at once and decoded by the caller's thread.
//!
//! For a few records a reader with a thread, and one fetch after the other, costs more than the records. Here each round is one
//! request to each leader, all sent before the first answer is read; one round is the rule. Nothing is tried again but a connection
//! that a broker had closed meanwhile: in any doubt (a leader that moved, records that are gone, a log that does not show all of a
//! range) this is an error, and the caller reads the ranges by [`super::range`], which knows what to do. Leaders are read from, never
//! the closest replicas of `client.rack`. Not for several threads.
use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::fetcher::{NO_SESSION_EPOCH, TOPIC_ID_VERSION};
use super::outlet::damaged;
use super::plan::{OffsetRange, ReadPlan};
use super::pump::decode_options;
use super::typing::Typing;
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets;
use crate::metadata::topic_partition::TopicPartition;
use pylog_columnar::{BatchDecoder, RecordBatch, size_of};
use pylog_record::batches;
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchResponse;
use pylog_wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchTopic, FetchableTopicResponse, PartitionData,
};

/// What was read.
#[derive(Debug)]
pub struct AtOnce {
    /// All rows in the order of the ranges; `None` when they are more than the bound.
    pub batches: Option<Vec<RecordBatch>>,
    /// Rows that were decoded.
    pub rows: usize,
    /// Their size in Arrow, in bytes: of what was decoded, or of what was made from it where that is more.
    pub bytes: usize,
}

/// Reads the ranges of `plan`, unless they hold more than `most_bytes` of Arrow data.
///
/// # Errors
/// Whatever the leaders answer but records; `CORRUPT_BATCH`; `BAD_RECORD`; `TIMED_OUT` when a log does not show all of a range, `UNREACHABLE` when no
/// answer came within `request.timeout.ms`.
pub fn read(cluster: &mut Cluster, plan: &ReadPlan, most_bytes: usize) -> Result<AtOnce> {
    let attempt = |cluster: &mut Cluster| Reading::new(cluster, plan, most_bytes)?.run(cluster);
    match attempt(cluster) {
        // A connection that was idle for long is closed by the broker.
        Err(error) if error.kind == kind::UNREACHABLE => attempt(cluster),
        other => other,
    }
}

/// One attempt.
struct Reading<'a> {
    ranges: Vec<Part<'a>>,
    typing: Typing,
    most_bytes: usize,
    bytes: usize,
}

/// A range, and what came of it so far.
struct Part<'a> {
    range: &'a OffsetRange,
    decoder: BatchDecoder,
    batches: Vec<RecordBatch>,
}

impl Part<'_> {
    /// Takes a batch as the decoder made it; its size.
    fn add(&mut self, batch: RecordBatch, typing: &mut Typing) -> Result<usize> {
        let raw_size = size_of(&batch);
        let Some(batch) = typing.apply(batch, &self.range.topic_partition)? else { return Ok(raw_size) };
        let size = raw_size.max(size_of(&batch));
        self.batches.push(batch);
        Ok(size)
    }
}

impl<'a> Reading<'a> {
    fn new(cluster: &Cluster, plan: &'a ReadPlan, most_bytes: usize) -> Result<Self> {
        let options = decode_options(plan, cluster.settings());
        let part =
            |range| Part { range, decoder: plan.decoder(range, options, usize::MAX), batches: Vec::new() };
        let ranges = plan.ranges.iter().map(part).collect();
        Ok(Self { ranges, typing: Typing::new(plan)?, most_bytes, bytes: 0 })
    }

    fn run(mut self, cluster: &mut Cluster) -> Result<AtOnce> {
        while !self.is_over() && self.ranges.iter().any(|part| !part.decoder.at_end()) {
            let outcome = self.round(cluster);
            outcome.inspect_err(|_| cluster.forget_leaders())?;
        }
        let (bytes, is_over) = (self.bytes, self.is_over());
        let batches: Vec<RecordBatch> = self.ranges.into_iter().flat_map(|part| part.batches).collect();
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Ok(AtOnce { batches: (!is_over).then_some(batches), rows, bytes })
    }

    fn is_over(&self) -> bool {
        self.bytes > self.most_bytes
    }

    /// Asks each leader for what is missing of its partitions.
    fn round(&mut self, cluster: &mut Cluster) -> Result<()> {
        let asked = self.asked();
        let partitions: Vec<&TopicPartition> = asked
            .iter()
            .filter_map(|index| self.ranges.get(*index))
            .map(|part| &part.range.topic_partition)
            .collect();
        let leaders = offsets::leaders(cluster, &partitions)?;
        let mut by_leader: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (leader, index) in leaders.into_iter().zip(asked) {
            by_leader.entry(leader).or_default().push(index);
        }
        let requests: Vec<_> =
            by_leader.iter().map(|(leader, indexes)| (*leader, self.request(cluster, indexes))).collect();
        // A request names topics by their ids or by their names.
        let has_ids = self.ranges.iter().all(|part| !part.range.topic_partition.topic_id.is_nil());
        let newest = if has_ids { i16::MAX } else { TOPIC_ID_VERSION - 1 };
        let answers = cluster.call_each_up_to(&requests, newest)?;
        let mut has_news = false;
        for (indexes, answer) in by_leader.values().zip(answers) {
            let mut answered = by_partition(answer)?;
            for index in indexes {
                let Some(part) = self.ranges.get(*index) else { continue };
                let wanted = &part.range.topic_partition;
                let (by_id, by_name) = (Topic::Id(wanted.topic_id), Topic::Name(wanted.topic.to_string()));
                let data = answered
                    .remove(&(by_id, wanted.partition))
                    .or_else(|| answered.remove(&(by_name, wanted.partition)));
                let data = data.ok_or_else(|| {
                    ClientError::protocol("any", format!("no answer about partition {wanted}"))
                })?;
                has_news |= self.take(*index, &data)?;
            }
        }
        if has_news { Ok(()) } else { Err(self.short()) }
    }

    /// The error of leaders that all show nothing more than before.
    fn short(&self) -> ClientError {
        let missing = self.ranges.iter().find(|part| !part.decoder.at_end());
        let where_it_ends = missing.map_or(String::new(), |part| {
            format!(
                ": partition {} ends before offset {}",
                part.range.topic_partition,
                part.decoder.next_offset()
            )
        });
        ClientError::retriable(
            kind::TIMED_OUT,
            format!("the leaders show no more records now{where_it_ends}"),
        )
    }

    /// The ranges to ask for in the next round: a request names a partition once.
    fn asked(&self) -> Vec<usize> {
        let mut named = HashSet::new();
        let missing = self.ranges.iter().enumerate().filter(|(_, part)| !part.decoder.at_end());
        let first = missing.filter(|(_, part)| {
            named.insert((&part.range.topic_partition.topic, part.range.topic_partition.partition))
        });
        first.map(|(index, _)| index).collect()
    }

    fn request(&self, cluster: &Cluster, indexes: &[usize]) -> FetchRequest {
        let settings = cluster.settings();
        let bytes = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        let most = i32::try_from(self.most_bytes).unwrap_or(i32::MAX);
        let mut topics: Vec<FetchTopic> = Vec::new();
        for part in indexes.iter().filter_map(|index| self.ranges.get(*index)) {
            let TopicPartition { topic, partition, topic_id } = &part.range.topic_partition;
            let wanted = FetchPartition {
                partition: *partition,
                fetch_offset: part.decoder.next_offset(),
                partition_max_bytes: most.min(bytes(settings.max_partition_fetch_bytes)),
                current_leader_epoch: -1,
                last_fetched_epoch: -1,
                log_start_offset: -1,
                ..Default::default()
            };
            match topics.iter_mut().find(|named| named.topic == **topic) {
                Some(named) => named.partitions.push(wanted),
                None => topics.push(FetchTopic {
                    topic: (**topic).into(),
                    topic_id: *topic_id,
                    partitions: vec![wanted],
                }),
            }
        }
        FetchRequest {
            replica_id: -1,
            max_wait_ms: bytes(settings.fetch_max_wait_ms.min(settings.request_timeout_ms / 2)),
            min_bytes: 1,
            max_bytes: most.min(bytes(settings.fetch_max_bytes)),
            isolation_level: settings.isolation_level.code(),
            session_id: 0,
            session_epoch: NO_SESSION_EPOCH,
            topics,
            ..Default::default()
        }
    }

    /// Decodes what a leader answered about a range; whether it brought anything.
    fn take(&mut self, index: usize, data: &PartitionData) -> Result<bool> {
        let Some(part) = self.ranges.get_mut(index) else { return Ok(false) };
        let partition = &part.range.topic_partition;
        match code(data.error_code) {
            ErrorCode::None => {}
            error => return Err(offsets::partition_error(&partition.topic, partition.partition, error)),
        }
        let before = part.decoder.next_offset();
        let aborted = data.aborted_transactions.iter().flatten();
        part.decoder
            .add_aborted(aborted.map(|transaction| (transaction.producer_id, transaction.first_offset)));
        let records = data.records.clone().unwrap_or_default();
        for view in batches(&records) {
            let view = view.map_err(|error| {
                let message =
                    format!("partition {partition} holds damaged bytes at or after offset {before}: {error}");
                ClientError::fatal(kind::CORRUPT_BATCH, message)
            })?;
            part.decoder.push(&view).map_err(|error| damaged(&error))?;
            while let Some(batch) = part.decoder.next_batch() {
                self.bytes += part.add(batch, &mut self.typing)?;
            }
            if self.bytes > self.most_bytes {
                return Ok(true);
            }
        }
        // Flushed in each round, so that what waits is bounded, too.
        if let Some(batch) = part.decoder.flush().map_err(|error| damaged(&error))? {
            self.bytes += part.add(batch, &mut self.typing)?;
        }
        Ok(part.decoder.next_offset() > before)
    }
}

/// How an answer names a topic.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Topic {
    Id(Uuid),
    Name(String),
}

fn by_partition(answer: FetchResponse) -> Result<HashMap<(Topic, i32), PartitionData>> {
    match code(answer.error_code) {
        ErrorCode::None => {}
        error => {
            let (message, retriable) = (error.sentence().to_owned(), error.is_retriable());
            return Err(ClientError { kind: error.name(), message, retriable });
        }
    }
    let mut found = HashMap::new();
    for FetchableTopicResponse { topic, topic_id, partitions } in answer.responses {
        for data in partitions {
            let named = if topic_id.is_nil() { Topic::Name(topic.to_string()) } else { Topic::Id(topic_id) };
            found.insert((named, data.partition_index), data);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::tests::fake::{FakeBroker, metadata};
    use pylog_columnar::Column;
    use pylog_record::{BatchBuilder, Codec};
    use pylog_wire::AnyRequest;

    fn plan() -> ReadPlan {
        let topic_partition =
            TopicPartition { topic_id: Uuid::from_u128(7), ..TopicPartition::by_name("t", 0) };
        let range = OffsetRange { topic_partition, start: 0, end: Some(1) };
        ReadPlan {
            ranges: vec![range],
            columns: vec![Column::Value],
            batch_bytes: 100,
            max_rows: 10,
            ..ReadPlan::default()
        }
    }

    fn answer(data: PartitionData) -> FetchResponse {
        let topic = FetchableTopicResponse {
            topic_id: Uuid::from_u128(7),
            partitions: vec![data],
            ..Default::default()
        };
        FetchResponse { responses: vec![topic], ..Default::default() }
    }

    #[test]
    fn a_leader_that_moved_is_an_error_and_looked_for_by_the_next_reading() {
        let (port, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (its, seen) = (port.clone(), asked.clone());
        let fetches = AtomicUsize::new(0);
        let broker = FakeBroker::start(move |asked| match &asked.request {
            AnyRequest::Metadata(_) => {
                seen.fetch_add(1, Ordering::SeqCst);
                asked.answer(&metadata(its.load(Ordering::SeqCst) as u16))
            }
            AnyRequest::Fetch(_) if fetches.fetch_add(1, Ordering::SeqCst) == 0 => {
                let error_code = ErrorCode::NotLeaderOrFollower.code();
                asked.answer(&answer(PartitionData { error_code, ..Default::default() }))
            }
            AnyRequest::Fetch(_) => {
                let mut builder = BatchBuilder::new();
                builder.append(1, None, Some(b"v"), &[]).unwrap();
                let records = Some(builder.finish(Codec::None).unwrap().into());
                asked.answer(&answer(PartitionData { records, ..Default::default() }))
            }
            _ => None,
        });
        port.store(broker.port.into(), Ordering::SeqCst);
        let (mut cluster, plan) = (broker.cluster(&[]), plan());
        let error = read(&mut cluster, &plan, 1000).unwrap_err();
        assert_eq!(error.kind, ErrorCode::NotLeaderOrFollower.name());
        for _ in 0..2 {
            assert_eq!(read(&mut cluster, &plan, 1000).unwrap().rows, 1);
            assert_eq!(asked.load(Ordering::SeqCst), 2);
        }
    }
}
