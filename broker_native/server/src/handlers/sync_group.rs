//! SyncGroup: answered when the leader has brought the assignments.
//!
//! Version 3 has static members (KIP-345); 5 the protocol's type and name, in the request and in the answer (KIP-559).
use super::common::group_call::{answer, error_of};
use crate::authorization::table::SYNC_GROUP_GROUP;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::{SyncGroupRequest, SyncGroupResponse};

/// Asks the group.
pub fn handle(call: Call, request: SyncGroupRequest) -> Outcome {
    if let Err(error) = call.check(&SYNC_GROUP_GROUP, &request.group_id) {
        return Outcome::Now(
            call.answer(&SyncGroupResponse { error_code: error.code(), ..Default::default() }),
        );
    }
    answer(call, GroupRequest::SyncGroup(request), |reply| match reply {
        Ok(GroupReply::SyncGroup(response)) => response,
        other => SyncGroupResponse { error_code: error_of(other), ..Default::default() },
    })
}
