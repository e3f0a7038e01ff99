//! TxnOffsetCommit: offsets that count when the producer's transaction commits.
use super::group_call::{answer, error_of};
use crate::coordinator::group::{GroupReply, GroupRequest};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::txn_offset_commit::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use crate::wire::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

/// From this version on clients cope with COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
const LOADING_IS_KNOWN_FROM: i16 = 2;

/// Answers when the offsets are written.
pub fn handle(call: Call, request: TxnOffsetCommitRequest) -> Outcome {
    let refusal = refusal(&request);
    if request.group_id.is_empty() {
        return Outcome::Now(call.answer(&refused(refusal, ErrorCode::InvalidGroupId.code())));
    }
    let version = call.version;
    answer(call, GroupRequest::TxnOffsetCommit(request), move |reply| match reply {
        Ok(GroupReply::TxnOffsetCommit(response)) => response,
        Err(ErrorCode::CoordinatorLoadInProgress) if version < LOADING_IS_KNOWN_FROM => {
            refused(refusal, ErrorCode::CoordinatorNotAvailable.code())
        }
        other => refused(refusal, error_of(other)),
    })
}

/// The answer to all partitions of the request, still without an error.
fn refusal(request: &TxnOffsetCommitRequest) -> TxnOffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|one| TxnOffsetCommitResponsePartition {
                partition_index: one.partition_index,
                ..Default::default()
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

fn refused(mut response: TxnOffsetCommitResponse, error_code: i16) -> TxnOffsetCommitResponse {
    for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error_code;
    }
    response
}
