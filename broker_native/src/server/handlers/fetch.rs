//! Fetch: runs of whole batches, as they lie in the files. Waits for data up to `max_wait_ms`, woken by appends.
//!
//! Fetch sessions are declined: a request that begins one gets session id 0, one that goes on with one is told
//! FETCH_SESSION_ID_NOT_FOUND and begins again; every client copes.
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::fetch_read::{Gathered, Wanted, gather};
use crate::server::dispatch::{Call, Outcome, Reply};
use crate::server::outbox::{Answer, Part};
use crate::server::watch::Watch;
use crate::wire::messages::fetch::{FetchableTopicResponse, PartitionData};
use crate::wire::messages::{FetchRequest, FetchResponse};
use crate::wire::{Chunk, ErrorCode, message};

/// The epochs of a request that does not go on with a session: begins one, or wants none.
const SESSION_EPOCHS_FULL: std::ops::RangeInclusive<i32> = -1..=0;
/// Runs up to this size are copied into the answer, which then leaves in one write.
const INLINE_BYTES: usize = /* 32 KiB */ 32 << 10;
/// No client waits longer; a bound for what a hostile one can hold.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Answers with what is there, or when there is enough.
pub fn handle(call: Call, request: FetchRequest) -> Outcome {
    let replica_id = request.replica_id.max(request.replica_state.replica_id);
    if replica_id >= 0 {
        // Only followers move the high watermark by fetching, and there are none.
        return Outcome::Now(refuse(&call, request, ErrorCode::ClusterAuthorizationFailed));
    }
    if !SESSION_EPOCHS_FULL.contains(&request.session_epoch) {
        let error_code = ErrorCode::FetchSessionIdNotFound.code();
        return Outcome::Now(call.answer(&FetchResponse { error_code, ..Default::default() }));
    }
    let wanted = Wanted::of(&call, request);
    let gathered = gather(&wanted);
    if gathered.is_enough(&wanted) || call.shared.shutdown.is_given() {
        return Outcome::Now(reply(&call, &wanted, gathered));
    }
    call.shared.metrics.long_polls.one();
    Outcome::later(long_poll(call, wanted))
}

/// Gathers again whenever a partition advances, until there is enough, the time is over, or the server stops.
async fn long_poll(call: Call, wanted: Wanted) -> Reply {
    let deadline = Instant::now() + wanted.max_wait.min(MAX_WAIT);
    let watch = Watch::over(wanted.watchers());
    let shared = Arc::clone(&call.shared);
    let over = tokio::time::sleep_until(deadline);
    tokio::pin!(over);
    let stop = shared.shutdown.wait();
    tokio::pin!(stop);
    loop {
        // After the watch began: nothing that arrives is missed.
        let gathered = gather(&wanted);
        if gathered.is_enough(&wanted) {
            return reply(&call, &wanted, gathered);
        }
        tokio::select! {
            () = watch.woken() => {}
            () = &mut over => return reply(&call, &wanted, gather(&wanted)),
            () = &mut stop => return reply(&call, &wanted, gather(&wanted)),
        }
    }
}

/// The answer: what stands around the records is encoded, the records themselves are only referred to.
fn reply(call: &Call, wanted: &Wanted, gathered: Gathered) -> Reply {
    let lengths: Vec<_> = gathered.slices.iter().map(|slice| slice.as_ref().map(|slice| slice.len)).collect();
    call.shared.metrics.fetched_bytes.add(gathered.bytes as u64);
    let response = FetchResponse { responses: wanted.named(gathered.partitions), ..Default::default() };
    let encoded = message::response_frame_around(&response, call.version, call.correlation_id, lengths);
    let chunks = match encoded {
        Ok(chunks) => chunks,
        Err(error) => return Reply::Close(format!("its answer could not be written: {error}")),
    };
    let mut slices = gathered.slices;
    let part = |chunk| match chunk {
        Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
        Chunk::Records { index, .. } => slices.get_mut(index).and_then(Option::take).map(Part::File),
    };
    let answer = Answer { parts: chunks.into_iter().filter_map(part).collect() };
    match answer.inlined(INLINE_BYTES) {
        Ok(answer) => Reply::Answer(answer),
        Err(error) => Reply::Close(format!("a segment file cannot be read: {error}")),
    }
}

/// The same error for everything that was asked.
fn refuse(call: &Call, request: FetchRequest, error: ErrorCode) -> Reply {
    let refused = |partition_index| PartitionData {
        partition_index,
        error_code: error.code(),
        high_watermark: -1,
        records: Some(bytes::Bytes::new()),
        ..Default::default()
    };
    let responses = request.topics.into_iter().map(|topic| FetchableTopicResponse {
        partitions: topic.partitions.iter().map(|one| refused(one.partition)).collect(),
        topic: topic.topic,
        topic_id: topic.topic_id,
    });
    call.answer(&FetchResponse {
        error_code: error.code(),
        responses: responses.collect(),
        ..Default::default()
    })
}
