//! Rows -> open batches, one for each partition: chooses the partition, says when a batch is full. No socket, no lock.
//!
//! | row | partition |
//! |---|---|
//! | names one | that one |
//! | has a key | murmur2 of the key, as every Kafka client does by default |
//! | neither | the sticky one of its topic, which moves on each time its batch is full |
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::error::{ClientError, Result};
use crate::metadata::address::Address;
use crate::metadata::topic_partition::TopicPartition;
use pylog_record::partitioner::partition_for_key;
use pylog_record::{BatchBuilder, HeaderRef};
use pylog_wire::ErrorCode;

/// More than a record's own fields (lengths, deltas, attributes) can take beside its key, value and headers.
const RECORD_OVERHEAD: usize = 32;
/// The same for one header of a record.
const HEADER_OVERHEAD: usize = 10;

/// A row to append.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Partition, if the row names one.
    pub partition: Option<i32>,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Key.
    pub key: Option<&'a [u8]>,
    /// Value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers.
    pub headers: &'a [HeaderRef<'a>],
}

/// A closed batch on its way to the sender.
#[derive(Debug)]
pub struct Ready {
    /// Where to.
    pub topic_partition: TopicPartition,
    /// The records.
    pub builder: BatchBuilder,
    /// Number of records that this writer gave to the partition before.
    pub sequence: u64,
    /// Bytes that count against `buffer.memory`.
    pub size_bytes: usize,
    /// The partition's leader when the topic was looked up.
    pub leader: Option<Address>,
}

/// What bounds a batch.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// `batch.size`.
    pub batch_bytes: usize,
    /// `max.request.size`.
    pub record_bytes: usize,
}

/// Open batches of all partitions.
#[derive(Debug)]
pub struct Accumulator {
    limits: Limits,
    topics: Vec<Topic>,
    by_name: HashMap<Arc<str>, usize>,
    open_bytes: usize,
    spare: Vec<BatchBuilder>,
}

#[derive(Debug)]
struct Topic {
    name: Arc<str>,
    id: Uuid,
    partitions: Vec<Partition>,
    /// Where rows go that have neither a partition nor a key; `None` before the first.
    sticky: Option<usize>,
    begin: fn() -> usize,
}

#[derive(Debug, Default)]
struct Partition {
    leader: Option<Address>,
    open: Option<Open>,
    sequence: u64,
}

#[derive(Debug)]
struct Open {
    builder: BatchBuilder,
    since: Instant,
}

impl Accumulator {
    /// With nothing in it.
    pub fn new(limits: Limits) -> Self {
        Self { limits, topics: Vec::new(), by_name: HashMap::new(), open_bytes: 0, spare: Vec::new() }
    }

    /// The handle of a topic that was added.
    pub fn topic(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a topic that has at least one partition, each with its leader, if known; the number that `begin` gives when
    /// the first row without partition and key comes decides which is sticky first.
    pub fn add_topic(
        &mut self,
        name: &str,
        id: Uuid,
        leaders: Vec<Option<Address>>,
        begin: fn() -> usize,
    ) -> usize {
        let name: Arc<str> = name.into();
        let partition = |leader| Partition { leader, ..Partition::default() };
        let partitions: Vec<Partition> = leaders.into_iter().map(partition).collect();
        self.topics.push(Topic { name: name.clone(), id, partitions, sticky: None, begin });
        let handle = self.topics.len() - 1;
        self.by_name.insert(name, handle);
        handle
    }

    /// The name of a topic that lacks `partition`, as far as is known here.
    #[inline]
    pub fn lacks(&self, handle: usize, partition: i32) -> Option<Arc<str>> {
        let topic = self.topics.get(handle)?;
        let count = topic.partitions.len();
        usize::try_from(partition).is_ok_and(|at| at >= count).then(|| topic.name.clone())
    }

    /// Takes partitions that the topic got since it was added; none when it is another one with the same name.
    pub fn grow(&mut self, handle: usize, id: Uuid, leaders: Vec<Option<Address>>) {
        let Some(topic) = self.topics.get_mut(handle).filter(|topic| topic.id == id) else { return };
        let known = topic.partitions.len();
        let partition = |leader| Partition { leader, ..Partition::default() };
        topic.partitions.extend(leaders.into_iter().skip(known).map(partition));
    }

    /// Bytes in open batches.
    pub fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// Gives builders back whose batches are sent.
    pub fn recycle(&mut self, builders: impl IntoIterator<Item = BatchBuilder>) {
        self.spare.extend(builders);
    }

    /// Appends `row` to topic `handle`; returns the batch that had to be closed for it, if any.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a partition the topic does not have, `MESSAGE_TOO_LARGE` for a row larger than
    /// `max.request.size`. Nothing is appended then.
    #[inline]
    pub fn append(&mut self, handle: usize, row: &Row<'_>) -> Result<Option<Ready>> {
        let limits = self.limits;
        let Some(topic) = self.topics.get_mut(handle) else {
            return Err(ClientError::invalid("unknown topic handle"));
        };
        let size = row.size_bytes();
        if size > limits.record_bytes {
            return Err(too_large(&topic.name, size, limits.record_bytes));
        }
        let mut at = topic.choose(row)?;
        let mut closed = None;
        if topic.open_size(at).is_some_and(|open| open + size > limits.batch_bytes) {
            closed = topic.close(at);
            if row.partition.is_none() && row.key.is_none() {
                at = (at + 1) % topic.partitions.len();
                topic.sticky = Some(at);
                // The next partition may hold keyed records that leave no room either: it gets a batch more.
                if closed.is_some()
                    && topic.open_size(at).is_some_and(|open| open + size > limits.batch_bytes)
                {
                    at = topic.last_closed(&closed, at);
                }
            }
        }
        let before = topic.open_size(at).unwrap_or(0);
        let after = topic.put(at, row, limits.batch_bytes, &mut self.spare)?;
        self.open_bytes += after - before;
        self.open_bytes -= closed.as_ref().map_or(0, |ready| ready.size_bytes);
        Ok(closed)
    }

    /// Closes every batch that is open for at least `age`, in no particular order.
    pub fn close_older_than(&mut self, age: Duration) -> Vec<Ready> {
        let old =
            |partition: &Partition| partition.open.as_ref().is_some_and(|open| open.since.elapsed() >= age);
        let mut closed = Vec::new();
        for topic in &mut self.topics {
            for at in 0..topic.partitions.len() {
                if topic.partitions.get(at).is_some_and(old) {
                    closed.extend(topic.close(at));
                }
            }
        }
        self.open_bytes -= closed.iter().map(|ready| ready.size_bytes).sum::<usize>();
        closed
    }
}

impl Topic {
    #[inline]
    fn choose(&mut self, row: &Row<'_>) -> Result<usize> {
        let count = self.partitions.len();
        match (row.partition, row.key) {
            (Some(partition), _) => {
                usize::try_from(partition).ok().filter(|at| *at < count).ok_or_else(|| {
                    ClientError::invalid(format!(
                        "topic {} has partitions 0 to {}, not {partition}",
                        self.name,
                        count - 1
                    ))
                })
            }
            (None, Some(key)) => Ok(partition_for_key(key, count as i32) as usize),
            (None, None) => {
                let begin = self.begin;
                Ok(*self.sticky.get_or_insert_with(|| begin() % count.max(1)))
            }
        }
    }

    #[inline]
    fn open_size(&self, at: usize) -> Option<usize> {
        let open = self.partitions.get(at)?.open.as_ref()?;
        (!open.builder.is_empty()).then(|| open.builder.size_bytes())
    }

    /// The partition whose batch was just closed, which has room; `otherwise` when there is none.
    fn last_closed(&self, closed: &Option<Ready>, otherwise: usize) -> usize {
        closed
            .as_ref()
            .and_then(|ready| usize::try_from(ready.topic_partition.partition).ok())
            .unwrap_or(otherwise)
    }

    fn close(&mut self, at: usize) -> Option<Ready> {
        let partition = self.partitions.get_mut(at)?;
        let open = partition.open.take().filter(|open| !open.builder.is_empty())?;
        let sequence = partition.sequence;
        partition.sequence += open.builder.records_count() as u64;
        let size_bytes = open.builder.size_bytes();
        let topic_partition =
            TopicPartition { topic: self.name.clone(), partition: at as i32, topic_id: self.id };
        let leader = partition.leader.clone();
        Some(Ready { topic_partition, builder: open.builder, sequence, size_bytes, leader })
    }

    /// Appends to an open batch with room, opened if needed; gives its new size.
    #[inline]
    fn put(&mut self, at: usize, row: &Row<'_>, room: usize, spare: &mut Vec<BatchBuilder>) -> Result<usize> {
        let Some(partition) = self.partitions.get_mut(at) else {
            return Err(ClientError::invalid("unknown partition"));
        };
        let open = partition.open.get_or_insert_with(|| Open {
            builder: spare.pop().unwrap_or_else(|| BatchBuilder::with_capacity(room)),
            since: Instant::now(),
        });
        let appended = open.builder.append(row.timestamp_ms, row.key, row.value, row.headers);
        appended.map_err(|error| ClientError::invalid(format!("topic {}: {error}", self.name)))?;
        Ok(open.builder.size_bytes())
    }
}

impl Row<'_> {
    /// An upper bound of what the record takes.
    #[inline]
    fn size_bytes(&self) -> usize {
        let field = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let header = |header: &HeaderRef<'_>| HEADER_OVERHEAD + header.key.len() + field(header.value);
        RECORD_OVERHEAD + field(self.key) + field(self.value) + self.headers.iter().map(header).sum::<usize>()
    }
}

fn too_large(topic: &str, size: usize, limit: usize) -> ClientError {
    ClientError::fatal(
        ErrorCode::MessageTooLarge.name(),
        format!(
            "a record of {size} bytes for topic {topic} is larger than max.request.size ({limit}); raise it (and the topic's max.message.bytes) or make the record smaller"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { batch_bytes: 400, record_bytes: 1000 };

    fn row(value: &[u8]) -> Row<'_> {
        Row { partition: None, timestamp_ms: 5, key: None, value: Some(value), headers: &[] }
    }

    fn accumulator(partitions: usize) -> Accumulator {
        let mut accumulator = Accumulator::new(LIMITS);
        assert_eq!(accumulator.add_topic("t", Uuid::nil(), vec![None; partitions], || 0), 0);
        accumulator
    }

    #[test]
    fn rows_without_key_fill_one_partition_after_the_other() {
        let mut accumulator = accumulator(3);
        let mut order = Vec::new();
        for _ in 0..100 {
            order.extend(
                accumulator.append(0, &row(&[1; 50])).unwrap().map(|ready| ready.topic_partition.partition),
            );
        }
        assert!(order.len() >= 10, "{order:?}");
        let turns: Vec<i32> = (0..order.len() as i32).map(|n| n % 3).collect();
        assert_eq!(order, turns);
    }

    #[test]
    fn a_key_goes_to_its_murmur2_partition_and_a_named_partition_wins() {
        let mut accumulator = accumulator(7);
        let key = Some(&b"foobar"[..]);
        accumulator.append(0, &Row { key, ..row(b"x") }).unwrap();
        accumulator.append(0, &Row { key, partition: Some(6), ..row(b"x") }).unwrap();
        let mut partitions: Vec<_> = accumulator
            .close_older_than(Duration::ZERO)
            .iter()
            .map(|ready| ready.topic_partition.partition)
            .collect();
        partitions.sort_unstable();
        assert_eq!(partitions, [partition_for_key(b"foobar", 7), 6]);
    }

    #[test]
    fn sequences_count_the_records_of_each_partition_and_bytes_are_given_back() {
        let mut accumulator = accumulator(1);
        let mut ready = Vec::new();
        for _ in 0..50 {
            ready.extend(accumulator.append(0, &row(&[1; 90])).unwrap());
        }
        assert!(accumulator.open_bytes() > 0);
        ready.extend(accumulator.close_older_than(Duration::ZERO));
        assert_eq!(accumulator.open_bytes(), 0);
        let mut next = 0;
        for batch in &ready {
            assert_eq!(batch.sequence, next);
            assert!(batch.size_bytes <= LIMITS.batch_bytes);
            next += batch.builder.records_count() as u64;
        }
        assert_eq!(next, 50);
    }

    #[test]
    fn a_record_larger_than_a_batch_goes_alone_and_one_larger_than_a_request_is_refused() {
        let mut accumulator = accumulator(1);
        accumulator.append(0, &row(b"small")).unwrap();
        let closed = accumulator.append(0, &row(&[1; 800])).unwrap().unwrap();
        assert_eq!(closed.builder.records_count(), 1);
        let closed = accumulator.append(0, &row(b"small")).unwrap().unwrap();
        assert_eq!(closed.builder.records_count(), 1);
        let error = accumulator.append(0, &row(&[1; 1000])).unwrap_err();
        assert_eq!(error.kind, "MESSAGE_TOO_LARGE");
    }

    #[test]
    fn a_partition_that_does_not_exist_is_refused() {
        let mut accumulator = accumulator(2);
        for partition in [-1, 2, i32::MAX] {
            let error = accumulator.append(0, &Row { partition: Some(partition), ..row(b"x") }).unwrap_err();
            assert!(error.message.contains("partitions 0 to 1"), "{}", error.message);
        }
    }
}
