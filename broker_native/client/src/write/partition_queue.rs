//! The batches of one partition that are not acknowledged: their order, their retries. No socket.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::identity::ProducerIdentity;
use crate::config::Settings;
use crate::error::{ClientError, Result, kind};
use crate::metadata::address::Address;
use pylog_record::compression::{Codec, decompress};
use pylog_record::{BatchBuilder, BatchError, BatchHeader, HeaderRef, batches, records};
use pylog_wire::ErrorCode;

/// Sequences are counted modulo this.
const SEQUENCE_MODULUS: u64 = 1 << 31;

/// What a broker's answer means for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProduceOutcome {
    /// Stored from this offset on (-1: not known).
    Stored(i64),
    /// To be sent again.
    Again(ClientError),
    /// To be sent again if an earlier batch of the partition failed; otherwise the log has lost records.
    AfterEarlier(ClientError),
    /// To be sent in parts.
    TooLarge(ClientError),
    /// Never going to be stored.
    Refused(ClientError),
}

/// A batch on its way.
#[derive(Debug)]
pub struct ProducerBatch {
    body: Body,
    records: u64,
    sequence: u64,
    size_bytes: usize,
    since: Instant,
    /// Whether what is sent is a builder's buffer.
    reusable: bool,
}

#[derive(Debug)]
enum Body {
    Open(BatchBuilder),
    Sealed(Bytes),
}

impl ProducerBatch {
    /// The first record of `builder` has `sequence` records of this writer before it.
    pub fn new(builder: BatchBuilder, sequence: u64, size_bytes: usize) -> Self {
        let records = builder.records_count() as u64;
        Self {
            body: Body::Open(builder),
            records,
            sequence,
            size_bytes,
            since: Instant::now(),
            reusable: false,
        }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes that it counts for against `buffer.memory`.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Bytes on the wire; 0 before it is sealed.
    pub fn sent_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// The bytes on the wire; none before it is sealed.
    pub fn bytes(&self) -> Bytes {
        match &self.body {
            Body::Open(_) => Bytes::new(),
            Body::Sealed(bytes) => bytes.clone(),
        }
    }

    /// Compresses and stamps the batch, once; gives the builder back when its buffer is not what is sent.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn seal(
        &mut self,
        identity: &ProducerIdentity,
        codec: Codec,
    ) -> std::result::Result<Option<BatchBuilder>, BatchError> {
        let Body::Open(builder) = &mut self.body else { return Ok(None) };
        if let Some((id, epoch)) = identity.producer {
            builder.set_producer(id, epoch, (self.sequence % SEQUENCE_MODULUS) as i32);
        }
        builder.set_transactional(identity.transactional_id.is_some());
        if codec == Codec::None {
            let batch = std::mem::take(builder).into_batch()?;
            self.body = Body::Sealed(Bytes::from(batch));
            self.reusable = true;
            return Ok(None);
        }
        let bytes = Bytes::from(builder.finish(codec)?);
        match std::mem::replace(&mut self.body, Body::Sealed(bytes)) {
            Body::Open(builder) => Ok(Some(builder)),
            Body::Sealed(_) => Ok(None),
        }
    }

    /// What is left of an acknowledged batch: its buffer, if a builder can use it again.
    pub fn into_builder(self) -> Option<BatchBuilder> {
        let Body::Sealed(bytes) = self.body else { return None };
        let mut buffer = bytes.try_into_mut().ok().filter(|_| self.reusable)?;
        // Cleared first: making a vector of it would copy bytes that are not needed.
        buffer.clear();
        Some(BatchBuilder::reusing(buffer.into()))
    }

    /// Two halves, to be sent in the place of this batch.
    ///
    /// # Errors
    /// `too_large` when there is only one record.
    pub fn split(self, too_large: &ClientError) -> Result<[Self; 2]> {
        if self.records < 2 {
            return Err(too_large.clone());
        }
        let bytes = self.bytes();
        let halves = halve(&bytes, self.records / 2);
        let [first, second] = halves.map_err(|error| {
            ClientError::fatal(kind::PROTOCOL, format!("could not split a batch: {error}"))
        })?;
        let size = self.size_bytes / 2;
        let first = Self { since: self.since, ..Self::new(first, self.sequence, size) };
        let sequence = self.sequence + first.records;
        let second = Self { since: self.since, ..Self::new(second, sequence, self.size_bytes - size) };
        Ok([first, second])
    }
}

fn halve(bytes: &[u8], first_records: u64) -> std::result::Result<[BatchBuilder; 2], BatchError> {
    let mut halves = [BatchBuilder::new(), BatchBuilder::new()];
    let mut count = 0;
    for view in batches(bytes) {
        let (header, batch): (BatchHeader, &[u8]) = view?;
        let codec = Codec::from_attributes(header.attributes)?;
        let body = decompress(codec, pylog_record::batches::body(batch), i32::MAX as usize)?;
        for record in records(&body, &header) {
            let record = record?;
            let headers = record.headers.iter().collect::<std::result::Result<Vec<HeaderRef<'_>>, _>>()?;
            let half = usize::from(count >= first_records);
            if let Some(builder) = halves.get_mut(half) {
                builder.append(record.timestamp, record.key, record.value, &headers)?;
            }
            count += 1;
        }
    }
    Ok(halves)
}

/// The unacknowledged batches of one partition.
#[derive(Debug, Default)]
pub struct PartitionQueue {
    /// Where the partition's leader is, as far as known.
    pub leader: Option<Address>,
    waiting: VecDeque<ProducerBatch>,
    under_way: usize,
    retry: Option<RetryState>,
    attempts: i64,
    unknown_since: Option<Instant>,
}

#[derive(Debug)]
struct RetryState {
    not_before: Instant,
    cause: ClientError,
}

impl PartitionQueue {
    /// Of a partition whose leader may be known already.
    pub fn of(leader: Option<Address>) -> Self {
        Self { leader, ..Self::default() }
    }

    /// Adds a new batch behind all others.
    pub fn push(&mut self, batch: ProducerBatch) {
        self.waiting.push_back(batch);
    }

    /// Whether a batch may be sent now.
    pub fn may_send(&self, now: Instant) -> bool {
        !self.waiting.is_empty()
            && self.retry.as_ref().is_none_or(|retry| self.under_way == 0 && retry.not_before <= now)
    }

    /// Size of the next batch.
    pub fn next_size(&self) -> usize {
        self.waiting.front().map_or(0, ProducerBatch::size_bytes)
    }

    /// The next batch, which is then under way.
    pub fn take(&mut self) -> Option<ProducerBatch> {
        let batch = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(batch)
    }

    /// A batch is not under way any more.
    pub fn released(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Puts a batch back in its place.
    pub fn back(&mut self, batch: ProducerBatch) {
        let place = self.waiting.partition_point(|waiting| waiting.sequence < batch.sequence);
        self.waiting.insert(place, batch);
    }

    /// Whether an earlier batch failed and none succeeded since.
    pub fn is_retrying(&self) -> bool {
        self.retry.is_some()
    }

    /// Holds the partition back until the batches under way are answered, without a pause after that.
    pub fn hold(&mut self, cause: ClientError) {
        self.retry = Some(RetryState { not_before: Instant::now(), cause });
    }

    /// Holds the partition back and asks for its leader again.
    ///
    /// # Errors
    /// `error` when no retry mends it, when `retries` are used up, or when the topic stays unknown.
    pub fn failed(&mut self, error: ClientError, settings: &Settings) -> Result<()> {
        let now = Instant::now();
        self.leader = None;
        if !error.retriable || !self.may_still_be_unknown(&error, now, settings) {
            return Err(error);
        }
        // Several batches that fail together are one attempt.
        if self.retry.as_ref().is_none_or(|retry| retry.not_before <= now) {
            if self.attempts >= settings.retries {
                return Err(ClientError { retriable: false, ..error });
            }
            let pause = settings.backoff(u32::try_from(self.attempts).unwrap_or(u32::MAX));
            self.attempts += 1;
            self.retry = Some(RetryState { not_before: now + pause, cause: error });
        }
        Ok(())
    }

    /// A topic that was there when the writer began may be unknown to one broker for a while, not for long.
    fn may_still_be_unknown(&mut self, error: &ClientError, now: Instant, settings: &Settings) -> bool {
        let unknown = [ErrorCode::UnknownTopicOrPartition, ErrorCode::UnknownTopicId];
        if !unknown.iter().any(|code| code.name() == error.kind) {
            self.unknown_since = None;
            return true;
        }
        now.duration_since(*self.unknown_since.get_or_insert(now))
            < settings.request_timeout().min(UNKNOWN_GRACE)
    }

    /// A batch was stored.
    pub fn succeeded(&mut self) {
        self.retry = None;
        self.attempts = 0;
        self.unknown_since = None;
    }

    /// How long until the next attempt; `None` when only an answer or a new batch can change anything.
    pub fn retry_in(&self, now: Instant) -> Option<Duration> {
        let retry = self.retry.as_ref().filter(|_| self.under_way == 0 && !self.waiting.is_empty())?;
        Some(retry.not_before.saturating_duration_since(now))
    }

    /// Whether the oldest waiting batch waits for longer than `limit`: then the last cause, if any.
    pub fn overdue(&self, limit: Duration) -> Option<Option<&ClientError>> {
        let late = self.waiting.front().is_some_and(|batch| batch.since.elapsed() > limit);
        late.then(|| self.retry.as_ref().map(|retry| &retry.cause))
    }
}

/// How long a topic may be unknown to its brokers while it is written to.
const UNKNOWN_GRACE: Duration = Duration::from_millis(5000);

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        let base = [("bootstrap.servers", "a:1"), ("retry.backoff.ms", "0")];
        Settings::new(base.iter().chain(given).copied()).unwrap()
    }

    fn batch(sequence: u64, count: usize) -> ProducerBatch {
        let mut builder = BatchBuilder::new();
        for n in 0..count {
            let value = [n as u8; 10];
            let headers = [HeaderRef { key: b"h", value: None }];
            builder.append(n as i64, Some(b"key"), Some(&value), &headers).unwrap();
        }
        let size = builder.size_bytes();
        ProducerBatch::new(builder, sequence, size)
    }

    fn identity() -> ProducerIdentity {
        ProducerIdentity {
            producer: Some((7, 1)),
            transactional_id: Some("id".to_owned()),
            ..ProducerIdentity::default()
        }
    }

    fn lost() -> ClientError {
        ClientError::retriable("UNREACHABLE", "lost")
    }

    #[test]
    fn failed_batches_go_again_in_their_order_after_all_are_answered() {
        let settings = settings(&[]);
        let mut queue = PartitionQueue::default();
        (0..4).for_each(|n| queue.push(batch(n, 1)));
        let (first, second) = (queue.take().unwrap(), queue.take().unwrap());
        queue.released();
        queue.back(second);
        queue.failed(lost(), &settings).unwrap();
        assert!(!queue.may_send(Instant::now()), "one is still under way");
        queue.released();
        queue.back(first);
        queue.failed(lost(), &settings).unwrap();
        assert!(queue.may_send(Instant::now()));
        let order: Vec<u64> =
            std::iter::from_fn(|| queue.waiting.pop_front()).map(|batch| batch.sequence).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn while_retrying_only_one_batch_is_under_way() {
        let mut queue = PartitionQueue::default();
        (0..2).for_each(|n| queue.push(batch(n, 1)));
        queue.failed(lost(), &settings(&[])).unwrap();
        assert!(queue.take().is_some());
        assert!(!queue.may_send(Instant::now()));
        queue.released();
        queue.succeeded();
        assert!(queue.may_send(Instant::now()));
    }

    #[test]
    fn retries_run_out() {
        let settings = settings(&[("retries", "1")]);
        let mut queue = PartitionQueue::default();
        queue.push(batch(0, 1));
        queue.failed(lost(), &settings).unwrap();
        assert_eq!(queue.failed(lost(), &settings).unwrap_err().message, "lost");
    }

    #[test]
    fn a_split_batch_keeps_records_order_and_sequences() {
        for codec in Codec::ALL {
            let mut whole = batch(10, 5);
            whole.seal(&identity(), codec).unwrap();
            let size = whole.size_bytes();
            let mut parts = whole.split(&lost()).unwrap();
            assert_eq!(parts.iter().map(ProducerBatch::size_bytes).sum::<usize>(), size);
            let mut values = Vec::new();
            for (part, sequence) in parts.iter_mut().zip([10, 12]) {
                part.seal(&identity(), codec).unwrap();
                let bytes = part.bytes();
                let (header, view) = batches(&bytes).next().unwrap().unwrap();
                header.verify_crc(view).unwrap();
                assert_eq!((header.base_sequence, header.producer_id), (sequence, 7));
                assert!(header.is_transactional());
                let body = decompress(codec, pylog_record::batches::body(view), 10_000).unwrap();
                values.extend(records(&body, &header).map(|record| record.unwrap().value.unwrap()[0]));
            }
            assert_eq!(values, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_buffer_of_a_batch_that_is_not_compressed_is_sent_and_used_again() {
        let mut batch = batch(0, 3);
        let Body::Open(builder) = &batch.body else { unreachable!() };
        let expected = builder.clone().finish(Codec::None).unwrap();
        assert!(batch.seal(&ProducerIdentity::default(), Codec::None).unwrap().is_none());
        let bytes = batch.bytes();
        assert_eq!(bytes, expected);
        let place = bytes.as_ptr();
        drop(bytes);
        let mut again = batch.into_builder().unwrap();
        assert!(again.is_empty());
        again.append(7, None, Some(b"v"), &[]).unwrap();
        let mut fresh = BatchBuilder::new();
        fresh.append(7, None, Some(b"v"), &[]).unwrap();
        assert_eq!(again.size_bytes(), fresh.size_bytes());
        let second = again.into_batch().unwrap();
        assert_eq!((second.as_ptr(), second), (place, fresh.into_batch().unwrap()));
    }

    #[test]
    fn a_compressed_batch_gives_its_builder_back_at_once_and_none_later() {
        let mut batch = batch(0, 3);
        assert!(batch.seal(&ProducerIdentity::default(), Codec::Lz4).unwrap().is_some());
        assert!(batch.into_builder().is_none());
    }

    #[test]
    fn a_single_record_that_is_too_large_is_an_error() {
        let mut batch = batch(0, 1);
        batch.seal(&ProducerIdentity::default(), Codec::None).unwrap();
        assert!(batch.split(&lost()).is_err());
    }
}
