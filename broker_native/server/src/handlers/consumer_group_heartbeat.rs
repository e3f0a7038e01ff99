//! ConsumerGroupHeartbeat: asks the group's coordinator.
//!
//! KIP-848. Version 1 subscribes by a pattern that the broker resolves.
use uuid::Uuid;

use super::common::lookup::may_topic;
use crate::authorization::table::{
    CONSUMER_GROUP_HEARTBEAT_ASSIGNED, CONSUMER_GROUP_HEARTBEAT_GROUP, CONSUMER_GROUP_HEARTBEAT_TOPIC,
};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// Answers what the group says. An id for a member that has none is made here, because the machine is deterministic.
pub fn handle(call: Call, request: ConsumerGroupHeartbeatRequest) -> Outcome {
    if let Err(error) = check(&call, &request) {
        return Outcome::Now(call.answer(&error_response(error)));
    }
    let (group_id, fresh_member_id) = (request.group_id.clone(), Uuid::new_v4().to_string());
    let waiting = call.shared.coordinators.groups.call(&group_id, |ticket| GroupEvent {
        ticket,
        caller: call.caller(),
        request: GroupRequest::ConsumerHeartbeat { request, fresh_member_id },
    });
    Outcome::later(async move {
        call.answer(&match waiting.await {
            Ok(GroupReply::ConsumerHeartbeat(answer)) => visible(&call, answer),
            Ok(_) => error_response(ErrorCode::UnknownServerError),
            Err(error) => error_response(error),
        })
    })
}

/// Whether the client may belong to the group, and knows of the topics that it subscribes to by name.
fn check(call: &Call, request: &ConsumerGroupHeartbeatRequest) -> Result<(), ErrorCode> {
    call.check(&CONSUMER_GROUP_HEARTBEAT_GROUP, &request.group_id)?;
    let mut names = request.subscribed_topic_names.iter().flatten();
    names.try_for_each(|name| call.check(&CONSUMER_GROUP_HEARTBEAT_TOPIC, name))
}

/// The answer without topics that the client may not know of: an expression matches them for it, too.
fn visible(call: &Call, mut answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse {
    if let Some(assignment) = answer.assignment.as_mut().filter(|_| call.is_guarded()) {
        let right = &CONSUMER_GROUP_HEARTBEAT_ASSIGNED;
        assignment.topic_partitions.retain(|topic| may_topic(call, right, "", &topic.topic_id));
    }
    answer
}

fn error_response(error: ErrorCode) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        ..Default::default()
    }
}
