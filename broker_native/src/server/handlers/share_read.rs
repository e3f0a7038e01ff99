//! The reading half of ShareFetch: from where on, which batches, and which of their records the member gets.
use std::sync::Arc;

use super::lookup::led;
use super::share_call::ask;
use crate::coordinator::group::{Group, Kind};
use crate::coordinator::share::requests::LogRange;
use crate::coordinator::share::{
    Acquired, Batch, GroupSettings, IsolationLevel, OffsetReset, ShareKey, ShareReply, ShareRequest,
};
use crate::record::header::BatchHeader;
use crate::server::dispatch::Call;
use crate::server::errors::{is_ours, of_storage};
use crate::server::notice::notice;
use crate::server::share_groups::sessions::{SessionKey, TopicPartition};
use crate::server::watch::Watchers;
use crate::storage::{LogSlice, PartitionLog, ReadUpTo, StorageError};
use crate::wire::ErrorCode;
use crate::wire::messages::share_fetch::{AcquiredRecords, LeaderIdAndEpoch, PartitionData};

/// A partition is looked at so often in one request: where it has nothing for members, the next look is behind that.
const LOOKS_MAX: usize = 64;
/// Stands for "nobody".
const NOBODY: LeaderIdAndEpoch = LeaderIdAndEpoch { leader_id: -1, leader_epoch: -1 };

/// What a member wants to read.
pub struct Wanted {
    /// Who.
    pub session: SessionKey,
    /// Where, in the order in which they are served.
    pub partitions: Vec<TopicPartition>,
    /// So many records, and what is in the same batch as the last of them.
    pub max_records: i64,
    /// None more than that.
    pub exact: bool,
    /// At most so many bytes, but for the first batch.
    pub max_bytes: usize,
    /// Of its group.
    pub settings: GroupSettings,
}

/// What a partition has for the member.
pub struct Found {
    /// Where.
    pub at: TopicPartition,
    /// The records that were acquired, or an error.
    pub data: PartitionData,
    /// The batches that they are in.
    pub slice: Option<LogSlice>,
}

impl Wanted {
    /// Who tells of new records.
    pub fn watchers(&self, call: &Call) -> Vec<Arc<Watchers>> {
        let picture = call.shared.topics.now();
        let of = |(topic_id, number): &TopicPartition| {
            picture.with_id(topic_id)?.partition(*number).map(|partition| Arc::clone(&partition.watchers))
        };
        self.partitions.iter().filter_map(of).collect()
    }
}

/// What may still be given.
struct Left {
    records: i64,
    bytes: usize,
    /// The first batch is given whatever its size.
    is_first: bool,
}

/// Acquires records of one partition after the other, as far as the limits allow.
pub async fn gather(call: &Call, wanted: &Wanted) -> Vec<Found> {
    let mut left = Left { records: wanted.max_records, bytes: wanted.max_bytes, is_first: true };
    let mut found = Vec::new();
    for at in &wanted.partitions {
        if left.records <= 0 || (left.bytes == 0 && !left.is_first) {
            break;
        }
        match one(call, wanted, *at, &mut left).await {
            Ok(None) => {}
            Ok(Some((acquired, slice))) => {
                found.push(Found { at: *at, data: told(*at, &acquired), slice: Some(slice) })
            }
            Err(error) => found.push(Found { at: *at, data: failed(*at, error), slice: None }),
        }
    }
    found
}

/// Looks at one partition until there is something or nothing comes next.
async fn one(
    call: &Call,
    wanted: &Wanted,
    (topic_id, partition): TopicPartition,
    left: &mut Left,
) -> Result<Option<(Vec<Acquired>, LogSlice)>, ErrorCode> {
    let log = {
        let picture = call.shared.topics.now();
        let topic = picture.with_id(&topic_id).ok_or(ErrorCode::UnknownTopicId)?;
        Arc::clone(led(&call.shared, Some(topic), partition, /* unknown */ -1)?.1)
    };
    let key = ShareKey { group_id: wanted.session.group_id.clone(), topic_id, partition };
    let mut before = None;
    for _ in 0..LOOKS_MAX {
        let Some(from) = next(call, wanted, &key, &log).await? else { return Ok(None) };
        if before.replace(from) == Some(from) {
            return Ok(None);
        }
        let Some(slice) = read(&log, from, left, wanted.settings.isolation)? else { return Ok(None) };
        let headers = slice.headers().map_err(|_cause| ErrorCode::KafkaStorageError)?;
        let request = ShareRequest::Acquire {
            member_id: wanted.session.member_id.clone(),
            from,
            batches: headers.iter().map(|header| batch(header, &slice)).collect(),
            max_records: left.records,
            exact: wanted.exact,
        };
        let acquired = match ask(&call.shared, key.clone(), request).await {
            Ok(ShareReply::Acquired(acquired)) => acquired,
            other => return quiet(other),
        };
        if let (Some(first), Some(last)) = (acquired.first(), acquired.last()) {
            let slice = around(slice, &headers, first.first_offset, last.last_offset);
            left.records -= acquired.iter().map(|run| run.last_offset - run.first_offset + 1).sum::<i64>();
            left.bytes = left.bytes.saturating_sub(slice.len);
            left.is_first = false;
            return Ok(Some((acquired, slice)));
        }
    }
    Ok(None)
}

/// From where on is to be read. A share partition that is not there is made for a member of the group.
async fn next(
    call: &Call,
    wanted: &Wanted,
    key: &ShareKey,
    log: &Arc<PartitionLog>,
) -> Result<Option<i64>, ErrorCode> {
    let offsets = log.offsets();
    let range = LogRange { start: offsets.log_start_offset, end: offsets.log_end_offset };
    let asked = |begin| ask(&call.shared, key.clone(), ShareRequest::Next { log: range, begin });
    let answer = match asked(None).await {
        Ok(ShareReply::Next(Err(ErrorCode::UnknownTopicOrPartition))) if is_member(call, &wanted.session) => {
            let begin = begin(log, wanted.settings.reset, call.shared.clock.now_ms())?;
            asked(Some(begin)).await
        }
        other => other,
    };
    match answer {
        Ok(ShareReply::Next(Err(ErrorCode::GroupMaxSizeReached))) => {
            notice("a share group has no room for another partition: group.coordinator.max.bytes are in use");
            Err(ErrorCode::UnknownServerError)
        }
        Ok(ShareReply::Next(next)) => next,
        other => quiet(other),
    }
}

/// A coordinator that is not there yet has nothing yet.
fn quiet<T>(answer: Result<ShareReply, ErrorCode>) -> Result<Option<T>, ErrorCode> {
    match answer {
        Err(
            ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator,
        ) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorCode::UnknownServerError),
    }
}

/// Whether the group knows the member.
fn is_member(call: &Call, session: &SessionKey) -> bool {
    let knows = |group: &Group| match &group.kind {
        Kind::Share(group) => group.members.contains_key(&session.member_id),
        _ => false,
    };
    let groups = &call.shared.coordinators.groups;
    let shard = groups.partition_of(&session.group_id).and_then(|number| groups.shard(number));
    let looked = shard.map(|shard| shard.look(|machine| machine.group(&session.group_id).is_some_and(knows)));
    looked.and_then(Result::ok).unwrap_or(false)
}

/// Where a share partition begins that is made.
fn begin(log: &PartitionLog, reset: OffsetReset, now_ms: i64) -> Result<i64, ErrorCode> {
    let offsets = log.offsets();
    match reset {
        OffsetReset::Earliest => Ok(offsets.log_start_offset),
        OffsetReset::Latest => Ok(offsets.high_watermark),
        OffsetReset::ByDuration(ms) => {
            let found =
                log.offset_for_timestamp(now_ms.saturating_sub(ms)).map_err(|error| code_of(&error))?;
            Ok(found.map_or(offsets.high_watermark, |(offset, _)| offset))
        }
    }
}

/// The next batches; `None` when there are none.
fn read(
    log: &PartitionLog,
    from: i64,
    left: &Left,
    isolation: IsolationLevel,
) -> Result<Option<LogSlice>, ErrorCode> {
    let upto = match isolation {
        IsolationLevel::ReadUncommitted => ReadUpTo::HighWatermark,
        IsolationLevel::ReadCommitted => ReadUpTo::LastStable,
    };
    match log.read(from, left.bytes, left.is_first, upto) {
        Ok(slice) => Ok(Some(slice).filter(|slice| slice.len > 0)),
        // Retention was faster than this look; the next one knows.
        Err(StorageError::OffsetOutOfRange { .. }) => Ok(None),
        Err(error) => Err(code_of(&error)),
    }
}

fn code_of(error: &StorageError) -> ErrorCode {
    let code = of_storage(error);
    if is_ours(code) {
        notice(&error.to_string());
    }
    code
}

/// A batch without records for members: markers, and what was aborted.
fn batch(header: &BatchHeader, slice: &LogSlice) -> Batch {
    let of_transaction = |producer_id, first: i64, last: i64| {
        producer_id == header.producer_id && (first..=last).contains(&header.base_offset)
    };
    let mut aborted = slice.aborted.iter();
    let is_aborted = header.is_transactional()
        && aborted.any(|txn| of_transaction(txn.producer_id, txn.first_offset, txn.last_offset));
    Batch {
        first_offset: header.base_offset,
        last_offset: header.last_offset(),
        is_void: header.is_control() || is_aborted,
    }
}

/// The batches of `slice` that have the records `first..=last`.
fn around(mut slice: LogSlice, headers: &[BatchHeader], first: i64, last: i64) -> LogSlice {
    let before = bytes_of(headers.iter().take_while(|header| header.last_offset() < first));
    let upto = bytes_of(headers.iter().take_while(|header| header.base_offset <= last));
    slice.position += before as u64;
    slice.len = upto.saturating_sub(before).min(slice.len);
    slice
}

fn bytes_of<'a>(headers: impl Iterator<Item = &'a BatchHeader>) -> usize {
    headers.map(BatchHeader::size).sum()
}

fn told((_, partition_index): TopicPartition, acquired: &[Acquired]) -> PartitionData {
    let runs = acquired.iter().map(|run| AcquiredRecords {
        first_offset: run.first_offset,
        last_offset: run.last_offset,
        delivery_count: run.delivery_count,
    });
    PartitionData { partition_index, acquired_records: runs.collect(), ..Default::default() }
}

fn failed((_, partition_index): TopicPartition, error: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        current_leader: NOBODY,
        ..Default::default()
    }
}
