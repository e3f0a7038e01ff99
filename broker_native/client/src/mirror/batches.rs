//! Batches of one partition as they are stored, fetched into memory and handed over from there: what an archive file is made of, and a
//! topic is restored from.
use bytes::Bytes;

use super::fetching::{self, NAMES_UP_TO};
use super::handing_over::{HandedOver, Taken, hand_over};
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::{leaders, partition_error};
use crate::metadata::topic_partition::TopicPartition;
use pylog_record::batches;
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchRequest;
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic};

/// Fetch session epoch of a request without a session.
const NO_SESSION_EPOCH: i32 = -1;

/// What a fetch brought.
#[derive(Debug)]
pub struct Fetched {
    /// Whole batches that begin before the wanted end; empty where the log has none.
    pub batches: Bytes,
    /// One past the last offset of them; where nothing was there, the end that was asked for.
    pub next: i64,
}

/// The stored batches from the one that has `offset`, before `until`, of about `max_bytes`: at least one where there is one.
///
/// # Errors
/// `OFFSET_OUT_OF_RANGE` when the log begins behind `offset`; `CORRUPT_BATCH`; retriable ones after `default.api.timeout.ms`.
pub fn fetch(
    cluster: &mut Cluster,
    partition: &TopicPartition,
    offset: i64,
    until: i64,
    max_bytes: i32,
) -> Result<Fetched> {
    let request = request(partition, offset, max_bytes);
    let data = cluster.retrying("fetch batches", |cluster| {
        let leader = leaders(cluster, &[partition])?[0];
        let address = cluster.address(leader)?;
        let answer = cluster.call_up_to(&address, NAMES_UP_TO, &request)?;
        let data = fetching::by_name(answer).remove(partition);
        let data = data.ok_or_else(|| {
            ClientError::retriable(kind::PROTOCOL, "the broker did not answer for the partition")
        })?;
        match code(data.error_code) {
            // A leader that was just elected may not know yet how far all have come.
            ErrorCode::None if data.high_watermark < until => {
                let message =
                    format!("partition {partition} ends at {}, before offset {until}", data.high_watermark);
                Err(ClientError::retriable(ErrorCode::OffsetNotAvailable.name(), message))
            }
            ErrorCode::None => Ok(data),
            error => {
                cluster.forget_leaders();
                Err(partition_error(&partition.topic, partition.partition, error))
            }
        }
    })?;
    let found = data.records.unwrap_or_default();
    let brought = fetching::whole(partition, &found)?;
    let (mut size, mut next) = (0, None);
    for batch in batches(&brought.batches) {
        let (header, bytes) = batch.map_err(|bad| ClientError::damaged(&bad))?;
        if header.base_offset >= until {
            break;
        }
        header.verify_crc(bytes).map_err(|bad| ClientError::damaged(&bad))?;
        size += header.size();
        next = header.last_offset().checked_add(1);
    }
    // Compaction leaves offsets without records.
    Ok(Fetched { batches: brought.batches.slice(..size), next: next.unwrap_or(until) })
}

/// Appends the batches to the partition of a copy, where `from` is the offset behind all that came before them: the log is theirs from there
/// on. Without batches the log begins at `from`. What the log has already is passed over. Gives the log's end.
///
/// # Errors
/// Those of the partition, such as `OFFSET_OUT_OF_RANGE`; retriable ones after `default.api.timeout.ms`, when batches may be there or not.
pub fn append(
    cluster: &mut Cluster,
    source_id: &str,
    partition: &TopicPartition,
    from: i64,
    batches: Option<Bytes>,
) -> Result<i64> {
    cluster.retrying("append batches", |cluster| {
        let given = HandedOver { partition: partition.clone(), from, batches: batches.clone() };
        let taken = hand_over(cluster, source_id, vec![given])?;
        match taken.into_iter().next() {
            Some(Taken { error: None, end, .. }) => Ok(end),
            Some(Taken { error: Some(mut error), .. }) => {
                // A wrong place is not mended by asking again; a leader that has not heard of the topic's settings yet will.
                error.retriable &= error.kind != ErrorCode::OffsetOutOfRange.name();
                error.retriable |= error.kind == ErrorCode::InvalidConfig.name();
                Err(error)
            }
            None => {
                Err(ClientError::retriable(kind::PROTOCOL, "the broker did not answer for the partition"))
            }
        }
    })
}

fn request(partition: &TopicPartition, offset: i64, max_bytes: i32) -> FetchRequest {
    let asked = FetchPartition {
        partition: partition.partition,
        fetch_offset: offset,
        partition_max_bytes: max_bytes,
        ..Default::default()
    };
    let topic =
        FetchTopic { topic: (*partition.topic).into(), partitions: vec![asked], ..Default::default() };
    FetchRequest {
        min_bytes: 0,
        max_bytes,
        session_epoch: NO_SESSION_EPOCH,
        topics: vec![topic],
        ..Default::default()
    }
}
