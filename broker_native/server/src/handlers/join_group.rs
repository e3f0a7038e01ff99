//! JoinGroup: answered when the group has agreed who is in it.
//!
//! Version 1 has a timeout of its own for rebalances (KIP-62); from 4 on a member gets its id first and joins with that
//! (KIP-394); 5 has static members (KIP-345); 7 answers with the protocol's type (KIP-559); 8 has the reason (KIP-800); 9
//! spares a leader that came back the assignment (KIP-814).
use uuid::Uuid;

use super::common::group_call::{answer, error_of};
use crate::authorization::table::JOIN_GROUP_GROUP;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::{JoinGroupRequest, JoinGroupResponse};

/// First version in which a response may name no protocol.
const NULL_PROTOCOL_FROM: i16 = 7;

/// Asks the group.
pub fn handle(call: Call, mut request: JoinGroupRequest) -> Outcome {
    if let Err(error) = call.check(&JOIN_GROUP_GROUP, &request.group_id) {
        let protocol_name = (call.version < NULL_PROTOCOL_FROM).then(String::new);
        let refused = JoinGroupResponse { error_code: error.code(), protocol_name, ..Default::default() };
        return Outcome::Now(call.answer(&refused));
    }
    if call.version == 0 {
        request.rebalance_timeout_ms = request.session_timeout_ms;
    }
    let (version, member_id) = (call.version, request.member_id.clone());
    let asked = GroupRequest::JoinGroup { request, uuid: Uuid::new_v4() };
    answer(call, asked, move |reply| {
        let mut response = match reply {
            Ok(GroupReply::JoinGroup(response)) => response,
            other => JoinGroupResponse { error_code: error_of(other), member_id, ..Default::default() },
        };
        if version < NULL_PROTOCOL_FROM {
            response.protocol_name.get_or_insert_default();
        }
        response
    })
}
