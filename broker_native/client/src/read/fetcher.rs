//! The records of one partition as byte runs, in order, from a given offset: follows the leader, retries, fetches ahead.
//!
//! A leader that moves is followed within `default.api.timeout.ms`: by what the old one says (KIP-951) or by metadata from any
//! broker. When the leader's epoch has changed, the new one is asked first whether it has what was read ([`super::truncation`]).
//!
//! At most one fetch is under way; [`Fetcher::ask`] sends it before the bytes of the last answer are decoded, so that the
//! broker and the network work meanwhile. Not for several threads.
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use uuid::Uuid;

use super::local::{CHUNK_BYTES, Doubt, LocalCounters, LocalReads, LocalRun};
use super::sources::{Source, Sources};
use super::truncation;
use crate::config::{Isolation, Settings, millis};
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::{self, OffsetQuery};
use crate::metadata::topic_id;
use crate::metadata::topic_partition::TopicPartition;
use crate::net::connection::Sent;
use crate::net::retry::Retry;
use pylog_record::batches;
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchResponse;
use pylog_wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchTopic, InDirectory, PartitionData, local_reads,
};

/// How long a topic may be unknown to the only broker before that is believed.
const UNKNOWN_TOPIC_GRACE: Duration = Duration::from_millis(1000);
/// The same for one of several brokers: metadata travels, and one that just started may be behind.
const UNKNOWN_TOPIC_GRACE_SEVERAL: Duration = Duration::from_millis(5000);
/// Answers of so many bytes stay in a core's cache between the socket and the decoder: larger ones are slower where the broker is near.
const QUICK_FETCH_BYTES: i64 = 1 << 20;
/// An answer that is waited for so long, though it was asked for while the one before was decoded, comes from afar: then larger ones are quicker.
const SLOW_ANSWER: Duration = Duration::from_millis(5);
/// The fetch version from which topics are named by id.
pub(super) const TOPIC_ID_VERSION: i16 = 13;
/// Fetch session epoch of a request without a session.
pub(super) const NO_SESSION_EPOCH: i32 = -1;

/// What one answer brought.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    /// Whole batches, the last maybe cut; the first may begin before the offset asked for.
    pub records: Bytes,
    /// Where the batches are to be read instead.
    pub(crate) in_file: Option<LocalRun>,
    /// Producer id and first offset of aborted transactions.
    pub aborted: Vec<(i64, i64)>,
    /// First offset that is not yet visible to consumers of this isolation level.
    pub visible_end: i64,
}

/// Fetches one partition.
#[derive(Debug)]
pub struct Fetcher {
    cluster: Cluster,
    topic_partition: TopicPartition,
    position: i64,
    /// Largest answer in bytes.
    max_bytes: i64,
    source: Option<Source>,
    sources: Sources,
    /// Epoch of the last batch before `position`, -1 when none was read.
    read_epoch: i32,
    /// The leader's epoch for which `position` is known to be good.
    checked_epoch: i32,
    under_way: Option<Sent>,
    unknown_since: Option<Instant>,
    /// Whether the log is looked at as it is stored, whatever the settings' isolation level.
    as_stored: bool,
    /// How long the last answer took.
    took: Duration,
    local: LocalReads,
}

/// An answer's worth.
enum Answer {
    Records(Fetched),
    /// None of use, the next is asked for otherwise.
    Again,
    /// Another replica is closer.
    ReadFrom(i32),
}

impl Fetcher {
    /// Starts at offset `position`; sends nothing yet.
    pub fn new(cluster: Cluster, topic_partition: TopicPartition, position: i64) -> Self {
        Self {
            max_bytes: QUICK_FETCH_BYTES.min(cluster.settings().max_partition_fetch_bytes),
            cluster,
            topic_partition,
            position,
            source: None,
            sources: Sources::default(),
            read_epoch: -1,
            checked_epoch: -1,
            under_way: None,
            unknown_since: None,
            as_stored: false,
            took: Duration::ZERO,
            local: LocalReads::default(),
        }
    }

    /// The cluster, for other uses.
    pub fn into_cluster(mut self) -> Cluster {
        if let (Some(_), Some(source)) = (self.under_way, &self.source) {
            // An answer is still on its way there.
            self.cluster.drop_connection(&source.address);
        }
        self.cluster
    }

    /// To how many bytes the records of one batch may decompress.
    pub fn max_decompressed_bytes(&self) -> usize {
        usize::try_from(self.cluster.settings().decompressed_batch_max_bytes).unwrap_or(usize::MAX)
    }

    /// Waits for the next answer; it may be empty when nothing came within `fetch.max.wait.ms`.
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE`, `LOG_TRUNCATED`, `UNKNOWN_TOPIC_ID`, `UNKNOWN_TOPIC_OR_PARTITION`, `CORRUPT_BATCH`; `UNREACHABLE`,
    /// `TIMED_OUT` and the retriable errors of brokers after `default.api.timeout.ms`; `CLOSED` when stopped.
    pub fn fetch(&mut self) -> Result<Fetched> {
        let asked = Instant::now();
        let fetched = self.fetch_with_retries();
        self.took = asked.elapsed();
        fetched
    }

    fn fetch_with_retries(&mut self) -> Result<Fetched> {
        let what = format!("read partition {}", self.name());
        let limit = self.cluster.settings().api_timeout();
        let mut retry = Retry::new(what, limit, self.cluster.stop());
        loop {
            let error = match self.attempt() {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            self.forget_source();
            if !self.sources.has_hint() {
                retry.after(error, self.cluster.settings())?;
            }
        }
    }

    /// Says that everything before `position` is done, the last of it in a batch of `epoch`; the next fetch begins there.
    pub fn advance(&mut self, position: i64, epoch: Option<i32>) {
        self.position = position;
        self.read_epoch = epoch.unwrap_or(self.read_epoch);
    }

    /// Goes on with another partition, over the same connections.
    pub fn turn_to(&mut self, topic_partition: TopicPartition, position: i64) {
        let same = self.topic_partition.has_name_of(&topic_partition);
        // An answer under way is of the old position.
        if !same || self.under_way.is_some() {
            self.forget_source();
        }
        if !same {
            (self.topic_partition, self.unknown_since) = (topic_partition, None);
            (self.sources, self.checked_epoch) = (Sources::default(), -1);
        }
        (self.position, self.read_epoch) = (position, -1);
        self.local.begin_range();
    }

    /// Lets records come from the broker's files where this process sees them, and counts it there.
    pub fn allow_local_reads(&mut self, counters: Arc<LocalCounters>) {
        self.local.allow(counters);
    }

    /// Bytes of an answer's [`Fetched::in_file`] were read, the last of them in a batch of `epoch`.
    pub(crate) fn read_from_file(&mut self, bytes: usize, epoch: Option<i32>) {
        self.local.count(bytes);
        self.read_epoch = epoch.unwrap_or(self.read_epoch);
    }

    /// A file was doubtful: the rest of the range, from `position` on, comes by the wire.
    pub(crate) fn doubt(&mut self, doubt: Doubt, position: i64) {
        if self.under_way.is_some() {
            self.forget_source();
        }
        self.position = position;
        self.local.doubt(doubt);
    }

    /// The offset that the next fetch asks for.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The settings of its client.
    pub fn settings(&self) -> &Settings {
        self.cluster.settings()
    }

    /// How long the last [`Fetcher::fetch`] took.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Waits, or until the client is stopped.
    pub fn pause(&self, time: Duration) {
        self.cluster.stop().pause(time);
    }

    /// The first offset from the position on at which a batch is stored, whether its transaction is decided or not; `None` when
    /// the broker gives no batch.
    ///
    /// # Errors
    /// Those of [`Fetcher::fetch`].
    pub fn first_stored(&mut self) -> Result<Option<i64>> {
        if self.under_way.is_some() {
            self.forget_source();
        }
        self.as_stored = true;
        let fetched = self.fetch();
        self.as_stored = false;
        let stored = batches(&fetched?.records)
            .map_while(std::result::Result::ok)
            .map(|(header, _)| header)
            .find(|header| header.last_offset() >= self.position);
        Ok(stored.map(|header| header.base_offset.max(self.position)))
    }

    /// Lets answers be small at first, for a reader that may not want all.
    pub fn set_max_bytes(&mut self, bytes: i64) {
        self.max_bytes = bytes.min(self.cluster.settings().max_partition_fetch_bytes);
    }

    /// Lets answers be larger: up to 1 MiB, and up to the settings when the last one was waited for.
    pub fn grow_max_bytes(&mut self) {
        let most = self.cluster.settings().max_partition_fetch_bytes;
        self.max_bytes = grown(self.max_bytes, self.took, most);
    }

    /// Sends the next fetch without waiting for it. A failure shows at the next [`Fetcher::fetch`].
    pub fn ask(&mut self) {
        if self.under_way.is_none() && self.source.is_some() && self.send().is_err() {
            self.forget_source();
        }
    }

    /// How long a log may stay short of the end of a range.
    pub fn timeout(&self) -> Duration {
        self.cluster.settings().api_timeout()
    }

    /// The error of a log that shows nothing beyond `visible_end` until the time-out, though the range goes on to `end`.
    pub fn short(&self, visible_end: i64, end: i64) -> ClientError {
        let (name, seconds) = (self.name(), self.timeout().as_secs_f64());
        let message = match visible_end > self.position {
            true => format!(
                "partition {name} is visible up to offset {visible_end}, but its broker gave no batch from offset {} on for default.api.timeout.ms ({seconds} s), so it is not known whether records are missing there; look at the broker's log, or read from a later offset",
                self.position
            ),
            false => format!(
                "partition {name} is visible up to offset {visible_end} only, {end} was asked for; nothing came for default.api.timeout.ms ({seconds} s)"
            ),
        };
        ClientError::fatal(kind::TIMED_OUT, message)
    }

    /// `topic-partition`, for messages.
    pub fn name(&self) -> String {
        self.topic_partition.to_string()
    }

    fn forget_source(&mut self) {
        if let Some(source) = self.source.take() {
            // An answer may still be on its way there.
            if self.under_way.take().is_some() {
                self.cluster.drop_connection(&source.address);
            }
        }
    }

    fn attempt(&mut self) -> Result<Fetched> {
        loop {
            if self.under_way.is_none()
                && self.source.as_ref().is_some_and(|source| source.is_over(Instant::now()))
            {
                self.forget_source();
            }
            if self.source.is_none() {
                self.source = Some(self.find_leader()?);
            }
            if self.under_way.is_none() {
                self.send()?;
            }
            match self.receive() {
                Ok(Answer::Records(fetched)) => {
                    self.unknown_since = None;
                    return Ok(fetched);
                }
                Ok(Answer::Again) => {}
                Ok(Answer::ReadFrom(node)) => self.turn_to_replica(node)?,
                Err(error) => return Err(self.blamed(error)),
            }
        }
    }

    /// An error at a replica that is not the leader says nothing yet: the leader is asked.
    fn blamed(&mut self, error: ClientError) -> ClientError {
        if self.source.as_ref().is_none_or(Source::leads) {
            return error;
        }
        self.leave_replicas();
        ClientError { retriable: true, ..error }
    }

    fn leave_replicas(&mut self) {
        self.sources.failed(Instant::now(), millis(self.cluster.settings().retry_backoff_max_ms));
    }

    fn turn_to_replica(&mut self, node: i32) -> Result<()> {
        let until = Instant::now() + millis(self.cluster.settings().metadata_max_age_ms);
        let address = self.cluster.address(node).inspect_err(|_| self.leave_replicas())?;
        if let Some(source) = &mut self.source {
            *source = Source { node, address, until: Some(until), ..*source };
        }
        Ok(())
    }

    /// Finds the leader, which must have what was read.
    fn find_leader(&mut self) -> Result<Source> {
        let (node, leader_epoch) = match self.sources.take_hint() {
            Some(hint) => hint,
            None => self.ask_for_leader()?,
        };
        let address = self.cluster.address(node)?;
        let leader = Source { node, address, leader_epoch, until: None };
        if leader_epoch > self.checked_epoch && self.read_epoch >= 0 {
            truncation::check(
                &mut self.cluster,
                &self.topic_partition,
                &leader,
                self.read_epoch,
                self.position,
            )?;
        }
        self.checked_epoch = leader_epoch.max(self.checked_epoch);
        Ok(leader)
    }

    /// The leader's number and epoch, by metadata.
    fn ask_for_leader(&mut self) -> Result<(i32, i32)> {
        let topic = match self.cluster.topic(&self.topic_partition.topic, false) {
            Err(error) if error.kind == ErrorCode::UnknownTopicOrPartition.name() => {
                return Err(self.unknown(error));
            }
            other => other?,
        };
        if self.topic_partition.topic_id.is_nil() {
            self.topic_partition.topic_id = topic.topic_id;
        } else if !topic.topic_id.is_nil() && topic.topic_id != self.topic_partition.topic_id {
            return Err(self.recreated(topic.topic_id));
        }
        let wanted = self.topic_partition.partition;
        let Some(partition) = topic.partitions.iter().find(|partition| partition.partition_index == wanted)
        else {
            return Err(self.unknown(ClientError::fatal(
                ErrorCode::UnknownTopicOrPartition.name(),
                format!(
                    "topic {} has no partition {wanted}; it has {}",
                    self.topic_partition.topic,
                    topic.partitions.len()
                ),
            )));
        };
        if partition.leader_id < 0 {
            let message = format!("partition {} has no leader now", self.name());
            return Err(ClientError::retriable(ErrorCode::LeaderNotAvailable.name(), message));
        }
        Ok((partition.leader_id, partition.leader_epoch))
    }

    /// An unknown topic is worth another look for a moment, then the error is final.
    fn unknown(&mut self, error: ClientError) -> ClientError {
        let since = *self.unknown_since.get_or_insert_with(Instant::now);
        let several = self.cluster.has_several();
        let grace = if several { UNKNOWN_TOPIC_GRACE_SEVERAL } else { UNKNOWN_TOPIC_GRACE };
        ClientError { retriable: since.elapsed() < grace, ..error }
    }

    fn recreated(&self, now: Uuid) -> ClientError {
        let TopicPartition { topic, topic_id: wanted, .. } = &self.topic_partition;
        let (wanted, now) = (topic_id::text(*wanted), topic_id::text(now));
        ClientError::fatal(
            ErrorCode::UnknownTopicId.name(),
            format!(
                "topic {topic} was deleted and created again (its id was {wanted} and is now {now}): offsets of the old one mean nothing in the new one; start from a new checkpoint"
            ),
        )
    }

    fn send(&mut self) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        let says =
            if self.as_stored { local_reads::NO } else { self.local.may_say(source, &self.topic_partition) };
        let (request, address) = (self.request(source, says), source.address.clone());
        self.local.said(says);
        let connection = self.cluster.connection(&address)?;
        let mut version = connection.versions().pick::<FetchRequest>(connection.broker())?;
        if self.topic_partition.topic_id.is_nil() {
            version = version.min(TOPIC_ID_VERSION - 1);
        }
        match connection.send_as(&request, version) {
            Ok(sent) => self.under_way = Some(sent),
            Err(error) => {
                self.cluster.mark_failed(&address, &error);
                return Err(error);
            }
        }
        Ok(())
    }

    fn request(&self, source: &Source, says: i8) -> FetchRequest {
        let settings = self.cluster.settings();
        let isolation = if self.as_stored { Isolation::ReadUncommitted } else { settings.isolation_level };
        let bytes = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        // A long poll must end before the socket's time-out.
        let wait = settings.fetch_max_wait_ms.min(settings.request_timeout_ms / 2);
        let named = says == local_reads::SEES && !settings.is_given("max.partition.fetch.bytes");
        let partition = FetchPartition {
            partition: self.topic_partition.partition,
            fetch_offset: self.position,
            partition_max_bytes: bytes(if named && self.max_bytes >= QUICK_FETCH_BYTES {
                CHUNK_BYTES
            } else {
                self.max_bytes
            }),
            current_leader_epoch: source.leader_epoch,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            ..Default::default()
        };
        // Without a rack in the request a leader sends its own records.
        let rack = !source.leads() || self.sources.takes_recommendations(Instant::now());
        let topic = FetchTopic {
            topic: (*self.topic_partition.topic).into(),
            topic_id: self.topic_partition.topic_id,
            partitions: vec![partition],
        };
        FetchRequest {
            replica_id: -1,
            max_wait_ms: bytes(wait),
            min_bytes: bytes(settings.fetch_min_bytes),
            max_bytes: bytes(settings.fetch_max_bytes),
            isolation_level: isolation.code(),
            session_id: 0,
            session_epoch: NO_SESSION_EPOCH,
            topics: vec![topic],
            rack_id: if rack { settings.client_rack.clone() } else { String::new() },
            local_reads: says,
            ..Default::default()
        }
    }

    fn receive(&mut self) -> Result<Answer> {
        let (Some(source), Some(sent)) = (self.source.clone(), self.under_way.take()) else {
            return Err(ClientError::retriable(kind::UNREACHABLE, "no fetch under way"));
        };
        let address = &source.address;
        let answer = self.cluster.connection(address)?.receive::<FetchRequest>(sent);
        let mut answer = answer.inspect_err(|error| self.cluster.mark_failed(address, error))?;
        if answer.error_code != 0 {
            return Err(self.fetch_error(code(answer.error_code), &source));
        }
        let data = answer.responses.first_mut().and_then(|topic| topic.partitions.pop());
        let Some(data) = data else {
            let broker = format!("{}:{}", address.0, address.1);
            return Err(ClientError::protocol(&broker, format!("no answer about partition {}", self.name())));
        };
        match code(data.error_code) {
            ErrorCode::None if data.preferred_read_replica >= 0 && source.leads() => {
                Ok(Answer::ReadFrom(data.preferred_read_replica))
            }
            ErrorCode::None => Ok(self.fetched(data, &source, &answer.in_directory)),
            error => {
                self.cluster.distrust_metadata();
                self.take_hint(&answer, &data);
                Err(self.fetch_error(error, &source))
            }
        }
    }

    /// A broker that does not lead any more may say who does.
    fn take_hint(&mut self, answer: &FetchResponse, data: &PartitionData) {
        let (node, epoch) = (data.current_leader.leader_id, data.current_leader.leader_epoch);
        if node < 0 || self.topic_partition.topic_id.is_nil() {
            return;
        }
        let endpoint = answer.node_endpoints.iter().find(|endpoint| endpoint.node_id == node);
        let address =
            endpoint.and_then(|endpoint| Some((endpoint.host.clone(), u16::try_from(endpoint.port).ok()?)));
        let by_id = (self.topic_partition.topic_id, self.topic_partition.partition);
        if self.cluster.learn(by_id, (node, epoch), address) {
            self.sources.hint(node, epoch);
        }
    }

    fn fetched(&mut self, data: PartitionData, source: &Source, place: &InDirectory) -> Answer {
        let in_file = match self.local.take(source, &self.topic_partition, self.position, place) {
            Ok(in_file) => in_file,
            Err(doubt) => {
                self.local.doubt(doubt);
                return Answer::Again;
            }
        };
        let committed = self.cluster.settings().isolation_level == Isolation::ReadCommitted;
        let aborted = data.aborted_transactions.unwrap_or_default();
        Answer::Records(Fetched {
            in_file,
            records: data.records.unwrap_or_default(),
            aborted: aborted
                .into_iter()
                .map(|transaction| (transaction.producer_id, transaction.first_offset))
                .collect(),
            visible_end: if committed { data.last_stable_offset } else { data.high_watermark },
        })
    }

    fn fetch_error(&mut self, error: ErrorCode, source: &Source) -> ClientError {
        let name = self.name();
        match error {
            ErrorCode::OffsetOutOfRange if source.leads() => self.out_of_range(),
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId => {
                let message = format!(
                    "topic {} does not exist any more, or its id changed",
                    self.topic_partition.topic
                );
                self.unknown(ClientError::fatal(error.name(), message))
            }
            ErrorCode::CorruptMessage => ClientError::fatal(
                kind::CORRUPT_BATCH,
                format!(
                    "the broker found damaged records in partition {name} at or after offset {}",
                    self.position
                ),
            ),
            error => ClientError {
                kind: error.name(),
                message: format!("partition {name}: {}", error.sentence()),
                retriable: error.is_retriable(),
            },
        }
    }

    fn out_of_range(&mut self) -> ClientError {
        let topic_partition = self.topic_partition.clone();
        let query = OffsetQuery { topic_partition, timestamp: offsets::EARLIEST };
        let earliest = offsets::list_offsets(&mut self.cluster, &[query], Isolation::ReadUncommitted);
        let first = earliest.ok().and_then(|found| found.first().map(|first| first.offset));
        let first = first.map_or("unknown".to_owned(), |offset| offset.to_string());
        ClientError::fatal(
            ErrorCode::OffsetOutOfRange.name(),
            format!(
                "offset {} of partition {} is not in the log (its first offset is {first}): retention or a deletion removed it, or the log was truncated",
                self.position,
                self.name()
            ),
        )
    }
}

/// What the answer after one of at most `bytes`, which took so long, may have.
fn grown(bytes: i64, took: Duration, most: i64) -> i64 {
    let useful = if took < SLOW_ANSWER { QUICK_FETCH_BYTES.max(bytes) } else { most };
    bytes.saturating_mul(2).min(useful).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_grow_beyond_a_mebibyte_only_when_they_are_waited_for() {
        let (quick, slow, most) = (Duration::from_millis(1), Duration::from_millis(20), 4 << 20);
        for (bytes, took, expected) in [
            (64 << 10, quick, 128 << 10),
            (1 << 20, quick, 1 << 20),
            (1 << 20, slow, 2 << 20),
            (2 << 20, quick, 2 << 20),
            (4 << 20, slow, 4 << 20),
        ] {
            assert_eq!(grown(bytes, took, most), expected, "{bytes} {took:?}");
        }
        assert_eq!(grown(100, quick, 150), 150);
    }
}
