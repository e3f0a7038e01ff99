//! Leaving a group: for good, for a while (static members), or because the coordinator says so.
use super::super::context::GroupContext;
use super::super::refusal::{Refusal, not_found, not_of_this_kind};
use super::super::state::{Group, GroupKind};
use super::change::ConsumerChange;
use super::group::{CONSUMER, ConsumerGroup, REBALANCE, SESSION, owned_since};
use super::member::{ConsumerMember, LEFT_FOR_A_WHILE, Owned};
use super::refusals::{check_holder, unknown_instance, unknown_member};
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// Takes the heartbeat of a member that leaves.
///
/// # Errors
/// GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
pub fn handle(
    group: &mut Group,
    request: &ConsumerGroupHeartbeatRequest,
    cx: &mut GroupContext<'_>,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    let group = match &mut group.kind {
        GroupKind::Consumer(group) => group,
        GroupKind::Classic(_) | GroupKind::Share(_) => return Err(not_of_this_kind(cx.group_id, CONSUMER)),
        GroupKind::Simple => return Err(not_found(cx.group_id)),
    };
    let member_id = &request.member_id;
    match &request.instance_id {
        None if group.members.contains_key(member_id) => group.fence(member_id, cx),
        None => return Err(unknown_member(member_id, cx.group_id)),
        Some(instance_id) => {
            let holder = group.static_member(instance_id).ok_or_else(|| unknown_instance(instance_id))?;
            check_holder(holder, member_id, instance_id)?;
            let holder = holder.clone();
            if request.member_epoch == LEFT_FOR_A_WHILE {
                group.leave_for_a_while(holder, cx);
            } else {
                group.fence(member_id, cx);
            }
        }
    }
    Ok(ConsumerGroupHeartbeatResponse {
        member_id: Some(member_id.clone()),
        member_epoch: request.member_epoch,
        ..Default::default()
    })
}

impl ConsumerGroup {
    /// Removes a member and begins a new epoch; its partitions are free at once.
    pub(super) fn fence(&mut self, member_id: &str, cx: &mut GroupContext<'_>) {
        let regex = self.members.get(member_id).and_then(ConsumerMember::regex).map(str::to_owned);
        self.remove(member_id, cx);
        self.forget_regex(regex.as_deref(), cx);
        self.raise_epoch_if(true, cx);
        if self.members.is_empty() {
            // Nobody is left to ask for a target: an empty group has that of its epoch (as Kafka from 4.4 on).
            self.emit(ConsumerChange::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        }
    }

    /// Removes a member; the order of the records is Kafka's.
    pub(super) fn remove(&mut self, member_id: &str, cx: &mut GroupContext<'_>) {
        self.emit(ConsumerChange::Current(member_id.to_owned(), None), cx);
        self.emit(ConsumerChange::Target(member_id.to_owned(), None), cx);
        self.emit(ConsumerChange::Member(member_id.to_owned(), None), cx);
        cx.cancel_timer(member_id, SESSION);
        cx.cancel_timer(member_id, REBALANCE);
    }

    /// Keeps the member's partitions for one that comes back under its name before its session is over.
    fn leave_for_a_while(&mut self, member: ConsumerMember, cx: &mut GroupContext<'_>) {
        let member_id = member.member_id.clone();
        cx.cancel_timer(&member_id, REBALANCE);
        let gone = ConsumerMember {
            member_epoch: LEFT_FOR_A_WHILE,
            // The member that comes back may commit from its first epoch on.
            assigned: owned_since(&member.assigned, 0),
            pending_revocation: Owned::new(),
            ..member
        };
        self.emit(ConsumerChange::Current(member_id, Some(Box::new(gone))), cx);
    }
}
