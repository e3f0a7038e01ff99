//! The reading half of ShareFetch: from where on, which batches, and which of their records the member gets.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::call::Call;
use crate::errors::of_storage_logged;
use crate::handlers::common::archived::{ArchivedBatches, Records, bring};
use crate::handlers::common::lookup::led;
use crate::handlers::common::share_call::ask;
use crate::share_groups::sessions::{SessionPartitions, ShareSessionKey, TopicIdPartition};
use crate::state::archives::{AbortedBatches, Answered, Place, Wanted};
use crate::state::topics::{Partition, Topic};
use crate::state::watch::Watchers;
use pylog_coordinator::group::{Group, GroupKind};
use pylog_coordinator::share::requests::LogRange;
use pylog_coordinator::share::{
    Acquired, GroupSettings, IsolationLevel, LogBatch, OffsetReset, ShareKey, ShareReply, ShareRequest,
};
use pylog_log::loggers::{COORDINATOR, STORAGE};
use pylog_log::warn;
use pylog_record::batches::batches as bytes_into_batches;
use pylog_record::header::BatchHeader;
use pylog_storage::{PartitionLog, ReadUpTo, StorageError};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ShareGroupDescribeRequest;
use pylog_wire::messages::share_fetch::{AcquiredRecords, PartitionData};

/// How often one request looks at a partition: where a look finds nothing for members, the next one begins behind it.
const LOOKS_MAX: usize = 64;
/// Most batches that one look covers: their headers are read, and stay in memory meanwhile.
const BATCHES_MAX: usize = 1_000;
/// How often one request asks the archive: what it has does not come at once.
const ARCHIVED_LOOKS_MAX: usize = 4;
/// Most partitions in one answer; the next request begins with another one.
pub const ANSWERED_MAX: usize = 1_000;
/// How long a request waits for states that are not read yet.
const STATES_TIMEOUT: Duration = Duration::from_millis(100);
/// How many partitions are handled before other requests get a turn.
const AT_ONCE: usize = 100;

/// What a member wants to read.
pub struct WantedRecords {
    /// Who.
    pub session: ShareSessionKey,
    /// Where, in the order in which they are served.
    pub partitions: SessionPartitions,
    /// The version of the rights by which it may read there.
    pub rights_version: u64,
    /// Most records, and those in the same batch as the last of them.
    pub max_records: i64,
    /// Whether no record more than `max_records` is given, even of the same batch.
    pub exact: bool,
    /// Most bytes, except that the first batch is always given.
    pub max_bytes: usize,
    /// Of its group.
    pub settings: GroupSettings,
}

/// What a partition has for the member.
pub struct FoundRecords {
    /// Where.
    pub topic_partition: TopicIdPartition,
    /// The records that were acquired, or an error.
    pub data: PartitionData,
    /// The batches that they are in.
    pub records: Option<Records>,
}

impl FoundRecords {
    /// An error.
    pub fn failed(topic_partition: TopicIdPartition, error: ErrorCode) -> Self {
        let data = PartitionData {
            partition_index: topic_partition.1,
            error_code: error.code(),
            error_message: Some(error.sentence().to_owned()),
            ..Default::default()
        };
        Self { topic_partition, data, records: None }
    }
}

impl WantedRecords {
    /// Woken by new records.
    pub fn watchers(&self, call: &Call) -> Vec<Arc<Watchers>> {
        let image = call.shared.topics.now();
        let of = |(topic_id, number): &TopicIdPartition| {
            image.with_id(topic_id)?.partition(*number).map(|partition| Arc::clone(&partition.watchers))
        };
        self.partitions.iter().filter_map(of).collect()
    }
}

/// How much the answer may still take.
struct Left {
    records: i64,
    bytes: usize,
    /// The first batch is given whatever its size.
    is_first: bool,
    /// Until when states are waited for.
    until: Instant,
    /// How often the archive may be asked.
    archived: usize,
}

/// Batches that are there to be acquired.
struct Batches {
    headers: Vec<BatchHeader>,
    /// Aborted transactions among them.
    aborted: Vec<AbortedBatches>,
    records: Records,
}

/// A partition that this broker leads.
struct Led {
    topic: Arc<Topic>,
    partition: Arc<Partition>,
    log: Arc<PartitionLog>,
}

/// Acquires records of one partition after the other, as far as the limits allow.
pub async fn gather(call: &Call, wanted: &WantedRecords) -> Vec<FoundRecords> {
    let until = Instant::now() + STATES_TIMEOUT;
    let mut left = Left {
        records: wanted.max_records,
        bytes: wanted.max_bytes,
        is_first: true,
        until,
        archived: ARCHIVED_LOOKS_MAX,
    };
    let mut found = Vec::new();
    for (looks, topic_partition) in wanted.partitions.iter().enumerate() {
        let is_full = left.records <= 0 || (left.bytes == 0 && !left.is_first);
        if is_full || found.len() >= ANSWERED_MAX {
            break;
        }
        if looks % AT_ONCE == AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        match acquire(call, wanted, *topic_partition, &mut left).await {
            Ok(None) => {}
            Ok(Some((acquired, records))) => found.push(FoundRecords {
                topic_partition: *topic_partition,
                data: data_of(*topic_partition, &acquired),
                records: Some(records),
            }),
            Err(error) => found.push(FoundRecords::failed(*topic_partition, error)),
        }
    }
    found
}

/// Looks at one partition until there is something or nothing comes next.
async fn acquire(
    call: &Call,
    wanted: &WantedRecords,
    (topic_id, partition): TopicIdPartition,
    left: &mut Left,
) -> Result<Option<(Vec<Acquired>, Records)>, ErrorCode> {
    let at = {
        let image = call.shared.topics.now();
        let topic = image.with_id(&topic_id).ok_or(ErrorCode::UnknownTopicId)?;
        let (partition, log) = led(&call.shared, Some(topic), partition, /* unknown */ -1)?;
        Led { topic: Arc::clone(topic), partition: Arc::clone(partition), log: Arc::clone(log) }
    };
    let key = ShareKey { group_id: wanted.session.group_id.clone(), topic_id, partition };
    let mut before = None;
    for _ in 0..LOOKS_MAX {
        let Some(from) = next(call, wanted, &key, &at, left.until).await? else { return Ok(None) };
        if before.replace(from) == Some(from) {
            return Ok(None);
        }
        let found = match from < at.log.offsets().log_start_offset {
            true => bring_batches(call, &at, from, left, wanted.settings.isolation).await?,
            false => read(&at.log, from, left, wanted.settings.isolation)?,
        };
        let Some(Batches { headers, aborted, records }) = found else { return Ok(None) };
        let request = ShareRequest::Acquire {
            member_id: wanted.session.member_id.clone(),
            from,
            batches: batches(&headers, &aborted),
            max_records: left.records,
            exact: wanted.exact,
        };
        let acquired = match ask(&call.shared, key.clone(), request).await {
            Ok(ShareReply::Acquired(acquired)) => acquired,
            other => return quiet(other),
        };
        if let (Some(first), Some(last)) = (acquired.first(), acquired.last()) {
            let records = around(records, &headers, first.first_offset, last.last_offset);
            left.records -= acquired.iter().map(|run| run.last_offset - run.first_offset + 1).sum::<i64>();
            left.bytes = left.bytes.saturating_sub(records.len());
            left.is_first = false;
            return Ok(Some((acquired, records)));
        }
    }
    Ok(None)
}

/// From where on is to be read. A share partition that is not there is made for a member of the group.
async fn next(
    call: &Call,
    wanted: &WantedRecords,
    key: &ShareKey,
    at: &Led,
    until: Instant,
) -> Result<Option<i64>, ErrorCode> {
    // Where the log begins is known soon.
    let Ok(start) = call.shared.archives.start(&at.topic, &at.partition, &at.log) else { return Ok(None) };
    let range = LogRange { start, end: at.log.offsets().log_end_offset };
    // The answer comes when the state is read; a long poll that does not wait for it is woken then.
    let asked = |begin| {
        let waiting = ask(&call.shared, key.clone(), ShareRequest::Next { log: range, begin });
        async move {
            let answer = tokio::time::timeout_at(until, waiting).await;
            answer.unwrap_or(Err(ErrorCode::CoordinatorLoadInProgress))
        }
    };
    let mut answer = asked(None).await;
    if let Ok(ShareReply::Next(Err(missing @ ErrorCode::UnknownTopicOrPartition))) = answer {
        match is_member(call, &wanted.session).await {
            Ok(true) => {}
            Ok(false) => return Err(missing),
            Err(error) => return quiet(Err(error)),
        }
        let Some(begin) = begin(call, at, start, wanted.settings.reset).await? else { return Ok(None) };
        answer = asked(Some(begin)).await;
    }
    match answer {
        Ok(ShareReply::Next(Err(ErrorCode::GroupMaxSizeReached))) => {
            warn!(
                target: COORDINATOR,
                "a partition is not added to a share group: the bytes of group.coordinator.max.bytes are in use"
            );
            Err(ErrorCode::UnknownServerError)
        }
        Ok(ShareReply::Next(Err(passing @ ErrorCode::CoordinatorNotAvailable))) => quiet(Err(passing)),
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

/// Whether the group knows the member, which its coordinator says.
async fn is_member(call: &Call, session: &ShareSessionKey) -> Result<bool, ErrorCode> {
    let knows = |group: &Group| match &group.kind {
        GroupKind::Share(group) => group.members.contains_key(&session.member_id),
        _ => false,
    };
    let groups = &call.shared.coordinators.groups;
    let number = groups.partition_of(&session.group_id).ok_or(ErrorCode::NotCoordinator)?;
    let Some(shard) = groups.shard(number) else {
        let image = call.shared.topics.now();
        let topic = image.named(groups.topic()).ok_or(ErrorCode::NotCoordinator)?;
        let leader = topic.partition(number).ok_or(ErrorCode::NotCoordinator)?.spec.leader;
        return is_member_at(call, leader, session).await;
    };
    shard.look(|machine| machine.group(&session.group_id).is_some_and(knows))
}

async fn is_member_at(call: &Call, id: i32, session: &ShareSessionKey) -> Result<bool, ErrorCode> {
    let group_ids = vec![session.group_id.clone()];
    let request = ShareGroupDescribeRequest { group_ids, ..Default::default() };
    let answer = call.shared.peers.call(id, &request).await.map_err(|error| error.of_coordinator())?;
    let group = answer.groups.into_iter().next().ok_or(ErrorCode::UnknownServerError)?;
    match ErrorCode::from_code(group.error_code).unwrap_or(ErrorCode::UnknownServerError) {
        ErrorCode::None => Ok(group.members.iter().any(|member| member.member_id == session.member_id)),
        ErrorCode::GroupIdNotFound => Ok(false),
        error => Err(error),
    }
}

/// Where a new share partition of a log that begins at `start` begins; `None` when that cannot be found out now.
async fn begin(call: &Call, at: &Led, start: i64, reset: OffsetReset) -> Result<Option<i64>, ErrorCode> {
    let offsets = at.log.offsets();
    match reset {
        OffsetReset::Earliest => Ok(Some(start)),
        OffsetReset::Latest => Ok(Some(offsets.high_watermark)),
        OffsetReset::ByDuration(ms) => {
            let (log, since_ms) = (Arc::clone(&at.log), call.shared.clock.now_ms().saturating_sub(ms));
            if start < offsets.log_start_offset {
                match archived_at(call, at, since_ms).await? {
                    Some(Some(found)) if found < offsets.log_start_offset => return Ok(Some(found)),
                    Some(_) => {}
                    None => return Ok(None),
                }
            }
            // Batches are opened for it, which may take long. Where no thread is free for that, the next request tries again.
            let looked =
                call.shared.slow.run(call.peer.ip(), move || log.offset_for_timestamp(since_ms)).await;
            let Ok(found) = looked else { return Ok(None) };
            let found = found.map_err(|error| of_storage_logged(&error))?;
            let end = offsets.high_watermark;
            Ok(Some(found.map_or(end, |(offset, _)| offset.min(end))))
        }
    }
}

/// The offset of the first archived record at a time or later, where there is one; `None` while the archive has not answered.
async fn archived_at(call: &Call, at: &Led, timestamp_ms: i64) -> Result<Option<Option<i64>>, ErrorCode> {
    let timeout = Duration::from_millis(call.shared.settings.remote_list_offsets_request_timeout_ms);
    let asked = call.shared.archives.ask(call.peer.ip(), at.place(), Wanted::Time(timestamp_ms), timeout);
    match asked.await? {
        Some(Answered::Offset(found)) => Ok(Some(found.map(|(offset, _)| offset))),
        Some(Answered::Batches(..) | Answered::Refused(_)) | None => Ok(None),
    }
}

impl Led {
    fn place(&self) -> Place {
        let (topic, topic_id) = (self.topic.name.clone(), self.topic.id);
        Place { topic, topic_id, partition: self.partition.spec.partition }
    }
}

/// The next batches, of those that only the archive has; `None` when they are not there yet.
async fn bring_batches(
    call: &Call,
    at: &Led,
    from: i64,
    left: &mut Left,
    isolation: IsolationLevel,
) -> Result<Option<Batches>, ErrorCode> {
    let (archives, spec) = (&call.shared.archives, &at.partition.spec);
    let Some(archived) = archives.of(at.topic.id, spec.partition, spec.leader_epoch) else {
        archives.miss();
        return Ok(None);
    };
    if left.archived == 0 || !(archived.start..archived.end).contains(&from) {
        return Ok(None);
    }
    left.archived -= 1;
    let Some(ArchivedBatches { data, aborted }) = bring(call, at.place(), from, left.bytes).await? else {
        return Ok(None);
    };
    let headers = bytes_into_batches(&data).map_while(Result::ok).map(|(header, _)| header);
    let headers: Vec<_> = headers.take(BATCHES_MAX).collect();
    let is_committed = isolation == IsolationLevel::ReadCommitted;
    let aborted = if is_committed { aborted } else { Vec::new() };
    Ok(Some(Batches { headers, aborted, records: Records::Memory(data) })
        .filter(|found| !found.headers.is_empty()))
}

/// The next batches; `None` when there are none.
fn read(
    log: &PartitionLog,
    from: i64,
    left: &Left,
    isolation: IsolationLevel,
) -> Result<Option<Batches>, ErrorCode> {
    let upto = match isolation {
        IsolationLevel::ReadUncommitted => ReadUpTo::HighWatermark,
        IsolationLevel::ReadCommitted => ReadUpTo::LastStable,
    };
    let slice = match log.read(from, left.bytes, left.is_first, upto) {
        Ok(slice) if slice.len > 0 => slice,
        // Retention was faster than this look; the next one knows.
        Ok(_) | Err(StorageError::OffsetOutOfRange { .. }) => return Ok(None),
        Err(error) => return Err(of_storage_logged(&error)),
    };
    let headers = slice.headers(BATCHES_MAX).map_err(|cause| {
        let partition = log.topic_partition();
        warn!(target: STORAGE, %partition, "{partition} cannot be read at offset {from}: {cause}");
        ErrorCode::KafkaStorageError
    })?;
    let aborted =
        slice.aborted.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)).collect();
    Ok(Some(Batches { headers, aborted, records: Records::File(slice) }))
}

/// The batches; markers, what was aborted and what compaction left empty have no records for members.
fn batches(headers: &[BatchHeader], aborted: &[AbortedBatches]) -> Vec<LogBatch> {
    let mut by_producer: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    for (producer_id, first_offset, last_offset) in aborted {
        by_producer.entry(*producer_id).or_default().push((*first_offset, *last_offset));
    }
    let is_aborted = |header: &BatchHeader| {
        let within = |(first, last): &(i64, i64)| (*first..=*last).contains(&header.base_offset);
        header.is_transactional()
            && by_producer.get(&header.producer_id).is_some_and(|aborted| aborted.iter().any(within))
    };
    let batch = |header: &BatchHeader| LogBatch {
        first_offset: header.base_offset,
        last_offset: header.last_offset(),
        is_void: header.is_control() || header.records_count == 0 || is_aborted(header),
    };
    headers.iter().map(batch).collect()
}

/// The batches that have the records `first..=last`.
fn around(records: Records, headers: &[BatchHeader], first: i64, last: i64) -> Records {
    let before = bytes_of(headers.iter().take_while(|header| header.last_offset() < first));
    let upto = bytes_of(headers.iter().take_while(|header| header.base_offset <= last)).min(records.len());
    match records {
        Records::File(mut slice) => {
            slice.position += before as u64;
            slice.len = upto.saturating_sub(before);
            Records::File(slice)
        }
        Records::Memory(data) => Records::Memory(data.slice(before.min(upto)..upto)),
    }
}

fn bytes_of<'a>(headers: impl Iterator<Item = &'a BatchHeader>) -> usize {
    headers.map(BatchHeader::size).sum()
}

fn data_of((_, partition_index): TopicIdPartition, acquired: &[Acquired]) -> PartitionData {
    let runs = acquired.iter().map(|run| AcquiredRecords {
        first_offset: run.first_offset,
        last_offset: run.last_offset,
        delivery_count: run.delivery_count,
    });
    PartitionData { partition_index, acquired_records: runs.collect(), ..Default::default() }
}
