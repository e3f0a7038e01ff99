//! LeaveGroup: members leave at once, not after their session.
//!
//! Version 3 names several members, static ones too (KIP-345); 5 has the reason (KIP-800).
use super::common::group_call::{answer, error_of};
use crate::authorization::table::LEAVE_GROUP_GROUP;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::leave_group::MemberIdentity;
use pylog_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

/// First version with a list of members.
const MEMBERS_FROM: i16 = 3;

/// Asks the group.
pub fn handle(call: Call, mut request: LeaveGroupRequest) -> Outcome {
    if let Err(error) = call.check(&LEAVE_GROUP_GROUP, &request.group_id) {
        return Outcome::Now(
            call.answer(&LeaveGroupResponse { error_code: error.code(), ..Default::default() }),
        );
    }
    let one_member = call.version < MEMBERS_FROM;
    if one_member {
        let member_id = std::mem::take(&mut request.member_id);
        request.members = vec![MemberIdentity { member_id, ..Default::default() }];
    }
    answer(call, GroupRequest::LeaveGroup(request), move |reply| {
        let mut response = match reply {
            Ok(GroupReply::LeaveGroup(response)) => response,
            other => LeaveGroupResponse { error_code: error_of(other), ..Default::default() },
        };
        if one_member {
            let own = response.members.pop().map(|member| member.error_code).unwrap_or_default();
            response.error_code = if response.error_code == 0 { own } else { response.error_code };
        }
        response
    })
}
