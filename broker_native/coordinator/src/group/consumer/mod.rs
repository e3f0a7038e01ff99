//! Groups of the KIP-848 protocol: the coordinator assigns, members reconcile step by step.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`group`] | the state: epochs, members, targets; how a [`ConsumerChange`] alters it; what every kind of group is asked |
//! | [`member`] | a member: who it is, what it subscribes to, what it owns |
//! | [`change`] | each change as a record of `__consumer_offsets`, and back |
//! | [`request`], `refusals` | what a heartbeat must look like; members that do not exist |
//! | [`heartbeat`] | joining, staying, new target, answer |
//! | [`leave`] | leaving, for good or for a while; being fenced |
//! | [`reconcile`] | one member's next step from what it owns to what it shall own |
//! | [`subscription`] | topics behind names and regular expressions; noticing that they changed; the next group epoch |
//! | [`assignor`] | which member is to own which partitions: `uniform` and `range` |
//! | [`describe`] | ConsumerGroupDescribe |
//!
//! # The three epochs
//! The *group epoch* counts changes of members and topics. The *assignment epoch* is the group epoch that the target assignment
//! was made for. A *member's epoch* is the assignment epoch that it has reached: it reaches it when it gave back all
//! partitions that are not its own any more. A partition goes to its new owner only when no member owns it.
//!
//! Everything that changes is a [`ConsumerChange`]: it is written and applied, and [`replay`] applies the same. What is not in a
//! change: deadlines, and the version of the topics that were looked at last.
pub mod assignor;
pub mod change;
pub mod describe;
pub mod group;
pub mod heartbeat;
pub mod leave;
pub mod member;
pub mod reconcile;
mod refusals;
pub mod request;
pub mod subscription;
#[cfg(test)]
pub(in crate::group) mod tests;

pub use change::ConsumerChange;
pub use group::ConsumerGroup;
pub use member::{AssignedPartitions, ConsumerMember, MemberState, Owned};

use super::context::GroupContext;
use super::requests::{GroupReply, GroupRequest};
use super::state::{Group, GroupKind};
use crate::{Caller, Record, Ticket};
use group::{REBALANCE, SESSION};

/// Takes a request of this protocol.
pub fn handle(
    group: &mut Group,
    ticket: Ticket,
    who: &Caller,
    asked: GroupRequest,
    cx: &mut GroupContext<'_>,
) {
    match asked {
        GroupRequest::ConsumerHeartbeat { request, fresh_member_id } => {
            let answer = heartbeat::handle(group, who, request, fresh_member_id, cx);
            cx.effects.reply(ticket, GroupReply::ConsumerHeartbeat(answer));
        }
        GroupRequest::ConsumerDescribe(_) => {
            cx.effects.reply(ticket, GroupReply::ConsumerDescribe(describe::handle(group, cx)));
        }
        _ => {}
    }
}

/// A deadline of this kind's is over.
pub fn timer(group: &mut Group, member_id: &str, purpose: &'static str, cx: &mut GroupContext<'_>) {
    let GroupKind::Consumer(group) = &mut group.kind else { return };
    let Some(member) = group.members.get(member_id) else { return };
    if purpose == SESSION || (purpose == REBALANCE && member.owes_partitions()) {
        group.fence(member_id, cx);
    }
}

/// The log is at its end: sets the deadlines of the group's members.
pub fn loaded(group: &mut Group, cx: &mut GroupContext<'_>) {
    let GroupKind::Consumer(group) = &group.kind else { return };
    for member in group.members.values() {
        cx.set_timer(&member.member_id, SESSION, cx.settings.group_consumer_session_timeout_ms.into());
        if member.owes_partitions() {
            cx.set_timer(&member.member_id, REBALANCE, member.rebalance_timeout_ms.max(0).into());
        }
    }
}

/// Takes a record of this kind from the log, whose key has the type `key_type`.
///
/// # Errors
/// A sentence when the record is not what its schema says.
pub fn replay(group: &mut Group, key_type: i16, record: &Record) -> Result<(), String> {
    let Some(change) = ConsumerChange::read(key_type, record).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    if matches!(change, ConsumerChange::Deleted) {
        if matches!(group.kind, GroupKind::Consumer(_)) {
            group.kind = GroupKind::Simple;
        }
        return Ok(());
    }
    if !matches!(group.kind, GroupKind::Consumer(_)) {
        // What is left of a group that is gone, or became a classic one.
        if change.is_removal() {
            return Ok(());
        }
        group.kind = GroupKind::Consumer(Box::default());
    }
    if let GroupKind::Consumer(group) = &mut group.kind {
        group.apply(change);
    }
    Ok(())
}
