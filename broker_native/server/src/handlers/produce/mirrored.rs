//! What a mirror hands over: batches of another cluster, which keep their offsets; where its log begins; that the mirror has ended.
//!
//! What is already there is passed over, so that a mirror may send all of it again; each answer says where the log ends, which is where
//! the mirror goes on. A topic takes batches of the one cluster that its setting `mirror.source` names, from whoever may write to it.
use std::sync::Arc;

use crate::call::Call;
use crate::errors::of_storage_logged;
use crate::handlers::common::lookup::led;
use crate::state::topics::{Partition, Topic};
use pylog_storage::{AppendOptions, Appended, PartitionLog};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceRequest;
pub use pylog_wire::messages::produce::mirrored::ACKS;
use pylog_wire::messages::produce::mirrored::{END, ENDED};

/// Stands for "no offset".
const NO_OFFSET: i64 = -1;
/// No log begins behind it.
const OFFSET_MAX: i64 = 1 << 62;

/// Whether a mirror sent the request.
pub fn is_mirror(request: &ProduceRequest) -> bool {
    request.acks == ACKS
}

/// Does what the request says about one partition.
///
/// # Errors
/// INVALID_REQUEST for what no mirror says; OFFSET_OUT_OF_RANGE when batches would be left out; those of the log.
pub fn append(
    request: &ProduceRequest,
    partition: &Partition,
    log: &Arc<PartitionLog>,
    from: i64,
    batches: Option<&mut [u8]>,
) -> Result<Appended, (ErrorCode, String)> {
    let source = request.mirror_source.as_deref().unwrap_or_default();
    let how = AppendOptions::client(partition.spec.leader_epoch);
    let end = match (from, batches) {
        (END, None) if source == ENDED => log.end_mirrored(source, how),
        (0..OFFSET_MAX, None) if source != ENDED => log.begin_mirrored(source, from, how),
        (0..OFFSET_MAX, Some(batches)) if source != ENDED => log.append_mirrored(source, batches, from, how),
        _ => return Err((ErrorCode::InvalidRequest, "no mirror sends such a request".into())),
    };
    let end = end.map_err(|error| (of_storage_logged(&error), error.to_string()))?;
    Ok(Appended {
        base_offset: NO_OFFSET,
        last_offset: end - 1,
        log_append_time_ms: -1,
        log_start_offset: log.offsets().log_start_offset,
        duplicate: false,
    })
}

/// Where the log ends, as its leader knows; -1 where this broker does not lead it.
pub fn log_end_offset(call: &Call, topic: Result<&Arc<Topic>, ErrorCode>, number: i32) -> i64 {
    let found = topic.and_then(|topic| led(&call.shared, Some(topic), number, -1));
    found.map_or(NO_OFFSET, |(_, log)| log.offsets().log_end_offset)
}
