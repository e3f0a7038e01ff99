//! The reading half of Fetch: which partitions, up to how many bytes, and what is there now.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::lookup::led;
use crate::server::dispatch::Call;
use crate::server::errors::{is_ours, of_storage};
use crate::server::notice::notice;
use crate::server::watch::Watchers;
use crate::storage::{LogSlice, PartitionLog, ReadUpTo};
use crate::wire::ErrorCode;
use crate::wire::messages::FetchRequest;
use crate::wire::messages::fetch::{FetchPartition, FetchableTopicResponse, PartitionData};

/// From this version on topics are named by id.
const TOPIC_IDS_FROM: i16 = 13;
const READ_COMMITTED: i8 = 1;
/// Tells a client that there is no offset.
const NO_OFFSET: i64 = -1;

/// A fetch request, with the partitions looked up.
pub struct Wanted {
    /// How long to wait for data.
    pub max_wait: Duration,
    min_bytes: usize,
    max_bytes: usize,
    committed: bool,
    /// What a client is told of a topic that is not there.
    unknown_topic: ErrorCode,
    topics: Vec<WantedTopic>,
}

struct WantedTopic {
    name: String,
    id: Uuid,
    partitions: Vec<WantedPartition>,
}

struct WantedPartition {
    asked: FetchPartition,
    /// The log, or what the client is told instead.
    found: Result<(Arc<PartitionLog>, Arc<Watchers>), ErrorCode>,
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
    pub fn of(call: &Call, request: FetchRequest) -> Self {
        let picture = call.shared.topics.now();
        let by_id = call.version >= TOPIC_IDS_FROM;
        let unknown_topic =
            if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
        let topics = request.topics.into_iter().map(|asked| {
            let topic = if by_id { picture.with_id(&asked.topic_id) } else { picture.named(&asked.topic) };
            let find = |one: FetchPartition| {
                let found = match topic {
                    None => Err(unknown_topic),
                    topic => led(&call.shared, topic, one.partition, one.current_leader_epoch)
                        .map(|(partition, log)| (Arc::clone(log), Arc::clone(&partition.watchers))),
                };
                WantedPartition { asked: one, found }
            };
            let partitions = asked.partitions.into_iter().map(find).collect();
            WantedTopic { name: asked.topic, id: asked.topic_id, partitions }
        });
        let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        Self {
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            min_bytes: size(request.min_bytes),
            max_bytes: size(request.max_bytes.min(call.shared.settings.fetch_max_bytes)),
            committed: request.isolation_level == READ_COMMITTED,
            unknown_topic,
            topics: topics.collect(),
        }
    }

    /// Who tells of new data.
    pub fn watchers(&self) -> Vec<Arc<Watchers>> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions
            .filter_map(|one| one.found.as_ref().ok())
            .map(|(_, watchers)| Arc::clone(watchers))
            .collect()
    }

    /// Puts the answers under their topics.
    pub fn named(&self, partitions: Vec<PartitionData>) -> Vec<FetchableTopicResponse> {
        let mut partitions = partitions.into_iter();
        let topics = self.topics.iter().map(|topic| FetchableTopicResponse {
            topic: topic.name.clone(),
            topic_id: topic.id,
            partitions: partitions.by_ref().take(topic.partitions.len()).collect(),
        });
        topics.collect()
    }
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
    let count = wanted.topics.iter().map(|topic| topic.partitions.len()).sum();
    let (partitions, slices) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut gathered = Gathered { partitions, slices, bytes: 0, failed: false };
    for one in wanted.topics.iter().flat_map(|topic| &topic.partitions) {
        let read = match &one.found {
            // Removed while the fetch waited.
            Ok((_, watchers)) if watchers.is_gone() => Err(wanted.unknown_topic),
            Ok((log, _)) => read(log, &one.asked, wanted, gathered.bytes),
            Err(error) => Err(*error),
        };
        match read {
            Ok(slice) => {
                gathered.bytes += slice.len;
                gathered.partitions.push(found(one, wanted, &slice));
                gathered.slices.push(Some(slice).filter(|slice| slice.len > 0));
            }
            Err(error) => {
                gathered.failed = true;
                gathered.partitions.push(failed(one.asked.partition, error));
                gathered.slices.push(None);
            }
        }
    }
    gathered
}

fn read(
    log: &PartitionLog,
    asked: &FetchPartition,
    wanted: &Wanted,
    used: usize,
) -> Result<LogSlice, ErrorCode> {
    let upto = if wanted.committed { ReadUpTo::LastStable } else { ReadUpTo::HighWatermark };
    let own = usize::try_from(asked.partition_max_bytes).unwrap_or(0);
    let max_bytes = own.min(wanted.max_bytes.saturating_sub(used));
    log.read(asked.fetch_offset, max_bytes, used == 0, upto).map_err(|error| {
        let code = of_storage(&error);
        if is_ours(code) {
            notice(&error.to_string());
        }
        code
    })
}

fn found(one: &WantedPartition, wanted: &Wanted, slice: &LogSlice) -> PartitionData {
    PartitionData {
        partition_index: one.asked.partition,
        high_watermark: slice.offsets.high_watermark,
        last_stable_offset: slice.offsets.last_stable_offset,
        log_start_offset: slice.offsets.log_start_offset,
        // No transaction was aborted; null tells a reader of uncommitted data that it does not matter.
        aborted_transactions: wanted.committed.then(Vec::new),
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn failed(partition_index: i32, error: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: error.code(),
        high_watermark: NO_OFFSET,
        records: Some(Bytes::new()),
        ..Default::default()
    }
}
