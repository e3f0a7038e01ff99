//! DeleteRecords: moves the first readable offset of partitions forward; answered when all live replicas have followed.
//!
//! KIP-107. No version added anything.
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::common::archived::ask_and_wait;
use super::common::lookup::led;
use crate::authorization::table::DELETE_RECORDS_TOPIC;
use crate::call::{Call, Outcome, guarded_now};
use crate::errors::of_storage;
use crate::state::archives::Wanted;
use crate::state::replication::leader_state::LeaderState;
use crate::state::replication::proposals::Proposer;
use crate::state::topics::Topic;
use crate::state::watch::Watch;
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use pylog_wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

/// Stands for "no low watermark".
const NO_WATERMARK: i64 = -1;

/// A deletion that other replicas have to follow.
struct Waiting {
    topic: usize,
    partition: usize,
    topic_name: String,
    /// The first offset that may be left.
    wanted: i64,
    leader_state: Arc<LeaderState>,
}

/// Moves each partition by itself. Where it begins is on the device before the answer, which may take long.
pub fn handle(call: Call, request: DeleteRecordsRequest) -> Outcome {
    Outcome::in_order(async move {
        let (caller, timeout_ms) = (call.clone(), request.timeout_ms);
        match call.shared.slow.run(call.peer.ip(), move || delete_all(&caller, &request)).await {
            Ok((response, waiting)) => when_followed(call, response, waiting, timeout_ms).await,
            Err(not_done) => not_done.into(),
        }
    })
}

fn delete_all(call: &Call, request: &DeleteRecordsRequest) -> (DeleteRecordsResponse, Vec<Waiting>) {
    let topics = call.shared.topics.now();
    let mut waiting = Vec::new();
    let results = request.topics.iter().enumerate().map(|(at, asked)| {
        let topic = topics.named(&asked.name);
        let allowed = call.check(&DELETE_RECORDS_TOPIC, &asked.name);
        let partitions = asked.partitions.iter().enumerate().map(|(place, partition)| {
            let deleted = allowed.and_then(|()| {
                guarded_now(&call.shared, || delete(call, topic, partition))
                    .unwrap_or(Err(ErrorCode::UnknownServerError))
            });
            if let Ok((start, Some(leader_state))) = &deleted {
                let wanted = if partition.offset < 0 { *start } else { partition.offset };
                let (topic_name, leader_state) = (asked.name.clone(), Arc::clone(leader_state));
                waiting.push(Waiting { topic: at, partition: place, topic_name, wanted, leader_state });
            }
            result(partition.partition_index, deleted.map(|(start, _)| start))
        });
        DeleteRecordsTopicResult { name: asked.name.clone(), partitions: partitions.collect() }
    });
    let response = DeleteRecordsResponse { topics: results.collect(), ..Default::default() };
    (response, waiting)
}

/// The log's first offset afterwards, and the leader's state of its other replicas, when it has some.
fn delete(
    call: &Call,
    topic: Option<&Arc<Topic>>,
    asked: &DeleteRecordsPartition,
) -> Result<(i64, Option<Arc<LeaderState>>), ErrorCode> {
    let (partition, log) = led(&call.shared, topic, asked.partition_index, -1)?;
    if topic.is_some_and(|topic| topic.internal) {
        return Err(ErrorCode::InvalidTopicException);
    }
    if !log.config().cleanup_policy.delete {
        // What is compacted only may not be cut off: a key's last value could be in it.
        return Err(ErrorCode::PolicyViolation);
    }
    let failed = |error| of_storage(&error);
    let before = log.deletable_before(asked.offset).map_err(failed)?;
    if log.config().remote_storage_enable {
        // First: the archive may refuse, and what is deleted here is not to be read there.
        delete_archived(call, log, before)?;
    }
    let mut start = log.delete_records_before(before).map_err(failed)?;
    if let Some(topic) = topic {
        start = call.shared.archives.start(topic, partition, log).unwrap_or(start);
    }
    Ok((start, partition.leader_state.clone()))
}

/// Lets nothing before an offset be read from the archive. Called by a thread for slow requests.
fn delete_archived(call: &Call, log: &PartitionLog, before: i64) -> Result<(), ErrorCode> {
    match ask_and_wait(call, log, Wanted::Delete(before))? {
        Some(_) => Ok(()),
        None => Err(ErrorCode::RequestTimedOut),
    }
}

/// Answers when the logs of all live replicas begin where they should, or when the request's timeout is over.
async fn when_followed(
    call: Call,
    mut response: DeleteRecordsResponse,
    waiting: Vec<Waiting>,
    timeout_ms: i32,
) -> crate::call::Reply {
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    let deadline = Instant::now() + timeout;
    for deletion in waiting {
        let low_watermark = followed(&call, &deletion, deadline).await;
        let slot =
            response.topics.get_mut(deletion.topic).and_then(|t| t.partitions.get_mut(deletion.partition));
        if let Some(slot) = slot {
            *slot = result(slot.partition_index, low_watermark);
        }
    }
    call.answer(&response)
}

async fn followed(call: &Call, deletion: &Waiting, deadline: Instant) -> Result<i64, ErrorCode> {
    let watch = Watch::over(vec![Arc::clone(&deletion.leader_state.log_starts)]);
    loop {
        // After the watch began: nothing is missed.
        let topics = call.shared.topics.now();
        let number = deletion.leader_state.partition();
        let (partition, _) = led(&call.shared, topics.named(&deletion.topic_name), number, -1)?;
        let same =
            partition.leader_state.as_ref().is_some_and(|now| Arc::ptr_eq(now, &deletion.leader_state));
        if !same {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        if let Some(low) = deletion.leader_state.low_watermark().filter(|low| *low >= deletion.wanted) {
            return Ok(low);
        }
        tokio::select! {
            () = watch.woken() => {}
            () = tokio::time::sleep_until(deadline) => return Err(ErrorCode::RequestTimedOut),
            () = call.shared.shutdown.wait() => return Err(ErrorCode::NotLeaderOrFollower),
        }
    }
}

fn result(partition_index: i32, outcome: Result<i64, ErrorCode>) -> DeleteRecordsPartitionResult {
    DeleteRecordsPartitionResult {
        partition_index,
        low_watermark: *outcome.as_ref().unwrap_or(&NO_WATERMARK),
        error_code: outcome.err().unwrap_or(ErrorCode::None).code(),
    }
}
