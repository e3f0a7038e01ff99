//! What a lane asks a broker of the source, and what the answer brought.
use std::collections::BTreeMap;

use bytes::Bytes;

use super::progress::Progress;
use crate::config::Settings;
use crate::error::{ClientError, Result};
use crate::metadata::topic_partition::TopicPartition;
use pylog_record::batches;
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic};
use pylog_wire::messages::{FetchRequest, FetchResponse};

/// The last version in which topics are named, not numbered.
pub const NAMES_UP_TO: i16 = 12;
/// Most bytes that are fetched and handed over at once, beside a single larger batch.
const FETCH_BYTES_MAX: u64 = 8 << 20;
/// Fetch session epoch of a request without a session.
const NO_SESSION_EPOCH: i32 = -1;

/// Whole batches of one partition, and where the source's log ends.
#[derive(Debug)]
pub struct Brought {
    /// The batches.
    pub batches: Bytes,
    /// One past the last record of them; `None` when there are none.
    pub next: Option<i64>,
}

/// Asks for what follows in each partition; `turn` decides which is asked for first, so that each comes first in turn.
pub fn request(
    settings: &Settings,
    mine: &[(TopicPartition, Progress)],
    most: impl Fn(u64) -> u64,
    turn: usize,
) -> FetchRequest {
    let bytes = |setting: i64| i32::try_from(most(setting.unsigned_abs())).unwrap_or(i32::MAX);
    let fetch_bytes = FETCH_BYTES_MAX.min(settings.fetch_max_bytes.unsigned_abs());
    let mut topics: Vec<FetchTopic> = Vec::new();
    let (before, after) = mine.split_at(turn.checked_rem(mine.len()).unwrap_or(0));
    for (partition, progress) in after.iter().chain(before) {
        let asked = FetchPartition {
            partition: partition.partition,
            fetch_offset: progress.fetch_from,
            partition_max_bytes: bytes(settings.max_partition_fetch_bytes),
            ..Default::default()
        };
        match topics.last_mut().filter(|topic| topic.topic.as_str() == &*partition.topic) {
            Some(topic) => topic.partitions.push(asked),
            None => topics.push(FetchTopic {
                topic: (*partition.topic).into(),
                partitions: vec![asked],
                ..Default::default()
            }),
        }
    }
    FetchRequest {
        max_wait_ms: i32::try_from(settings.fetch_max_wait_ms).unwrap_or(i32::MAX),
        min_bytes: i32::try_from(settings.fetch_min_bytes).unwrap_or(i32::MAX),
        max_bytes: i32::try_from(most(fetch_bytes)).unwrap_or(i32::MAX),
        session_epoch: NO_SESSION_EPOCH,
        topics,
        ..Default::default()
    }
}

/// The answer's partitions by their names.
pub fn by_name(
    answer: FetchResponse,
) -> BTreeMap<TopicPartition, pylog_wire::messages::fetch::PartitionData> {
    let mut found = BTreeMap::new();
    for topic in answer.responses {
        for partition in topic.partitions {
            found.insert(TopicPartition::by_name(topic.topic.as_str(), partition.partition_index), partition);
        }
    }
    found
}

/// The whole batches at the front of `records`.
///
/// # Errors
/// `CORRUPT_BATCH` for one of an older format.
pub fn whole(partition: &TopicPartition, records: &Bytes) -> Result<Brought> {
    let (mut size, mut next) = (0, None);
    for found in batches(records) {
        let header = match found {
            Ok((header, _)) => header,
            Err(bad) if next.is_none() => return Err(unusable(partition, &bad)),
            // What comes before it is copied first.
            Err(_) => break,
        };
        size += header.size();
        next = header.last_offset().checked_add(1);
    }
    Ok(Brought { batches: records.slice(..size.min(records.len())), next })
}

fn unusable(partition: &TopicPartition, bad: &pylog_record::BatchError) -> ClientError {
    let message = format!("partition {partition} of the source has a batch that cannot be copied: {bad}");
    ClientError::fatal(crate::error::kind::CORRUPT_BATCH, message)
}
