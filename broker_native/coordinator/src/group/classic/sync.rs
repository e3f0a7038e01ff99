//! SyncGroup: the leader's assignments make a generation stable. Heartbeat: a member asks whether it still is.
use std::collections::HashMap;

use bytes::Bytes;

use super::group::{ClassicGroup, SYNC, refuse_sync};
use super::state::ClassicState;
use crate::Ticket;
use crate::group::context::GroupContext;
use crate::group::requests::GroupReply;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{HeartbeatRequest, SyncGroupRequest};

impl ClassicGroup {
    /// Takes a SyncGroup.
    pub(super) fn sync(&mut self, ticket: Ticket, request: &SyncGroupRequest, cx: &mut GroupContext<'_>) {
        if let Err(error) = self.check_sync(request, cx) {
            return refuse_sync(Some(ticket), error, cx);
        }
        let member_id = request.member_id.as_str();
        self.pending_sync.remove(member_id);
        if self.pending_sync.is_empty() {
            cx.cancel_timer("", SYNC);
        }
        let Some(member) = self.roster.get_mut(member_id) else { return };
        if self.state == ClassicState::Stable {
            let response = self.roster.get(member_id).map(|member| self.synced(member)).unwrap_or_default();
            return cx.effects.reply(ticket, GroupReply::SyncGroup(response));
        }
        let earlier = member.sync.replace(ticket);
        refuse_sync(earlier, ErrorCode::RebalanceInProgress, cx);
        if self.roster.is_leader(member_id) {
            self.assign(request, cx);
        }
    }

    fn check_sync(&self, request: &SyncGroupRequest, cx: &GroupContext<'_>) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation_id {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs = |asked: &Option<String>, known: &Option<String>| {
            asked.is_some() && known.is_some() && asked != known
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match self.state {
            ClassicState::CompletingRebalance => {
                let bytes = request.assignments.iter().map(|member| member.assignment.len()).sum();
                // It may be there when the member tries again.
                if cx.room.has(bytes) { Ok(()) } else { Err(ErrorCode::CoordinatorNotAvailable) }
            }
            ClassicState::Stable => Ok(()),
            ClassicState::PreparingRebalance(_) => Err(ErrorCode::RebalanceInProgress),
            ClassicState::Empty | ClassicState::Dead => Err(ErrorCode::UnknownMemberId),
        }
    }

    /// Takes the leader's assignments; a member that it left out gets an empty one. When all together are too large for the
    /// log, every member gets UNKNOWN_SERVER_ERROR, as in Kafka, and joins again.
    fn assign(&mut self, request: &SyncGroupRequest, cx: &mut GroupContext<'_>) {
        let mut given: HashMap<&str, &Bytes> =
            request.assignments.iter().map(|a| (a.member_id.as_str(), &a.assignment)).collect();
        for member_id in self.roster.ids() {
            // A copy, so that the request's frame is not kept.
            let assignment = given.remove(member_id.as_str()).map(|bytes| Bytes::copy_from_slice(bytes));
            self.roster.assign(&member_id, assignment.unwrap_or_default());
        }
        let before_ms = self.since_ms;
        self.become_state(ClassicState::Stable, cx.now_ms);
        if !self.persist(cx) {
            (self.state, self.since_ms) = (ClassicState::CompletingRebalance, before_ms);
            self.withdraw_assignments(ErrorCode::UnknownServerError, cx);
            return self.prepare_rebalance(cx);
        }
        for member_id in self.roster.ids() {
            let Some(ticket) = self.roster.get_mut(&member_id).and_then(|member| member.sync.take()) else {
                continue;
            };
            if let Some(member) = self.roster.get(&member_id) {
                cx.effects.reply(ticket, GroupReply::SyncGroup(self.synced(member)));
            }
            // Its session may have ended while it waited, when that did not count.
            self.expect_heartbeat(&member_id, cx);
        }
    }

    /// Takes a Heartbeat.
    pub(super) fn heartbeat(
        &mut self,
        request: &HeartbeatRequest,
        cx: &mut GroupContext<'_>,
    ) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation_id {
            return Err(ErrorCode::IllegalGeneration);
        }
        self.expect_heartbeat(&request.member_id, cx);
        if self.state.is_preparing() { Err(ErrorCode::RebalanceInProgress) } else { Ok(()) }
    }
}
