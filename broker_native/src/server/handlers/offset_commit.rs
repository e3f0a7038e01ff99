//! OffsetCommit: the group's coordinator writes the offsets down.
use super::coordinated::{answered, ask_group};
use crate::coordinator::group::{GroupReply, GroupRequest};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use crate::wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

/// Answers when the offsets are written.
pub fn handle(call: Call, request: OffsetCommitRequest) -> Outcome {
    let mut refusal = refusal(&request);
    let waiting = ask_group(&call, GroupRequest::OffsetCommit(request));
    answered(call, waiting, move |call, outcome| match outcome {
        Ok(GroupReply::OffsetCommit(response)) => call.answer(&response),
        other => {
            let code = other.err().unwrap_or(ErrorCode::UnknownServerError).code();
            for partition in refusal.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.error_code = code;
            }
            call.answer(&refusal)
        }
    })
}

/// The answer to all partitions of the request, still without an error.
fn refusal(request: &OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|one| OffsetCommitResponsePartition {
                partition_index: one.partition_index,
                ..Default::default()
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
