//! TxnOffsetCommit: offsets that count when the producer's transaction commits.
use super::coordinated::{answered, ask_group};
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
        return Outcome::Now(call.answer(&refused(refusal, ErrorCode::InvalidGroupId)));
    }
    let waiting = ask_group(&call, GroupRequest::TxnOffsetCommit(request));
    answered(call, waiting, move |call, outcome| match outcome {
        Ok(GroupReply::TxnOffsetCommit(response)) => call.answer(&response),
        Err(ErrorCode::CoordinatorLoadInProgress) if call.version < LOADING_IS_KNOWN_FROM => {
            call.answer(&refused(refusal, ErrorCode::CoordinatorNotAvailable))
        }
        other => call.answer(&refused(refusal, other.err().unwrap_or(ErrorCode::UnknownServerError))),
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

fn refused(mut response: TxnOffsetCommitResponse, error: ErrorCode) -> TxnOffsetCommitResponse {
    for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error.code();
    }
    response
}
