//! Fetch: runs of whole batches, as they lie in the files. Waits for data up to `max_wait_ms`, woken by what is committed (a
//! consumer), by what is appended (a follower), and by another leader.
//!
//! Which partitions a request is about, and which an answer mentions, is said by its session ([`fetch_sessions`]).
//!
//! KIP-98. Version 5 has the log's start; 7 has sessions (KIP-227); 9 the leader's epoch (KIP-320); 10 allows zstd
//! (KIP-110); 11 has the consumer's rack (KIP-392); 12 the epoch of its last record, against which truncation is found
//! (KIP-595); 13 names topics by id (KIP-516); 14 knows an error of tiered storage (KIP-405); 15 has the follower's
//! registration (KIP-903); 16 names the current leader (KIP-951); 17 and 18 have a follower's directory
//! and high watermark (KIP-853, KIP-1166).
//!
//! [`fetch_sessions`]: crate::fetch_sessions
mod answer;
mod failed;
mod read;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use self::answer::{reply, session_error};
use self::read::{Brought, TOPIC_IDS_FROM, WantedPartitions, gather};
use self::reader::FetchReader;
use crate::call::{Call, Outcome, Reply, guarded};
use crate::fetch_sessions::{AskedPartition, NO_SESSION, SessionPlan, SessionRequest, topic_key};
use crate::handlers::common::archived::bring;
use crate::io::response_queue::Answer;
use crate::io::shares::Share;
use crate::state::watch::Watch;
use pylog_log::loggers::REQUEST;
use pylog_log::warn;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{FetchTopic, FetchableTopicResponse, PartitionData};
use pylog_wire::messages::{FetchRequest, FetchResponse};

/// Requests behind a fetch of more partitions are not handled before it is answered.
const SMALL: usize = 100;
/// No client waits longer; a bound for what a hostile one can hold.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Answers with what is there, or when there is enough.
pub fn handle(call: Call, request: FetchRequest) -> Outcome {
    let reader = match FetchReader::of(&call, &request) {
        Ok(reader) => reader,
        Err(error) => return Outcome::Now(refuse(&call, request, error)),
    };
    let by_id = call.version >= TOPIC_IDS_FROM;
    let session = SessionRequest {
        principal: &call.principal,
        id: request.session_id,
        epoch: request.session_epoch,
        by_id,
        asked: asked(&request.topics, by_id),
        forgotten: &request.forgotten_topics_data,
    };
    let (asked, plan) = match reader.sessions(&call).take(session, call.shared.clock.steady_ms()) {
        Ok(taken) => taken,
        Err(error) => return Outcome::Now(session_error(&call, error, NO_SESSION)),
    };
    let mut wanted = WantedPartitions::of(&call, &request, asked, reader);
    wanted.note(&call);
    let gathered = gather(&call, &wanted);
    if let Some(index) = gathered.in_archive {
        return from_archive(call, wanted, plan, index);
    }
    if gathered.is_enough(&wanted) || call.shared.shutdown.is_given() {
        return Outcome::Now(reply(&call, &wanted, &plan, gathered));
    }
    let Some(place) = place(&call, &wanted) else {
        let client = call.peer.ip();
        warn!(
            target: REQUEST, %client,
            "a fetch of {client} does not wait for records: fetches of as many partitions as fetch.wait.max.partitions wait already"
        );
        wanted.put_off();
        return Outcome::Now(reply(&call, &wanted, &plan, gathered));
    };
    call.shared.metrics.long_polls.increment();
    let is_small = wanted.asked.len() <= SMALL;
    let poll = Box::pin(async move {
        let caller = call.clone();
        let answer = guarded(&caller.shared, long_poll(call, wanted, plan)).await;
        match answer {
            // A large answer counts until it is sent.
            Some(Reply::Answer(answer)) if !is_small => Reply::Answer(Answer { held: place, ..answer }),
            Some(reply) => reply,
            None => session_error(&caller, ErrorCode::UnknownServerError, NO_SESSION),
        }
    });
    if is_small { Outcome::Later(poll) } else { Outcome::Alone(poll) }
}

/// Answers when the records of the partition at `index` have come from the archive.
fn from_archive(call: Call, mut wanted: WantedPartitions, plan: SessionPlan, index: usize) -> Outcome {
    Outcome::in_order(async move {
        let caller = call.clone();
        let answer = guarded(&caller.shared, async move {
            if let Some(place) = wanted.place(index) {
                let (at, offset, max_bytes) = place;
                wanted.brought = Some(Brought { index, found: bring(&call, at, offset, max_bytes).await });
            }
            // Topics or rights may have changed meanwhile.
            wanted.look_again(&call);
            let gathered = gather(&call, &wanted);
            reply(&call, &wanted, &plan, gathered)
        });
        answer.await.unwrap_or_else(|| session_error(&caller, ErrorCode::UnknownServerError, NO_SESSION))
    })
}

/// A place among the fetches that wait; followers need none.
fn place(call: &Call, wanted: &WantedPartitions) -> Option<Option<Share>> {
    if wanted.reader.is_replica() {
        return Some(None);
    }
    let partitions = u32::try_from(wanted.asked.len()).ok()?;
    call.shared.waiting_partitions.take_now(call.peer.ip(), partitions).map(Some)
}

/// The partitions that a request names, in its order.
fn asked(topics: &[FetchTopic], by_id: bool) -> Vec<AskedPartition> {
    let mut asked = Vec::with_capacity(topics.iter().map(|topic| topic.partitions.len()).sum());
    for topic in topics {
        let key = topic_key(&topic.topic, topic.topic_id, by_id);
        asked.extend(
            topic
                .partitions
                .iter()
                .map(|partition| AskedPartition { topic: key.clone(), position: partition.into() }),
        );
    }
    asked
}

/// Gathers again whenever a partition moves, until there is enough, the time is over, or the server stops.
async fn long_poll(call: Call, mut wanted: WantedPartitions, plan: SessionPlan) -> Reply {
    let over = tokio::time::sleep(wanted.max_wait.min(MAX_WAIT));
    tokio::pin!(over);
    let shared = Arc::clone(&call.shared);
    let stop = shared.shutdown.wait();
    tokio::pin!(stop);
    let mut watch = Watch::over(wanted.watchers());
    loop {
        // After the watch began: nothing that arrives is missed, nor is another leader.
        while wanted.look_again(&call) {
            watch = Watch::over(wanted.watchers());
        }
        let gathered = gather(&call, &wanted);
        if gathered.is_enough(&wanted) {
            return reply(&call, &wanted, &plan, gathered);
        }
        tokio::select! {
            () = watch.woken() => {}
            () = &mut over => wanted.max_wait = Duration::ZERO,
            () = &mut stop => wanted.max_wait = Duration::ZERO,
        }
    }
}

/// The same error for everything that was asked.
fn refuse(call: &Call, request: FetchRequest, error: ErrorCode) -> Reply {
    let failed = |partition_index| PartitionData {
        partition_index,
        error_code: error.code(),
        high_watermark: -1,
        records: Some(bytes::Bytes::new()),
        ..Default::default()
    };
    let responses = request.topics.into_iter().map(|topic| FetchableTopicResponse {
        partitions: topic.partitions.iter().map(|partition| failed(partition.partition)).collect(),
        topic: topic.topic,
        topic_id: topic.topic_id,
    });
    call.answer(&FetchResponse {
        error_code: error.code(),
        responses: responses.collect(),
        ..Default::default()
    })
}
