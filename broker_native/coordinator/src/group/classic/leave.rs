//! LeaveGroup: members go, several at once, by their ids or by their instance ids (an administrator's way).
use super::group::ClassicGroup;
use crate::group::context::GroupContext;
use pylog_wire::ErrorCode;
use pylog_wire::messages::leave_group::{MemberIdentity, MemberResponse};
use pylog_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

impl ClassicGroup {
    /// Takes a LeaveGroup; the handler has put the one member of an old request into `members`.
    pub(super) fn leave(
        &mut self,
        request: &LeaveGroupRequest,
        cx: &mut GroupContext<'_>,
    ) -> LeaveGroupResponse {
        let members: Vec<MemberResponse> = request
            .members
            .iter()
            .map(|identity| {
                let outcome = self.leaving(identity).map(|member_id| {
                    self.remove(&member_id, ErrorCode::UnknownMemberId, cx);
                });
                response(identity, outcome.err().unwrap_or(ErrorCode::None))
            })
            .collect();
        if members.iter().any(|member| member.error_code == ErrorCode::None.code()) && !self.is_empty() {
            self.rebalance_or_complete_join(cx);
        }
        LeaveGroupResponse { members, ..Default::default() }
    }

    /// The id of the member that leaves.
    fn leaving(&self, identity: &MemberIdentity) -> Result<String, ErrorCode> {
        let instance_id = identity.group_instance_id.as_deref();
        if identity.member_id.is_empty() {
            let known = instance_id.and_then(|instance_id| self.roster.static_member(instance_id));
            return known.map(str::to_owned).ok_or(ErrorCode::UnknownMemberId);
        }
        if !self.pending_join.contains(&identity.member_id) {
            self.check_member(&identity.member_id, instance_id)?;
        }
        Ok(identity.member_id.clone())
    }
}

/// The answer of a group that has no members.
pub(super) fn all_unknown(request: &LeaveGroupRequest) -> LeaveGroupResponse {
    let members = request.members.iter().map(|identity| response(identity, ErrorCode::UnknownMemberId));
    LeaveGroupResponse { members: members.collect(), ..Default::default() }
}

fn response(identity: &MemberIdentity, error: ErrorCode) -> MemberResponse {
    MemberResponse {
        member_id: identity.member_id.clone(),
        group_instance_id: identity.group_instance_id.clone(),
        error_code: error.code(),
    }
}
