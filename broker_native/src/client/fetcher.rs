//! The records of one partition as byte runs, in order, from a given offset: follows the leader, retries, fetches ahead.
//!
//! At most one fetch is under way; [`Fetcher::ask`] sends it before the bytes of the last answer are decoded, so that the
//! broker and the network work meanwhile. Not for several threads.
use std::time::{Duration, Instant};

use bytes::Bytes;
use uuid::Uuid;

use super::cluster::{Address, Cluster};
use super::config::Isolation;
use super::connection::Sent;
use super::error::{ClientError, Result, code, kind};
use super::retry::Retry;
use super::topic_id;
use crate::wire::ErrorCode;
use crate::wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic, PartitionData};

/// How long a topic may be unknown to a broker before that is believed: metadata travels.
const UNKNOWN_TOPIC_GRACE: Duration = Duration::from_millis(1000);
/// The fetch version from which topics are named by id.
const TOPIC_ID_VERSION: i16 = 13;
/// Fetch session epoch of a request without a session.
const NO_SESSION_EPOCH: i32 = -1;

/// What one answer brought.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Whole batches, the last maybe cut; the first may begin before the offset asked for.
    pub records: Bytes,
    /// Producer id and first offset of aborted transactions.
    pub aborted: Vec<(i64, i64)>,
    /// First offset that is not yet visible to consumers of this isolation level.
    pub visible_end: i64,
}

/// Which partition of which topic.
#[derive(Debug, Clone)]
pub struct Target {
    /// Topic name.
    pub topic: String,
    /// The id the topic must have; nil takes the one it has at the first contact.
    pub topic_id: Uuid,
    /// Partition number.
    pub partition: i32,
}

/// Fetches one partition.
#[derive(Debug)]
pub struct Fetcher {
    cluster: Cluster,
    target: Target,
    position: i64,
    leader: Option<Address>,
    under_way: Option<Sent>,
    unknown_since: Option<Instant>,
}

impl Fetcher {
    /// Starts at offset `position`; sends nothing yet.
    pub fn new(cluster: Cluster, target: Target, position: i64) -> Self {
        Self { cluster, target, position, leader: None, under_way: None, unknown_since: None }
    }

    /// Waits for the next answer; it may be empty when nothing came within `fetch.max.wait.ms`.
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE`, `UNKNOWN_TOPIC_ID`, `UNKNOWN_TOPIC_OR_PARTITION`, `CORRUPT_BATCH`; `UNREACHABLE`,
    /// `TIMED_OUT` and the retriable errors of brokers after `default.api.timeout.ms`; `CLOSED` when stopped.
    pub fn fetch(&mut self) -> Result<Fetched> {
        let what = format!("read partition {}", self.name());
        let limit = self.cluster.settings().api_timeout();
        let mut retry = Retry::new(what, limit, self.cluster.stop());
        loop {
            let error = match self.attempt() {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            self.forget_leader();
            retry.after(error, self.cluster.settings())?;
        }
    }

    /// Says that everything before `position` is done; the next fetch begins there.
    pub fn advance(&mut self, position: i64) {
        self.position = position;
    }

    /// Sends the next fetch without waiting for it. A failure shows at the next [`Fetcher::fetch`].
    pub fn ask(&mut self) {
        if self.under_way.is_none() && self.leader.is_some() && self.send().is_err() {
            self.forget_leader();
        }
    }

    /// `topic-partition`, for messages.
    pub fn name(&self) -> String {
        format!("{}-{}", self.target.topic, self.target.partition)
    }

    fn forget_leader(&mut self) {
        if let Some(address) = self.leader.take() {
            // An answer may still be on its way there.
            if self.under_way.take().is_some() {
                self.cluster.drop_connection(&address);
            }
        }
    }

    fn attempt(&mut self) -> Result<Fetched> {
        if self.leader.is_none() {
            self.leader = Some(self.find_leader()?);
        }
        if self.under_way.is_none() {
            self.send()?;
        }
        let answer = self.receive()?;
        self.unknown_since = None;
        Ok(answer)
    }

    fn find_leader(&mut self) -> Result<Address> {
        let topic = match self.cluster.topic(&self.target.topic, false) {
            Err(error) if error.kind == ErrorCode::UnknownTopicOrPartition.name() => {
                return Err(self.unknown(error));
            }
            other => other?,
        };
        if self.target.topic_id.is_nil() {
            self.target.topic_id = topic.topic_id;
        } else if !topic.topic_id.is_nil() && topic.topic_id != self.target.topic_id {
            return Err(self.recreated(topic.topic_id));
        }
        let wanted = self.target.partition;
        let Some(partition) = topic.partitions.iter().find(|partition| partition.partition_index == wanted)
        else {
            return Err(self.unknown(ClientError::fatal(
                ErrorCode::UnknownTopicOrPartition.name(),
                format!(
                    "topic {} has no partition {wanted}; it has {}",
                    self.target.topic,
                    topic.partitions.len()
                ),
            )));
        };
        if partition.leader_id < 0 {
            let message = format!("partition {} has no leader now", self.name());
            return Err(ClientError::retriable(ErrorCode::LeaderNotAvailable.name(), message));
        }
        self.cluster.address(partition.leader_id)
    }

    /// An unknown topic is worth another look for a moment, then the error is final.
    fn unknown(&mut self, error: ClientError) -> ClientError {
        let since = *self.unknown_since.get_or_insert_with(Instant::now);
        ClientError { retriable: since.elapsed() < UNKNOWN_TOPIC_GRACE, ..error }
    }

    fn recreated(&self, now: Uuid) -> ClientError {
        let Target { topic, topic_id: wanted, .. } = &self.target;
        let (wanted, now) = (topic_id::text(*wanted), topic_id::text(now));
        ClientError::fatal(
            ErrorCode::UnknownTopicId.name(),
            format!(
                "topic {topic} was deleted and created again (its id was {wanted} and is now {now}): offsets of the old one mean nothing in the new one; start from a new checkpoint"
            ),
        )
    }

    fn send(&mut self) -> Result<()> {
        let Some(address) = self.leader.clone() else { return Ok(()) };
        let request = self.request();
        let connection = self.cluster.connection(&address)?;
        let mut version = connection.versions().pick::<FetchRequest>(connection.broker())?;
        if self.target.topic_id.is_nil() {
            version = version.min(TOPIC_ID_VERSION - 1);
        }
        match connection.send_as(&request, version) {
            Ok(sent) => self.under_way = Some(sent),
            Err(error) => {
                self.cluster.drop_connection(&address);
                return Err(error);
            }
        }
        Ok(())
    }

    fn request(&self) -> FetchRequest {
        let settings = self.cluster.settings();
        let bytes = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        // A long poll must end before the socket's time-out.
        let wait = settings.fetch_max_wait_ms.min(settings.request_timeout_ms / 2);
        let partition = FetchPartition {
            partition: self.target.partition,
            fetch_offset: self.position,
            partition_max_bytes: bytes(settings.max_partition_fetch_bytes),
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: self.target.topic.clone(),
            topic_id: self.target.topic_id,
            partitions: vec![partition],
        };
        FetchRequest {
            replica_id: -1,
            max_wait_ms: bytes(wait),
            min_bytes: bytes(settings.fetch_min_bytes),
            max_bytes: bytes(settings.fetch_max_bytes),
            isolation_level: settings.isolation_level.code(),
            session_id: 0,
            session_epoch: NO_SESSION_EPOCH,
            topics: vec![topic],
            ..Default::default()
        }
    }

    fn receive(&mut self) -> Result<Fetched> {
        let (Some(address), Some(sent)) = (self.leader.clone(), self.under_way.take()) else {
            return Err(ClientError::retriable(kind::UNREACHABLE, "no fetch under way"));
        };
        let answer = self.cluster.connection(&address)?.receive::<FetchRequest>(sent);
        let answer = answer.inspect_err(|_| self.cluster.drop_connection(&address))?;
        if answer.error_code != 0 {
            return Err(self.refused(code(answer.error_code)));
        }
        let data = answer.responses.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
        let Some(data) = data else {
            let broker = format!("{}:{}", address.0, address.1);
            return Err(ClientError::protocol(&broker, format!("no answer about partition {}", self.name())));
        };
        match code(data.error_code) {
            ErrorCode::None => Ok(self.fetched(data)),
            error => Err(self.refused(error)),
        }
    }

    fn fetched(&self, data: PartitionData) -> Fetched {
        let committed = self.cluster.settings().isolation_level == Isolation::ReadCommitted;
        let aborted = data.aborted_transactions.unwrap_or_default();
        Fetched {
            records: data.records.unwrap_or_default(),
            aborted: aborted.into_iter().map(|one| (one.producer_id, one.first_offset)).collect(),
            visible_end: if committed { data.last_stable_offset } else { data.high_watermark },
        }
    }

    fn refused(&mut self, error: ErrorCode) -> ClientError {
        let name = self.name();
        match error {
            ErrorCode::OffsetOutOfRange => self.out_of_range(),
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId => {
                let message =
                    format!("topic {} does not exist any more, or its id changed", self.target.topic);
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
        let wanted = [(self.target.topic.clone(), self.target.partition, super::offsets::EARLIEST)];
        let earliest = super::offsets::list_offsets(&mut self.cluster, &wanted, Isolation::ReadUncommitted);
        let first = earliest.ok().and_then(|found| found.first().map(|one| one.offset));
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
