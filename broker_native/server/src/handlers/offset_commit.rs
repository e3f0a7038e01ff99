//! OffsetCommit: the group's coordinator writes the offsets down.
//!
//! Version 5 has no time after which offsets are forgotten any more (KIP-211); 6 has the leader's epoch (KIP-320); 7 static
//! members (KIP-345); 9 is for members of KIP-848 too; 10 names topics by id (KIP-848).
use super::common::group_call::{answer, error_of};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use pylog_wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

/// Answers when the offsets are written.
pub fn handle(call: Call, request: OffsetCommitRequest) -> Outcome {
    let mut blank_response = blank_response(&request);
    answer(call, GroupRequest::OffsetCommit(request), move |reply| match reply {
        Ok(GroupReply::OffsetCommit(response)) => response,
        other => {
            let code = error_of(other);
            for partition in blank_response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.error_code = code;
            }
            blank_response
        }
    })
}

/// The answer to all partitions of the request, still without an error.
fn blank_response(request: &OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                ..Default::default()
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
