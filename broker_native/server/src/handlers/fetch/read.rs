//! The reading half of Fetch: which partitions, up to how many bytes, and what is there now.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::failed::failed;
use super::reader::FetchReader;
use crate::call::Call;
use crate::cluster::spec::PartitionSpec;
use crate::errors::of_storage_logged;
use crate::fetch_sessions::{AskedPartition, Position, TopicKey};
use crate::handlers::common::archived::{ArchivedBatches, Records};
use crate::state::archives::{AbortedBatches, NotKnown, Place};
use crate::state::topics::{MetadataImage, Partition, Topic};
use crate::state::watch::Watchers;
use pylog_storage::{AbortedTxn, LogSlice, PartitionLog};
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchRequest;
use pylog_wire::messages::fetch::{AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, PartitionData};

/// No client is asked to wait longer by itself.
const THROTTLE_MAX: Duration = Duration::from_secs(1);
/// From this version on topics are named by id.
pub const TOPIC_IDS_FROM: i16 = 13;
/// From this version on the answer names the current leader to a client that asks the wrong broker, or with an old epoch.
const LEADER_KNOWN_FROM: i16 = 16;

/// A fetch request, with the partitions looked up.
pub struct WantedPartitions {
    /// The partitions, in the order in which they are served.
    pub asked: Vec<AskedPartition>,
    /// For each, its log, or the answer about a partition that cannot be read.
    found: Vec<Result<Found, Box<PartitionData>>>,
    /// How long to wait for data.
    pub max_wait: Duration,
    /// How long the client is asked to wait by itself.
    pub throttle: Duration,
    /// Who sent the request.
    pub reader: FetchReader,
    /// What it says about the data directory, see `pylog_wire::messages::fetch::local_reads`.
    pub local_reads: i8,
    /// Versions of the image in which the partitions were looked up, and of the rights.
    version: (u64, u64),
    /// What was brought from the archive.
    pub brought: Option<Brought>,
    min_bytes: usize,
    max_bytes: usize,
}

struct Found {
    partition: Arc<Partition>,
    log: Arc<PartitionLog>,
}

/// What is there.
pub struct GatheredPartitions {
    /// Answers in the order of the request; their records are in `slices`.
    pub partitions: Vec<PartitionData>,
    /// Records of each partition, where there are some.
    pub records: Vec<Option<Records>>,
    /// Bytes of all of them.
    pub bytes: usize,
    /// The first partition whose records are in the archive, and were not brought from there.
    pub in_archive: Option<usize>,
    /// Something in it must be sent without waiting for more.
    is_urgent: bool,
}

/// What became of the question for the old records of one partition.
pub struct Brought {
    /// Its place in the request.
    pub index: usize,
    /// Its records; nothing yet where the archive took too long.
    pub found: Result<Option<ArchivedBatches>, ErrorCode>,
}

impl WantedPartitions {
    /// Looks the partitions up.
    pub fn of(call: &Call, request: &FetchRequest, asked: Vec<AskedPartition>, reader: FetchReader) -> Self {
        let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        let limit = match reader {
            FetchReader::Consumer { .. } => call.most_bytes_at_once(call.shared.settings.fetch_max_bytes),
            FetchReader::Replica { .. } => i32::MAX,
        };
        let (version, found) = look_up(call, &asked, &reader);
        Self {
            found,
            asked,
            reader,
            local_reads: request.local_reads,
            version,
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            throttle: Duration::ZERO,
            brought: None,
            min_bytes: size(request.min_bytes),
            max_bytes: size(request.max_bytes.min(limit)),
        }
    }

    /// The client is to wait by itself for what it wanted to wait for here.
    pub fn put_off(&mut self) {
        self.throttle = self.max_wait.min(THROTTLE_MAX);
    }

    /// Looks the partitions up once more when topics or rights have changed meanwhile; whether that was so.
    pub fn look_again(&mut self, call: &Call) -> bool {
        if (call.shared.topics.now().version(), call.rights_version()) == self.version {
            return false;
        }
        (self.version, self.found) = look_up(call, &self.asked, &self.reader);
        true
    }

    /// Notes how far a follower is.
    pub fn note(&self, call: &Call) {
        if !self.reader.is_replica() || !call.shared.cluster.may_lead() {
            return;
        }
        for (asked, found) in self.asked.iter().zip(&self.found) {
            let Ok(found) = found else { continue };
            if departed(&found.log, &asked.position).is_none() {
                self.reader.note(found.partition.leader_state.as_ref(), &found.log, &asked.position);
            }
        }
    }

    /// Which partition the one at `index` is, and from which offset on how many bytes of it are wanted.
    pub fn place(&self, index: usize) -> Option<(Place, i64, usize)> {
        let Ok(Found { partition, log }) = self.found.get(index)? else { return None };
        let position = &self.asked.get(index)?.position;
        let at = Place {
            topic: log.topic_partition().topic.to_string(),
            topic_id: log.topic_id(),
            partition: partition.spec.partition,
        };
        Some((at, position.offset, Limits::of(position, self, 0).max_bytes))
    }

    /// Woken by new data.
    pub fn watchers(&self) -> Vec<Arc<Watchers>> {
        let of = |found: &Found| match self.reader {
            FetchReader::Consumer { .. } => Arc::clone(&found.partition.watchers),
            FetchReader::Replica { .. } => Arc::clone(&found.partition.appended),
        };
        self.found.iter().flatten().map(of).collect()
    }
}

type LookedUp = Vec<Result<Found, Box<PartitionData>>>;

/// The versions of the image and of the rights, and the partitions that are found by them.
fn look_up(call: &Call, asked: &[AskedPartition], reader: &FetchReader) -> ((u64, u64), LookedUp) {
    let rights_version = call.rights_version();
    let image = call.shared.topics.now();
    let mut last: Option<(&TopicKey, Asked)> = None;
    let mut found = Vec::with_capacity(asked.len());
    for partition in asked {
        let topic = match last {
            Some((key, topic)) if *key == partition.topic => topic,
            _ => named(call, &image, &partition.topic, reader),
        };
        last = Some((&partition.topic, topic));
        found.push(find(call, topic, partition, reader));
    }
    ((image.version(), rights_version), found)
}

/// The topic, where there is one; an error where it may not be read.
type Asked<'a> = Result<Option<&'a Arc<Topic>>, ErrorCode>;

fn named<'a>(call: &Call, image: &'a MetadataImage, key: &TopicKey, reader: &FetchReader) -> Asked<'a> {
    let (topic, name) = match key {
        TopicKey::Name(name) => (image.named(name), Some(name.as_ref())),
        TopicKey::Id(id) => {
            let topic = image.with_id(id);
            (topic, topic.map(|topic| topic.name.as_str()))
        }
    };
    name.map_or(Ok(()), |name| reader.check(call, name))?;
    Ok(topic)
}

fn find(
    call: &Call,
    topic: Asked,
    asked: &AskedPartition,
    reader: &FetchReader,
) -> Result<Found, Box<PartitionData>> {
    let number = asked.position.partition;
    let topic = topic.map_err(|error| Box::new(failed(number, error)))?;
    if topic.is_none() && matches!(asked.topic, TopicKey::Id(_)) {
        return Err(Box::new(failed(number, ErrorCode::UnknownTopicId)));
    }
    match reader.find(call, topic, &asked.position) {
        Ok((partition, log)) => Ok(Found { partition: Arc::clone(partition), log: Arc::clone(log) }),
        Err(error) => {
            let partition = topic.and_then(|topic| topic.partition(number));
            Err(Box::new(not_here(call, number, partition.map(|partition| &partition.spec), error)))
        }
    }
}

/// The answer about a partition that this broker cannot serve; it names the leader where that is known.
fn not_here(call: &Call, number: i32, spec: Option<&PartitionSpec>, error: ErrorCode) -> PartitionData {
    // A broker that may not lead now knows of nobody else.
    let is_own = |spec: &PartitionSpec| spec.leader == call.shared.settings.node_id;
    let known = spec.filter(|_| names_leader(call, error));
    let known = known.filter(|spec| error != ErrorCode::NotLeaderOrFollower || !is_own(spec));
    let current_leader = known.map_or_else(Default::default, |spec| LeaderIdAndEpoch {
        leader_id: spec.leader,
        leader_epoch: spec.leader_epoch,
    });
    PartitionData { current_leader, ..failed(number, error) }
}

/// Whether the answer with `error` names the leader.
fn names_leader(call: &Call, error: ErrorCode) -> bool {
    call.version >= LEADER_KNOWN_FROM
        && matches!(error, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch)
}

impl GatheredPartitions {
    /// Whether to answer now: there is enough data, something urgent, no time left to wait, or nothing to wait for.
    pub fn is_enough(&self, wanted: &WantedPartitions) -> bool {
        self.is_urgent
            || self.bytes >= wanted.min_bytes
            || wanted.max_wait.is_zero()
            || self.partitions.is_empty()
    }
}

/// Reads every partition's next batches, as far as the limits allow. The first batch found is given even when it alone
/// is larger than the limits, so that a consumer never stands still.
pub fn gather(call: &Call, wanted: &WantedPartitions) -> GatheredPartitions {
    let count = wanted.asked.len();
    let (partitions, records) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut gathered =
        GatheredPartitions { partitions, records, bytes: 0, in_archive: None, is_urgent: false };
    let (may_lead, node_id) = (call.shared.cluster.may_lead(), call.shared.settings.node_id);
    for (index, (asked, found)) in wanted.asked.iter().zip(&wanted.found).enumerate() {
        let position = &asked.position;
        let read = match found {
            Ok(Found { partition, .. }) if !may_lead && partition.spec.leader == node_id => {
                let error = ErrorCode::NotLeaderOrFollower;
                Err(Unread::Failed(Box::new(not_here(
                    call,
                    position.partition,
                    Some(&partition.spec),
                    error,
                ))))
            }
            Ok(found) => match wanted.brought.as_ref().filter(|brought| brought.index == index) {
                Some(brought) => take(&found.log, position, &wanted.reader, brought),
                None => read_partition(call, found, position, wanted, gathered.bytes),
            },
            Err(answer) => Err(Unread::Failed(answer.clone())),
        };
        let (data, records) = match read {
            Ok((data, records)) => (data, Some(records).filter(|records| records.len() > 0)),
            Err(Unread::Failed(data)) => {
                gathered.is_urgent = true;
                (*data, None)
            }
            Err(Unread::InArchive(data)) => {
                gathered.in_archive.get_or_insert(index);
                (*data, None)
            }
        };
        gathered.bytes += records.as_ref().map_or(0, Records::len);
        gathered.partitions.push(data);
        gathered.records.push(records);
    }
    gathered
}

/// Why there are no records of a partition.
pub enum Unread {
    /// This is sent without waiting.
    Failed(Box<PartitionData>),
    /// They are in the archive; this says where the log is.
    InArchive(Box<PartitionData>),
}

/// Reads one partition, when `used` bytes of others were read before.
fn read_partition(
    call: &Call,
    found: &Found,
    position: &Position,
    wanted: &WantedPartitions,
    used: usize,
) -> Result<(PartitionData, Records), Unread> {
    let Found { partition, log } = found;
    let failed_with = |data| Unread::Failed(Box::new(data));
    if let Some(diverged) = departed(log, position) {
        return Err(failed_with(diverged));
    }
    if let Some(better) = wanted.reader.better(call, partition.leader_state.as_ref(), position.offset) {
        let blank = whereabouts(log, position);
        return Err(failed_with(PartitionData { preferred_read_replica: better, ..blank }));
    }
    let throttle = &call.shared.replication.throttle;
    let is_throttled = wanted.reader.is_throttled(call, partition, log);
    let mut limits = Limits::of(position, wanted, used);
    if is_throttled && throttle.is_exceeded() {
        limits = Limits { max_bytes: 0, min_one_batch: false };
    }
    match read(log, position, wanted, limits) {
        Ok(slice) => {
            if is_throttled {
                throttle.record(slice.len);
            }
            Ok((answered(position, wanted, &slice), Records::File(slice)))
        }
        Err(ErrorCode::OffsetOutOfRange) => match is_archived(call, found, position, wanted) {
            Ok(true) => Err(Unread::InArchive(Box::new(whereabouts(log, position)))),
            Ok(false) => Err(failed_with(failed(position.partition, ErrorCode::OffsetOutOfRange))),
            Err(NotKnown) => Err(failed_with(failed(position.partition, ErrorCode::KafkaStorageError))),
        },
        Err(error) => Err(failed_with(failed(position.partition, error))),
    }
}

/// Whether a client that may not read here wants what is in the archive.
fn is_archived(
    call: &Call,
    found: &Found,
    position: &Position,
    wanted: &WantedPartitions,
) -> Result<bool, NotKnown> {
    let (Found { partition, log }, spec) = (found, &found.partition.spec);
    let is_old = position.offset < log.offsets().log_start_offset && log.config().remote_storage_enable;
    if !is_old || wanted.reader.is_replica() || spec.leader != call.shared.settings.node_id {
        return Ok(false);
    }
    let archives = &call.shared.archives;
    let Some(archived) = archives.of(log.topic_id(), partition.spec.partition, spec.leader_epoch) else {
        archives.miss();
        return Err(NotKnown);
    };
    Ok((archived.start..archived.end).contains(&position.offset))
}

/// The answer about a partition whose records were asked for in the archive.
fn take(
    log: &PartitionLog,
    position: &Position,
    reader: &FetchReader,
    brought: &Brought,
) -> Result<(PartitionData, Records), Unread> {
    let failed_with = |data| Unread::Failed(Box::new(data));
    let found = brought.found.as_ref();
    let found = found.map_err(|error| failed_with(failed(position.partition, *error)))?;
    let blank = whereabouts(log, position);
    let Some(ArchivedBatches { data, aborted }) = found else { return Err(failed_with(blank)) };
    let of =
        |&(producer_id, first_offset, _): &AbortedBatches| AbortedTransaction { producer_id, first_offset };
    let aborted_transactions = reader.is_committed().then(|| aborted.iter().map(of).collect());
    Ok((PartitionData { aborted_transactions, ..blank }, Records::Memory(data.clone())))
}

/// How much may be read of one partition.
#[derive(Clone, Copy)]
struct Limits {
    max_bytes: usize,
    min_one_batch: bool,
}

impl Limits {
    fn of(position: &Position, wanted: &WantedPartitions, used: usize) -> Self {
        let own = usize::try_from(position.max_bytes).unwrap_or(0);
        Self { max_bytes: own.min(wanted.max_bytes.saturating_sub(used)), min_one_batch: used == 0 }
    }
}

/// The answer for a client whose log has diverged: its last record is not of the epoch that it names (KIP-595).
fn departed(log: &PartitionLog, position: &Position) -> Option<PartitionData> {
    if position.last_fetched_epoch < 0 {
        return None;
    }
    let (epoch, end_offset) = match log.epoch_end_offset(position.last_fetched_epoch) {
        Some(known) => known,
        None => return Some(failed(position.partition, ErrorCode::OffsetOutOfRange)),
    };
    if epoch >= position.last_fetched_epoch && end_offset >= position.offset {
        return None;
    }
    let blank = whereabouts(log, position);
    Some(PartitionData { diverging_epoch: EpochEndOffset { epoch, end_offset }, ..blank })
}

/// The log's offsets, without records.
fn whereabouts(log: &PartitionLog, position: &Position) -> PartitionData {
    let offsets = log.offsets();
    PartitionData {
        partition_index: position.partition,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable_offset,
        log_start_offset: offsets.log_start_offset,
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn read(
    log: &PartitionLog,
    position: &Position,
    wanted: &WantedPartitions,
    limits: Limits,
) -> Result<LogSlice, ErrorCode> {
    let read = log.read(position.offset, limits.max_bytes, limits.min_one_batch, wanted.reader.upto());
    read.map_err(|error| of_storage_logged(&error))
}

fn answered(position: &Position, wanted: &WantedPartitions, slice: &LogSlice) -> PartitionData {
    PartitionData {
        partition_index: position.partition,
        high_watermark: slice.offsets.high_watermark,
        last_stable_offset: slice.offsets.last_stable_offset,
        log_start_offset: slice.offsets.log_start_offset,
        // As in Kafka: null for readers of uncommitted data, which ignore it.
        aborted_transactions: wanted
            .reader
            .is_committed()
            .then(|| slice.aborted.iter().map(aborted).collect()),
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn aborted(txn: &AbortedTxn) -> AbortedTransaction {
    AbortedTransaction { producer_id: txn.producer_id, first_offset: txn.first_offset }
}
