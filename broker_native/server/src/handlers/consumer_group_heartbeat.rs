//! ConsumerGroupHeartbeat: asks the group's coordinator.
//!
//! KIP-848. Version 1 subscribes by a pattern that the broker resolves.
use uuid::Uuid;

use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// Answers what the group says. An id for a member that has none is made here, because the machine is deterministic.
pub fn handle(call: Call, request: ConsumerGroupHeartbeatRequest) -> Outcome {
    let (group_id, fresh_member_id) = (request.group_id.clone(), Uuid::new_v4().to_string());
    let waiting = call.shared.coordinators.groups.call(&group_id, |ticket| GroupEvent {
        ticket,
        caller: call.caller(),
        request: GroupRequest::ConsumerHeartbeat { request, fresh_member_id },
    });
    Outcome::later(async move {
        let error_response = |error: ErrorCode| ConsumerGroupHeartbeatResponse {
            error_code: error.code(),
            error_message: Some(error.sentence().to_owned()),
            ..Default::default()
        };
        call.answer(&match waiting.await {
            Ok(GroupReply::ConsumerHeartbeat(answer)) => answer,
            Ok(_) => error_response(ErrorCode::UnknownServerError),
            Err(error) => error_response(error),
        })
    })
}
