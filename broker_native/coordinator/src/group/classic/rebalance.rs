//! The way from one generation to the next, and the group's deadlines.
use bytes::Bytes;

use super::group::{ClassicGroup, JOIN, SESSION, SYNC, refuse_sync};
use super::member::ClassicMember;
use super::state::{ClassicState, InitialDelay};
use crate::group::context::GroupContext;
use crate::group::requests::GroupReply;
use pylog_wire::ErrorCode;

impl ClassicGroup {
    /// Begins a rebalance, or goes on with the one that is under way.
    pub(super) fn rebalance_or_complete_join(&mut self, cx: &mut GroupContext<'_>) {
        if self.state.may_rebalance() {
            self.prepare_rebalance(cx);
        } else {
            self.complete_join_if_all_joined(cx);
        }
    }

    /// Begins a rebalance. Members that wait for their assignments are to join again: REBALANCE_IN_PROGRESS.
    pub(super) fn prepare_rebalance(&mut self, cx: &mut GroupContext<'_>) {
        if self.state == ClassicState::CompletingRebalance {
            self.withdraw_assignments(ErrorCode::RebalanceInProgress, cx);
        }
        self.pending_sync.clear();
        cx.cancel_timer("", SYNC);
        if self.state == ClassicState::Empty {
            let delay_ms = i64::from(cx.settings.group_initial_rebalance_delay_ms);
            let remaining_ms = (self.roster.rebalance_timeout_ms() - delay_ms).max(0);
            cx.set_timer("", JOIN, delay_ms);
            let delay = InitialDelay { delay_ms, remaining_ms, member_added: false };
            return self.become_state(ClassicState::PreparingRebalance(Some(delay)), cx.now_ms);
        }
        self.become_state(ClassicState::PreparingRebalance(None), cx.now_ms);
        if self.all_joined() {
            self.complete_join(cx);
        } else {
            cx.set_timer("", JOIN, self.roster.rebalance_timeout_ms());
        }
    }

    /// Takes all assignments back; members that wait for theirs get `error`.
    pub(super) fn withdraw_assignments(&mut self, error: ErrorCode, cx: &mut GroupContext<'_>) {
        for member_id in self.roster.ids() {
            self.roster.assign(&member_id, Bytes::new());
            let Some(member) = self.roster.get_mut(&member_id) else { continue };
            if let Some(ticket) = member.sync.take() {
                refuse_sync(Some(ticket), error, cx);
                self.expect_heartbeat(&member_id, cx);
            }
        }
    }

    /// Ends the phase of joining when all have joined. The first rebalance of a group waits for its time.
    pub(super) fn complete_join_if_all_joined(&mut self, cx: &mut GroupContext<'_>) {
        if self.state == ClassicState::PreparingRebalance(None) && self.all_joined() {
            self.complete_join(cx);
        }
    }

    /// Ends the phase of joining: dynamic members that have not joined are out, the others are the next generation. Without
    /// any that joined, static members are waited for once more.
    fn complete_join(&mut self, cx: &mut GroupContext<'_>) {
        cx.cancel_timer("", JOIN);
        let is_late = |member: &&ClassicMember| !member.awaits_join() && member.instance_id.is_none();
        let late: Vec<String> = self.roster.iter().filter(is_late).map(|m| m.member_id.clone()).collect();
        for member_id in late {
            self.remove(&member_id, ErrorCode::UnknownMemberId, cx);
        }
        if !self.roster.elect_joined_leader() && !self.roster.is_empty() {
            return cx.set_timer("", JOIN, self.roster.rebalance_timeout_ms());
        }
        self.generation_id = self.generation_id.checked_add(1).unwrap_or_default();
        self.pending_sync.clear();
        self.protocol_name = self.roster.select_protocol();
        self.topics = self.subscribed_topics();
        if self.roster.is_empty() {
            self.become_state(ClassicState::Empty, cx.now_ms);
            // Without members it is small.
            self.persist(cx);
            return;
        }
        self.become_state(ClassicState::CompletingRebalance, cx.now_ms);
        for member_id in self.roster.ids() {
            if let Some(ticket) = self.roster.take_join(&member_id) {
                cx.effects.reply(ticket, GroupReply::JoinGroup(self.joined(&member_id)));
            }
            if let Some(member) = self.roster.get_mut(&member_id) {
                member.is_new = false;
            }
            self.expect_heartbeat(&member_id, cx);
            self.pending_sync.insert(member_id);
        }
        cx.set_timer("", SYNC, self.roster.rebalance_timeout_ms());
    }

    /// A deadline is over.
    pub(super) fn deadline(&mut self, member_id: &str, purpose: &'static str, cx: &mut GroupContext<'_>) {
        match purpose {
            SESSION => self.session_over(member_id, cx),
            JOIN => self.join_over(cx),
            SYNC => self.sync_over(cx),
            _ => {}
        }
    }

    fn session_over(&mut self, member_id: &str, cx: &mut GroupContext<'_>) {
        if self.roster.get(member_id).is_some_and(ClassicMember::is_excused) {
            return;
        }
        let was_member = self.roster.contains(member_id);
        if !was_member && !self.pending_join.contains(member_id) {
            return;
        }
        self.remove(member_id, ErrorCode::UnknownMemberId, cx);
        if self.state.is_preparing() {
            if self.all_joined() {
                self.complete_join(cx);
            }
        } else if was_member {
            self.prepare_rebalance(cx);
        }
    }

    fn join_over(&mut self, cx: &mut GroupContext<'_>) {
        let ClassicState::PreparingRebalance(initial) = &mut self.state else { return };
        match initial {
            Some(delay) if delay.member_added && delay.remaining_ms > 0 => {
                let next_ms = delay.remaining_ms.min(i64::from(cx.settings.group_initial_rebalance_delay_ms));
                let remaining_ms = (delay.remaining_ms - delay.delay_ms).max(0);
                *delay = InitialDelay { delay_ms: next_ms, remaining_ms, member_added: false };
                cx.set_timer("", JOIN, next_ms);
            }
            _ => self.complete_join(cx),
        }
    }

    fn sync_over(&mut self, cx: &mut GroupContext<'_>) {
        if !matches!(self.state, ClassicState::CompletingRebalance | ClassicState::Stable)
            || self.pending_sync.is_empty()
        {
            return;
        }
        for member_id in std::mem::take(&mut self.pending_sync) {
            self.remove(&member_id, ErrorCode::UnknownMemberId, cx);
        }
        self.prepare_rebalance(cx);
    }

    /// The log is at its end: members have a whole session to be heard of. A group that is larger than allowed since the
    /// limit was lowered rebalances, so that its members can commit before some of them are out.
    pub(super) fn loaded(&mut self, cx: &mut GroupContext<'_>) {
        for member_id in self.roster.ids() {
            self.expect_heartbeat(&member_id, cx);
        }
        if self.roster.len() > usize::try_from(cx.settings.group_max_size).unwrap_or_default() {
            self.prepare_rebalance(cx);
        }
    }
}
