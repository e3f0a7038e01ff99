//! States of share partitions at other brokers: Kafka's requests 83 to 87 as their keepers understand them.
use std::collections::{BTreeMap, HashSet};

use uuid::Uuid;

use crate::cluster::peers::Peers;
use pylog_coordinator::share::ShareKey;
use pylog_coordinator::share::merge::complete_count;
use pylog_coordinator::share::state::{Kept, StateReply, StateRequest, Summary, UNKNOWN, Written};
use pylog_wire::messages::{
    DeleteShareGroupStateRequest, InitializeShareGroupStateRequest, ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest, WriteShareGroupStateRequest, delete_share_group_state as delete,
    initialize_share_group_state as initialize, read_share_group_state as read,
    read_share_group_state_summary as summary, write_share_group_state as write,
};
use pylog_wire::{ErrorCode, Request};

/// Most partitions that one request asks about.
pub const SUMMARIES_MAX: usize = 10_000;
/// The state epoch of a state that is not there.
pub const NOT_THERE: i32 = -1;
/// An administrator fences nobody.
const NO_EPOCH: i32 = -1;

/// Asks broker `id`.
///
/// # Errors
/// COORDINATOR_NOT_AVAILABLE when it does not answer; what it says is in the reply.
pub async fn ask(
    peers: &Peers,
    id: i32,
    key: &ShareKey,
    request: &StateRequest,
) -> Result<StateReply, ErrorCode> {
    let (group_id, topic_id, partition) = (key.group_id.clone(), key.topic_id, key.partition);
    match request {
        StateRequest::Initialize { state_epoch, start_offset } => {
            let (state_epoch, start_offset) = (*state_epoch, *start_offset);
            let partitions = vec![initialize::PartitionData { partition, state_epoch, start_offset }];
            let topics = vec![initialize::InitializeStateData { topic_id, partitions }];
            let answer = call(peers, id, &InitializeShareGroupStateRequest { group_id, topics }).await?;
            let partitions = answer.results.into_iter().flat_map(|topic| topic.partitions);
            Ok(done(partitions.map(|result| result.error_code)))
        }
        StateRequest::Read { leader_epoch } => {
            let partitions = vec![read::PartitionData { partition, leader_epoch: *leader_epoch }];
            let topics = vec![read::ReadStateData { topic_id, partitions }];
            let answer = call(peers, id, &ReadShareGroupStateRequest { group_id, topics }).await?;
            let mut partitions = answer.results.into_iter().flat_map(|topic| topic.partitions);
            let result = partitions.next().ok_or(ErrorCode::UnknownServerError)?;
            Ok(StateReply::Read(match code(result.error_code) {
                ErrorCode::None => Ok(Kept {
                    state_epoch: result.state_epoch,
                    start_offset: result.start_offset,
                    batches: result.state_batches,
                }),
                code => Err(code),
            }))
        }
        StateRequest::Write(Written { state_epoch, leader_epoch, start_offset, batches }) => {
            let data = write::PartitionData {
                partition,
                state_epoch: *state_epoch,
                leader_epoch: *leader_epoch,
                start_offset: *start_offset,
                delivery_complete_count: complete_count(batches),
                state_batches: batches.clone(),
            };
            let topics = vec![write::WriteStateData { topic_id, partitions: vec![data] }];
            let answer = call(peers, id, &WriteShareGroupStateRequest { group_id, topics }).await?;
            let partitions = answer.results.into_iter().flat_map(|topic| topic.partitions);
            Ok(done(partitions.map(|result| result.error_code)))
        }
        StateRequest::Delete => {
            let partitions = vec![delete::PartitionData { partition }];
            let topics = vec![delete::DeleteStateData { topic_id, partitions }];
            let answer = call(peers, id, &DeleteShareGroupStateRequest { group_id, topics }).await?;
            let partitions = answer.results.into_iter().flat_map(|topic| topic.partitions);
            Ok(done(partitions.map(|result| result.error_code)))
        }
        StateRequest::Summary => {
            let mut all = summaries(peers, id, &key.group_id, std::slice::from_ref(key)).await?;
            Ok(StateReply::Summary(all.pop().map(|(_key, summary)| summary)))
        }
    }
}

/// Those of `keys`, all of one group, that broker `id` keeps.
///
/// # Errors
/// As [`ask`], and the first error in the answer.
pub async fn known(
    peers: &Peers,
    id: i32,
    group_id: &str,
    keys: &[ShareKey],
) -> Result<Vec<ShareKey>, ErrorCode> {
    Ok(summaries(peers, id, group_id, keys).await?.into_iter().map(|(key, _)| key).collect())
}

async fn summaries(
    peers: &Peers,
    id: i32,
    group_id: &str,
    keys: &[ShareKey],
) -> Result<Vec<(ShareKey, Summary)>, ErrorCode> {
    let mut topics: BTreeMap<Uuid, Vec<summary::PartitionData>> = BTreeMap::new();
    for key in keys {
        let data = summary::PartitionData { partition: key.partition, leader_epoch: NO_EPOCH };
        topics.entry(key.topic_id).or_default().push(data);
    }
    let topics = topics.into_iter();
    let topics = topics.map(|(topic_id, partitions)| summary::ReadStateSummaryData { topic_id, partitions });
    let request =
        ReadShareGroupStateSummaryRequest { group_id: group_id.to_owned(), topics: topics.collect() };
    let answer = call(peers, id, &request).await?;
    let asked: HashSet<&ShareKey> = keys.iter().collect();
    let mut found = Vec::new();
    for topic in answer.results {
        for result in topic.partitions {
            let (topic_id, partition) = (topic.topic_id, result.partition);
            let key = ShareKey { group_id: group_id.to_owned(), topic_id, partition };
            match code(result.error_code) {
                // It is not there.
                ErrorCode::None if result.start_offset == UNKNOWN && result.state_epoch == NOT_THERE => {}
                ErrorCode::None if asked.contains(&key) => found.push((key, summary_of(&result))),
                ErrorCode::None => {}
                code => return Err(code),
            }
        }
    }
    Ok(found)
}

fn summary_of(result: &summary::PartitionResult) -> Summary {
    Summary {
        state_epoch: result.state_epoch,
        leader_epoch: result.leader_epoch,
        start_offset: result.start_offset,
        complete_count: result.delivery_complete_count.max(0),
    }
}

async fn call<Q: Request>(peers: &Peers, id: i32, request: &Q) -> Result<Q::Response, ErrorCode> {
    peers.call(id, request).await.map_err(|error| error.of_coordinator())
}

/// The outcome of the only partition.
fn done(mut codes: impl Iterator<Item = i16>) -> StateReply {
    StateReply::Done(codes.next().map_or(ErrorCode::UnknownServerError, code))
}

fn code(number: i16) -> ErrorCode {
    ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError)
}
