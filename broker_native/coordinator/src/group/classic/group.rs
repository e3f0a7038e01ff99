//! One group of the classic protocol, and the small steps that the others are made of.
use std::collections::BTreeSet;

use bytes::Bytes;

use super::expected::Expected;
use super::member::ClassicMember;
use super::roster::Roster;
use super::state::ClassicState;
use crate::Ticket;
use crate::group::context::GroupContext;
use crate::group::requests::GroupReply;
use pylog_wire::messages::join_group::JoinGroupResponseMember;
use pylog_wire::messages::{JoinGroupResponse, SyncGroupResponse};
use pylog_wire::{ErrorCode, Reader};

/// A member's session: its heartbeat is missed when this is over.
pub(super) const SESSION: &str = "classic-session";
/// The group's: members that have not joined by then are out.
pub(super) const JOIN: &str = "classic-join";
/// The group's: members that have not synced by then are out.
pub(super) const SYNC: &str = "classic-sync";
/// Protocol type of consumers; their metadata can be read.
pub(super) const CONSUMER: &str = "consumer";

/// The members of a group and its state.
#[derive(Debug, Clone)]
pub struct ClassicGroup {
    pub(super) state: ClassicState,
    /// Since when it is in its state; unknown when the log does not say.
    pub(super) since_ms: Option<i64>,
    pub(super) generation_id: i32,
    pub(super) protocol_type: Option<String>,
    /// What the members agreed upon.
    pub(super) protocol_name: Option<String>,
    pub(super) roster: Roster,
    /// Ids that were given out with MEMBER_ID_REQUIRED and have not come back.
    pub(super) pending_join: Expected,
    /// Members of this generation that have not asked for their assignment.
    pub(super) pending_sync: BTreeSet<String>,
    /// Topics that the members are subscribed to, as far as they can be known.
    pub(super) topics: Option<BTreeSet<String>>,
    /// Whether the log has a record of it.
    pub(super) in_log: bool,
}

impl ClassicGroup {
    /// Without members, made at `now_ms`.
    pub fn new(now_ms: i64) -> Self {
        Self {
            state: ClassicState::Empty,
            since_ms: Some(now_ms),
            generation_id: 0,
            protocol_type: None,
            protocol_name: None,
            roster: Roster::default(),
            pending_join: Expected::default(),
            pending_sync: BTreeSet::new(),
            topics: None,
            in_log: false,
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.roster.bytes() + self.pending_join.bytes()
    }

    /// Its state.
    pub fn state(&self) -> ClassicState {
        self.state
    }

    /// Counts the rebalances.
    pub fn generation_id(&self) -> i32 {
        self.generation_id
    }

    /// Its members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Whether forgetting it would lose nothing: it has and had no member.
    pub(super) fn is_untouched(&self) -> bool {
        self.state == ClassicState::Empty && !self.in_log && self.pending_join.is_empty()
    }

    /// Goes on to another state.
    pub(super) fn become_state(&mut self, next: ClassicState, now_ms: i64) {
        debug_assert!(self.state.may_become(next), "{} -> {}", self.state.name(), next.name());
        self.state = next;
        self.since_ms = Some(now_ms);
    }

    /// Whether all members have joined and no other one is expected.
    pub(super) fn all_joined(&self) -> bool {
        self.roster.all_await_join() && self.pending_join.is_empty()
    }

    /// Whether the request's member is who it says.
    pub(super) fn check_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.roster.static_member(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(known) if known != member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.roster.contains(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// A sign of life: the member's session begins anew.
    pub(super) fn expect_heartbeat(&self, member_id: &str, cx: &mut GroupContext<'_>) {
        if let Some(member) = self.roster.get(member_id) {
            cx.set_timer(member_id, SESSION, i64::from(member.session_timeout_ms));
        }
    }

    /// Takes a member, or an id that was given out, out of the group. A request of it that waits is answered with `error`.
    pub(super) fn remove(&mut self, member_id: &str, error: ErrorCode, cx: &mut GroupContext<'_>) {
        self.pending_join.remove(member_id);
        self.pending_sync.remove(member_id);
        cx.cancel_timer(member_id, SESSION);
        if let Some(member) = self.roster.remove(member_id) {
            refuse_join(member.join, "", error, cx);
            refuse_sync(member.sync, error, cx);
        }
    }

    /// The generation as the answer to a member shows it; only the leader's answer names the other members.
    pub(super) fn joined(&self, member_id: &str) -> JoinGroupResponse {
        JoinGroupResponse {
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.roster.leader().unwrap_or_default().to_owned(),
            member_id: member_id.to_owned(),
            members: if self.roster.is_leader(member_id) { self.members_for_leader() } else { Vec::new() },
            ..Default::default()
        }
    }

    fn members_for_leader(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        self.roster.iter().map(|member| member.for_leader(protocol)).collect()
    }

    /// What a member got from the leader.
    pub(super) fn synced(&self, member: &ClassicMember) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member.assignment.clone(),
            ..Default::default()
        }
    }

    /// What consumers are subscribed to. Unknown for other protocols, and when a member's metadata cannot be read.
    pub(super) fn subscribed_topics(&self) -> Option<BTreeSet<String>> {
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return None;
        }
        if self.roster.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.roster.iter() {
            topics.extend(subscription(&member.metadata(protocol))?);
        }
        Some(topics)
    }
}

/// The topics in a consumer's metadata: its version, then an array of strings, in every version so far.
fn subscription(metadata: &Bytes) -> Option<Vec<String>> {
    use pylog_wire::field::{Field, Version};
    let plain = Version { number: 0, flexible: false };
    let mut reader = Reader::new(metadata.clone());
    i16::read(&mut reader, plain).ok()?;
    Vec::<String>::read(&mut reader, plain).ok()
}

/// Refuses a JoinGroup, if one waits.
pub(super) fn refuse_join(
    ticket: Option<Ticket>,
    member_id: &str,
    error: ErrorCode,
    cx: &mut GroupContext<'_>,
) {
    if let Some(ticket) = ticket {
        cx.effects.reply(ticket, GroupReply::JoinGroup(not_joined(member_id, error)));
    }
}

/// Refuses a SyncGroup, if one waits.
pub(super) fn refuse_sync(ticket: Option<Ticket>, error: ErrorCode, cx: &mut GroupContext<'_>) {
    if let Some(ticket) = ticket {
        let response = SyncGroupResponse { error_code: error.code(), ..Default::default() };
        cx.effects.reply(ticket, GroupReply::SyncGroup(response));
    }
}

/// A JoinGroup's refusal.
pub(super) fn not_joined(member_id: &str, error: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: error.code(),
        member_id: member_id.to_owned(),
        protocol_name: None,
        ..Default::default()
    }
}
