//! OffsetCommit: the group's coordinator writes the offsets down.
//!
//! Version 5 has no time after which offsets are forgotten any more (KIP-211); 6 has the leader's epoch (KIP-320); 7 static
//! members (KIP-345); 9 is for members of KIP-848 too; 10 names topics by id (KIP-848).
use super::common::group_call::{answer, error_of};
use super::common::lookup::check_topic;
use crate::authorization::table::{OFFSET_COMMIT_GROUP, OFFSET_COMMIT_TOPIC};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::offset_commit::{
    OffsetCommitRequestTopic, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use pylog_wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

/// Answers when the offsets are written.
pub fn handle(call: Call, mut request: OffsetCommitRequest) -> Outcome {
    if let Err(error) = call.check(&OFFSET_COMMIT_GROUP, &request.group_id) {
        let response = error_response(blank_response(&request.topics), error.code());
        return Outcome::Now(call.answer(&response));
    }
    let refused = call.set_aside_with(&mut request.topics, |topic| {
        check_topic(&call, &OFFSET_COMMIT_TOPIC, &topic.name, &topic.topic_id)
    });
    let refused = refused
        .into_iter()
        .flat_map(|(topic, error)| error_response(blank_response(&[topic]), error.code()).topics);
    let refused = OffsetCommitResponse { topics: refused.collect(), ..Default::default() };
    if request.topics.is_empty() && !refused.topics.is_empty() {
        return Outcome::Now(call.answer(&refused));
    }
    let blank_response = blank_response(&request.topics);
    answer(call, GroupRequest::OffsetCommit(request), move |reply| {
        let mut response = match reply {
            Ok(GroupReply::OffsetCommit(response)) => response,
            other => error_response(blank_response, error_of(other)),
        };
        response.topics.extend(refused.topics);
        response
    })
}

fn error_response(mut response: OffsetCommitResponse, error_code: i16) -> OffsetCommitResponse {
    for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error_code;
    }
    response
}

/// The answer to all partitions of the topics, still without an error.
fn blank_response(topics: &[OffsetCommitRequestTopic]) -> OffsetCommitResponse {
    let topics = topics.iter().map(|topic| OffsetCommitResponseTopic {
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
