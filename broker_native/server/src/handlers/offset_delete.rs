//! OffsetDelete: the group's coordinator forgets offsets.
//!
//! KIP-496.
use super::common::group_call::{answer, error_of};
use crate::authorization::table::{OFFSET_DELETE_GROUP, OFFSET_DELETE_TOPIC};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_delete::{
    OffsetDeleteRequestTopic, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use pylog_wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, mut request: OffsetDeleteRequest) -> Outcome {
    if let Err(error) = call.check(&OFFSET_DELETE_GROUP, &request.group_id) {
        return Outcome::Now(call.answer(&error_response(error.code())));
    }
    if request.group_id.is_empty() {
        return Outcome::Now(call.answer(&error_response(ErrorCode::InvalidGroupId.code())));
    }
    let refused = call.set_aside(&mut request.topics, &OFFSET_DELETE_TOPIC, |topic| &topic.name);
    let refused: Vec<_> = refused.into_iter().map(refusal).collect();
    if request.topics.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&OffsetDeleteResponse { topics: refused, ..Default::default() }));
    }
    answer(call, GroupRequest::OffsetDelete(request), |reply| match reply {
        Ok(GroupReply::OffsetDelete(mut response)) => {
            // An error of all says nothing about topics.
            if response.error_code == ErrorCode::None.code() {
                response.topics.extend(refused);
            }
            response
        }
        other => error_response(error_of(other)),
    })
}

/// The answer about a topic that the client may not read.
fn refusal(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic {
    let error_code = OFFSET_DELETE_TOPIC.error().code();
    let partitions = topic.partitions.into_iter();
    let refused = partitions.map(|partition| OffsetDeleteResponsePartition {
        partition_index: partition.partition_index,
        error_code,
    });
    OffsetDeleteResponseTopic { name: topic.name, partitions: refused.collect() }
}

fn error_response(error_code: i16) -> OffsetDeleteResponse {
    OffsetDeleteResponse { error_code, ..Default::default() }
}
