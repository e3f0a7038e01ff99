//! JoinGroup: which member joins, under which id, and whether that means a rebalance.
use uuid::Uuid;

use super::group::{ClassicGroup, SESSION, refuse_join, refuse_sync};
use super::member::{ClassicMember, protocols_bytes};
use super::state::ClassicState;
use crate::group::context::GroupContext;
use crate::group::requests::GroupReply;
use crate::{Caller, Ticket};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{JoinGroupRequest, JoinGroupResponse};

/// First version whose senders come back with the id that MEMBER_ID_REQUIRED gives them.
const REQUIRES_MEMBER_ID_FROM: i16 = 4;
/// First version whose senders understand that a leader must not assign.
const SKIPS_ASSIGNMENT_FROM: i16 = 9;
/// How long a new member may wait for its first generation. It has no id yet that it could send heartbeats with, and a
/// client that gave up would otherwise stay for as long as the rebalance lasts; one that is alive joins again.
const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = /* 5 minutes */ 300_000;

impl ClassicGroup {
    /// Takes a JoinGroup. `uuid` makes the id of a new member.
    pub(super) fn join(
        &mut self,
        ticket: Ticket,
        who: &Caller,
        request: &JoinGroupRequest,
        uuid: Uuid,
        cx: &mut GroupContext<'_>,
    ) {
        let member_id = request.member_id.as_str();
        if !self.has_room_for(member_id, cx.settings.group_max_size) {
            self.remove(member_id, ErrorCode::UnknownMemberId, cx);
            refuse_join(Some(ticket), "", ErrorCode::GroupMaxSizeReached, cx);
        } else if !cx.room.has(self.growth(who, request)) {
            refuse_join(Some(ticket), member_id, ErrorCode::GroupMaxSizeReached, cx);
        } else if !self.speaks(request) {
            refuse_join(Some(ticket), member_id, ErrorCode::InconsistentGroupProtocol, cx);
        } else if member_id.is_empty() {
            self.join_anew(ticket, who, request, uuid, cx);
        } else {
            self.join_again(ticket, who, request, cx);
        }
    }

    /// While members are awaited, those who have joined count: the last ones to come back are out when the limit was
    /// lowered. Else the members count.
    fn has_room_for(&self, member_id: &str, max_size: i32) -> bool {
        let max_size = usize::try_from(max_size).unwrap_or_default();
        match self.state {
            ClassicState::Empty | ClassicState::Dead => true,
            ClassicState::PreparingRebalance(_) => {
                self.roster.get(member_id).is_some_and(ClassicMember::awaits_join)
                    || self.roster.awaiting_join() < max_size
            }
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                self.roster.contains(member_id) || self.roster.len() < max_size
            }
        }
    }

    /// How many bytes more the group has with this JoinGroup.
    fn growth(&self, who: &Caller, request: &JoinGroupRequest) -> usize {
        let instance = request.group_instance_id.as_deref();
        let known = self.roster.get(&request.member_id);
        let known = known.or_else(|| self.roster.get(self.roster.static_member(instance?)?));
        match known {
            Some(member) => {
                protocols_bytes(&request.protocols).saturating_sub(protocols_bytes(&member.protocols))
            }
            None => ClassicMember::new(request.member_id.clone(), &who.client_id, &who.host, request).bytes(),
        }
    }

    /// Whether the member and the others have a protocol in common.
    fn speaks(&self, request: &JoinGroupRequest) -> bool {
        if self.state == ClassicState::Empty {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        self.protocol_type() == request.protocol_type && self.roster.any_is_common(&request.protocols)
    }

    fn join_anew(
        &mut self,
        ticket: Ticket,
        who: &Caller,
        request: &JoinGroupRequest,
        uuid: Uuid,
        cx: &mut GroupContext<'_>,
    ) {
        if let Some(instance_id) = &request.group_instance_id {
            let new_id = format!("{instance_id}-{uuid}");
            match self.roster.static_member(instance_id).map(str::to_owned) {
                Some(old_id) => self.replace(ticket, who.version, request, &old_id, &new_id, cx),
                None => self.add(ticket, who, request, new_id, cx),
            }
            return;
        }
        let new_id = format!("{}-{uuid}", who.client_id);
        if who.version < REQUIRES_MEMBER_ID_FROM {
            return self.add(ticket, who, request, new_id, cx);
        }
        cx.set_timer(&new_id, SESSION, i64::from(request.session_timeout_ms));
        refuse_join(Some(ticket), &new_id, ErrorCode::MemberIdRequired, cx);
        self.pending_join.insert(new_id);
    }

    fn add(
        &mut self,
        ticket: Ticket,
        who: &Caller,
        request: &JoinGroupRequest,
        member_id: String,
        cx: &mut GroupContext<'_>,
    ) {
        let mut member = ClassicMember::new(member_id.clone(), &who.client_id, &who.host, request);
        member.join = Some(ticket);
        if let ClassicState::PreparingRebalance(Some(delay)) = &mut self.state {
            delay.member_added = true;
        }
        self.pending_join.remove(&member_id);
        if self.roster.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        self.roster.add(member);
        cx.set_timer(&member_id, SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete_join(cx);
    }

    /// A member that has an id.
    fn join_again(
        &mut self,
        ticket: Ticket,
        who: &Caller,
        request: &JoinGroupRequest,
        cx: &mut GroupContext<'_>,
    ) {
        let member_id = request.member_id.as_str();
        let instance_id = request.group_instance_id.as_deref();
        if self.pending_join.contains(member_id) {
            match instance_id {
                None => self.add(ticket, who, request, member_id.to_owned(), cx),
                // Ids are given out to dynamic members only.
                Some(_) => refuse_join(Some(ticket), member_id, ErrorCode::UnknownServerError, cx),
            }
            return;
        }
        if let Err(error) = self.check_member(member_id, instance_id) {
            return refuse_join(Some(ticket), member_id, error, cx);
        }
        let unchanged = self.roster.get(member_id).is_some_and(|m| m.protocols == request.protocols);
        let answered_at_once = match self.state {
            ClassicState::Empty | ClassicState::Dead => {
                return refuse_join(Some(ticket), member_id, ErrorCode::UnknownMemberId, cx);
            }
            ClassicState::PreparingRebalance(_) => false,
            // It did not get the answer to its JoinGroup.
            ClassicState::CompletingRebalance => unchanged,
            // The leader may want a rebalance for what no metadata shows, such as new partitions.
            ClassicState::Stable => unchanged && !self.roster.is_leader(member_id),
        };
        if answered_at_once {
            cx.effects.reply(ticket, GroupReply::JoinGroup(self.joined(member_id)));
        } else {
            self.update(ticket, request, member_id, cx);
            self.rebalance_or_complete_join(cx);
        }
    }

    fn update(
        &mut self,
        ticket: Ticket,
        request: &JoinGroupRequest,
        member_id: &str,
        cx: &mut GroupContext<'_>,
    ) {
        let earlier = self.roster.update(member_id, request, ticket);
        refuse_join(earlier, member_id, ErrorCode::RebalanceInProgress, cx);
    }

    /// A static member came back under its instance id: it takes the place of its former self, and without a rebalance when
    /// the group is stable and stays with its protocol.
    fn replace(
        &mut self,
        ticket: Ticket,
        version: i16,
        request: &JoinGroupRequest,
        old_id: &str,
        new_id: &str,
        cx: &mut GroupContext<'_>,
    ) {
        let leader_before = self.roster.leader().unwrap_or_default().to_owned();
        let (join, sync) = self.roster.rename(old_id, new_id);
        refuse_join(join, old_id, ErrorCode::FencedInstanceId, cx);
        refuse_sync(sync, ErrorCode::FencedInstanceId, cx);
        if self.pending_sync.remove(old_id) {
            self.pending_sync.insert(new_id.to_owned());
        }
        cx.cancel_timer(old_id, SESSION);
        self.update(ticket, request, new_id, cx);
        self.expect_heartbeat(new_id, cx);
        match self.state {
            ClassicState::Stable if self.roster.select_protocol() == self.protocol_name => {
                let ticket = self.roster.take_join(new_id);
                // When it has become too large, only a restart will not know the new id: the member joins again then.
                self.persist(cx);
                let response = self.replaced(version, new_id, leader_before);
                if let Some(ticket) = ticket {
                    cx.effects.reply(ticket, GroupReply::JoinGroup(response));
                }
            }
            // The leader may know the old id already, and would give the assignment to that.
            ClassicState::Stable | ClassicState::CompletingRebalance => self.prepare_rebalance(cx),
            _ => self.complete_join_if_all_joined(cx),
        }
    }

    fn replaced(&self, version: i16, new_id: &str, leader_before: String) -> JoinGroupResponse {
        if version >= SKIPS_ASSIGNMENT_FROM {
            let skip_assignment = self.roster.is_leader(new_id);
            return JoinGroupResponse { skip_assignment, ..self.joined(new_id) };
        }
        // The answer names another leader, which keeps an older client from assigning.
        JoinGroupResponse { leader: leader_before, members: Vec::new(), ..self.joined(new_id) }
    }
}
