//! ShareGroupHeartbeat: asks the group's coordinator; makes the topic in which what the group does is kept.
//!
//! KIP-932.
use super::common::group_call::{answer, ask, error_of};
use super::common::internal_topic;
use super::common::share_call::{NOT_AT_THE_LEVEL, is_refused};
use crate::authorization::table::{SHARE_GROUP_HEARTBEAT_GROUP, SHARE_GROUP_HEARTBEAT_TOPIC};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};

/// Answers what the group says.
pub fn handle(call: Call, request: ShareGroupHeartbeatRequest) -> Outcome {
    if is_refused(&call) {
        let error = ErrorCode::UnsupportedVersion;
        return Outcome::Now(call.answer(&error_response(error, NOT_AT_THE_LEVEL)));
    }
    if let Err(error) = check(&call, &request) {
        return Outcome::Now(call.answer(&error_response(error, error.sentence())));
    }
    let membership = call.shared.share_groups.configs.membership_of(&request.group_id);
    let request = GroupRequest::ShareHeartbeat { request, membership };
    // Only the group's coordinator has it made.
    let groups = &call.shared.coordinators.groups;
    let is_ours =
        groups.partition_of(request.group_id()).is_some_and(|number| groups.shard(number).is_some());
    let missing = internal_topic::missing(&call.shared.coordinators.shares).filter(|_| is_ours);
    let Some(topic) = missing else {
        return answer(call, request, response_of);
    };
    Outcome::in_order(async move {
        call.shared.metrics.events.increment();
        internal_topic::make(&call, topic).await;
        let reply = ask(&call, request).await;
        call.answer(&response_of(reply))
    })
}

/// Whether the client may belong to the group, and knows of the topics that it subscribes to.
fn check(call: &Call, request: &ShareGroupHeartbeatRequest) -> Result<(), ErrorCode> {
    call.check(&SHARE_GROUP_HEARTBEAT_GROUP, &request.group_id)?;
    let mut names = request.subscribed_topic_names.iter().flatten();
    names.try_for_each(|name| call.check(&SHARE_GROUP_HEARTBEAT_TOPIC, name))
}

fn response_of(reply: Result<GroupReply, ErrorCode>) -> ShareGroupHeartbeatResponse {
    match reply {
        Ok(GroupReply::ShareHeartbeat(answer)) => answer,
        other => {
            let error = ErrorCode::from_code(error_of(other)).unwrap_or(ErrorCode::UnknownServerError);
            error_response(error, error.sentence())
        }
    }
}

fn error_response(error: ErrorCode, sentence: &str) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse {
        error_code: error.code(),
        error_message: Some(sentence.to_owned()),
        ..Default::default()
    }
}
