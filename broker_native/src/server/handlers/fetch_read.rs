//! The reading half of Fetch: which partitions, up to how many bytes, and what is there now.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::fetch_answer::failed;
use super::lookup::led;
use crate::server::dispatch::Call;
use crate::server::errors::{is_ours, of_storage};
use crate::server::fetch_sessions::{Asked, Position, TopicKey};
use crate::server::notice::notice;
use crate::server::topics::{Partition, Picture, Topic};
use crate::server::watch::Watchers;
use crate::storage::{AbortedTxn, LogSlice, PartitionLog, ReadUpTo};
use crate::wire::ErrorCode;
use crate::wire::messages::FetchRequest;
use crate::wire::messages::fetch::{AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, PartitionData};

/// From this version on topics are named by id.
pub const TOPIC_IDS_FROM: i16 = 13;
/// From this version on a client that asks the wrong broker, or with an old epoch, is told the leader.
const LEADER_TOLD_FROM: i16 = 16;
const READ_COMMITTED: i8 = 1;

/// A fetch request, with the partitions looked up.
pub struct Wanted {
    /// The partitions, in the order in which they are served.
    pub asked: Vec<Asked>,
    /// For each, its log, or what the client is told instead.
    found: Vec<Result<Found, Box<PartitionData>>>,
    /// How long to wait for data.
    pub max_wait: Duration,
    min_bytes: usize,
    max_bytes: usize,
    committed: bool,
    /// What a client is told of a topic that is not there any more.
    unknown_topic: ErrorCode,
}

struct Found {
    partition: Arc<Partition>,
    log: Arc<PartitionLog>,
}

/// What is there.
pub struct Gathered {
    /// Answers in the order of the request; their records are in `slices`.
    pub partitions: Vec<PartitionData>,
    /// Records of each partition, where there are some.
    pub slices: Vec<Option<LogSlice>>,
    /// Bytes of all slices.
    pub bytes: usize,
    failed: bool,
}

impl Wanted {
    /// Looks the partitions up.
    pub fn of(call: &Call, request: &FetchRequest, asked: Vec<Asked>) -> Self {
        let picture = call.shared.topics.now();
        let by_id = call.version >= TOPIC_IDS_FROM;
        let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        let mut last: Option<(&TopicKey, Option<&Arc<Topic>>)> = None;
        let mut found = Vec::with_capacity(asked.len());
        for one in &asked {
            let topic = match last {
                Some((key, topic)) if *key == one.topic => topic,
                _ => named(&picture, &one.topic),
            };
            last = Some((&one.topic, topic));
            found.push(find(call, topic, one));
        }
        Self {
            found,
            asked,
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            min_bytes: size(request.min_bytes),
            max_bytes: size(request.max_bytes.min(call.shared.settings.fetch_max_bytes)),
            committed: request.isolation_level == READ_COMMITTED,
            unknown_topic: if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition },
        }
    }

    /// Who tells of new data.
    pub fn watchers(&self) -> Vec<Arc<Watchers>> {
        self.found.iter().flatten().map(|found| Arc::clone(&found.partition.watchers)).collect()
    }
}

fn named<'a>(picture: &'a Picture, key: &TopicKey) -> Option<&'a Arc<Topic>> {
    match key {
        TopicKey::Name(name) => picture.named(name),
        TopicKey::Id(id) => picture.with_id(id),
    }
}

fn find(call: &Call, topic: Option<&Arc<Topic>>, asked: &Asked) -> Result<Found, Box<PartitionData>> {
    let number = asked.position.partition;
    if topic.is_none() && matches!(asked.topic, TopicKey::Id(_)) {
        return Err(Box::new(failed(number, ErrorCode::UnknownTopicId)));
    }
    match led(&call.shared, topic, number, asked.position.leader_epoch) {
        Ok((partition, log)) => Ok(Found { partition: Arc::clone(partition), log: Arc::clone(log) }),
        Err(error) => {
            let current_leader = topic.and_then(|topic| topic.partition(number));
            let current_leader = current_leader.filter(|_| tells_leader(call, error));
            let current_leader = current_leader.map_or_else(Default::default, |partition| LeaderIdAndEpoch {
                leader_id: partition.spec.leader,
                leader_epoch: partition.spec.leader_epoch,
            });
            Err(Box::new(PartitionData { current_leader, ..failed(number, error) }))
        }
    }
}

/// Whether the client is told with `error` where to go instead.
fn tells_leader(call: &Call, error: ErrorCode) -> bool {
    call.version >= LEADER_TOLD_FROM
        && matches!(error, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch)
}

impl Gathered {
    /// Whether to answer now: there is enough, an error, no time to wait, or nothing to wait for.
    pub fn is_enough(&self, wanted: &Wanted) -> bool {
        self.failed
            || self.bytes >= wanted.min_bytes
            || wanted.max_wait.is_zero()
            || self.partitions.is_empty()
    }
}

/// Reads every partition's next batches, as far as the limits allow. The first batch found is given even when it alone
/// is larger than the limits, so that a consumer never stands still.
pub fn gather(wanted: &Wanted) -> Gathered {
    let count = wanted.asked.len();
    let (partitions, slices) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut gathered = Gathered { partitions, slices, bytes: 0, failed: false };
    for (asked, found) in wanted.asked.iter().zip(&wanted.found) {
        let position = &asked.position;
        let told = match found {
            // Removed while the fetch waited.
            Ok(found) if found.partition.watchers.is_gone() => {
                Err(Box::new(failed(position.partition, wanted.unknown_topic)))
            }
            Ok(found) => one(&found.log, position, wanted, gathered.bytes),
            Err(told) => Err(told.clone()),
        };
        let (data, slice) = match told {
            Ok((data, slice)) => (data, Some(slice).filter(|slice| slice.len > 0)),
            Err(data) => {
                gathered.failed = true;
                (*data, None)
            }
        };
        gathered.bytes += slice.as_ref().map_or(0, |slice| slice.len);
        gathered.partitions.push(data);
        gathered.slices.push(slice);
    }
    gathered
}

/// What is there of one partition when `used` bytes are there of others; `Err` is told at once.
fn one(
    log: &PartitionLog,
    position: &Position,
    wanted: &Wanted,
    used: usize,
) -> Result<(PartitionData, LogSlice), Box<PartitionData>> {
    if let Some(told) = departed(log, position) {
        return Err(Box::new(told));
    }
    match read(log, position, wanted, used) {
        Ok(slice) => Ok((answered(position, wanted, &slice), slice)),
        Err(error) => Err(Box::new(failed(position.partition, error))),
    }
}

/// Says so when the client's last record is not of the epoch that it believes (KIP-595).
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
    let offsets = log.offsets();
    Some(PartitionData {
        partition_index: position.partition,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable_offset,
        log_start_offset: offsets.log_start_offset,
        diverging_epoch: EpochEndOffset { epoch, end_offset },
        records: Some(Bytes::new()),
        ..Default::default()
    })
}

fn read(
    log: &PartitionLog,
    position: &Position,
    wanted: &Wanted,
    used: usize,
) -> Result<LogSlice, ErrorCode> {
    let upto = if wanted.committed { ReadUpTo::LastStable } else { ReadUpTo::HighWatermark };
    let own = usize::try_from(position.max_bytes).unwrap_or(0);
    let max_bytes = own.min(wanted.max_bytes.saturating_sub(used));
    log.read(position.offset, max_bytes, used == 0, upto).map_err(|error| {
        let code = of_storage(&error);
        if is_ours(code) {
            notice(&error.to_string());
        }
        code
    })
}

fn answered(position: &Position, wanted: &Wanted, slice: &LogSlice) -> PartitionData {
    PartitionData {
        partition_index: position.partition,
        high_watermark: slice.offsets.high_watermark,
        last_stable_offset: slice.offsets.last_stable_offset,
        log_start_offset: slice.offsets.log_start_offset,
        // Null tells a reader of uncommitted data that it does not matter.
        aborted_transactions: wanted.committed.then(|| slice.aborted.iter().map(aborted).collect()),
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn aborted(txn: &AbortedTxn) -> AbortedTransaction {
    AbortedTransaction { producer_id: txn.producer_id, first_offset: txn.first_offset }
}
