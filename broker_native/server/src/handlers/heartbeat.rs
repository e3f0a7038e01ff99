//! Heartbeat.
//!
//! Version 3 has static members (KIP-345).
use super::common::group_call::{answer, error_of};
use crate::authorization::table::HEARTBEAT_GROUP;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{HeartbeatRequest, HeartbeatResponse};

/// Asks the group. While it is loaded every member is taken to be alive: sessions begin when that is done.
pub fn handle(call: Call, request: HeartbeatRequest) -> Outcome {
    if let Err(error) = call.check(&HEARTBEAT_GROUP, &request.group_id) {
        return Outcome::Now(
            call.answer(&HeartbeatResponse { error_code: error.code(), ..Default::default() }),
        );
    }
    answer(call, GroupRequest::Heartbeat(request), |reply| match reply {
        Ok(GroupReply::Heartbeat(response)) => response,
        Err(ErrorCode::CoordinatorLoadInProgress) => HeartbeatResponse::default(),
        other => HeartbeatResponse { error_code: error_of(other), ..Default::default() },
    })
}
