//! Share groups (KIP-932): members send heartbeats, the coordinator answers what each of them reads.
//!
//! No partition belongs to a member alone, so that nothing is given back before another member gets it: a member has at once what
//! the assignment of the group's epoch says. What becomes of the records is decided in `coordinator/share`.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`group`] | the state, and how a [`ShareChange`] alters it; what every kind of group is asked |
//! | [`member`], [`membership`] | a member; how long it may stay silent |
//! | [`change`] | each change as a record of `__consumer_offsets`, and back |
//! | [`heartbeat`] | joining, staying, leaving, being fenced |
//! | [`moving`] | AlterShareGroupOffsets: whether the group may be moved |
//! | [`assignor`] | which member reads which partitions |
//! | [`describe`] | ShareGroupDescribe |
pub mod assignor;
pub mod change;
pub mod describe;
pub mod group;
pub mod heartbeat;
pub mod member;
pub mod membership;
pub mod moving;
#[cfg(test)]
mod tests;

pub use change::ShareChange;
pub use group::ShareGroup;
pub use member::ShareMember;
pub use membership::Membership;

use super::context::{GroupContext, Settings};
use super::requests::{GroupReply, GroupRequest};
use super::state::{Group, GroupKind};
use crate::{Caller, Record, Ticket};
use group::SESSION;

impl From<&Settings> for Membership {
    fn from(broker: &Settings) -> Self {
        Self {
            session_timeout_ms: broker.group_share_session_timeout_ms,
            heartbeat_interval_ms: broker.group_share_heartbeat_interval_ms,
        }
    }
}

/// Takes a request of this protocol.
pub fn handle(
    group: &mut Group,
    ticket: Ticket,
    who: &Caller,
    asked: GroupRequest,
    cx: &mut GroupContext<'_>,
) {
    match asked {
        GroupRequest::ShareHeartbeat { request, membership } => {
            let answer = heartbeat::handle(group, who, &request, membership, cx);
            cx.effects.reply(ticket, GroupReply::ShareHeartbeat(answer));
        }
        GroupRequest::ShareDescribe(_) => {
            cx.effects.reply(ticket, GroupReply::ShareDescribe(describe::handle(group, cx)));
        }
        GroupRequest::ShareMove { moves, .. } => {
            let answer = moving::handle(group, moves, cx);
            cx.effects.reply(ticket, GroupReply::ShareMove(answer));
        }
        _ => {}
    }
}

/// A deadline of this kind's is over.
pub fn timer(group: &mut Group, member_id: &str, purpose: &'static str, cx: &mut GroupContext<'_>) {
    let GroupKind::Share(group) = &mut group.kind else { return };
    if purpose == SESSION && group.members.contains_key(member_id) {
        group.remove(member_id, cx);
    }
}

/// The log is at its end: sets the deadlines of the group's members. By the broker's settings: the next heartbeats go by the group's own.
pub fn loaded(group: &mut Group, cx: &mut GroupContext<'_>) {
    let GroupKind::Share(group) = &group.kind else { return };
    for member_id in group.members.keys() {
        cx.set_timer(member_id, SESSION, cx.settings.group_share_session_timeout_ms.into());
    }
}

/// Takes a record of this kind from the log, whose key has the type `key_type`.
///
/// # Errors
/// A sentence when the record is not what its schema says.
pub fn replay(group: &mut Group, key_type: i16, record: &Record) -> Result<(), String> {
    let Some(change) = ShareChange::read(key_type, record).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    if matches!(change, ShareChange::Deleted) {
        if matches!(group.kind, GroupKind::Share(_)) {
            group.kind = GroupKind::Simple;
        }
        return Ok(());
    }
    if !matches!(group.kind, GroupKind::Share(_)) {
        // What is left of a group that is gone.
        if change.is_removal() {
            return Ok(());
        }
        group.kind = GroupKind::Share(Box::default());
    }
    if let GroupKind::Share(group) = &mut group.kind {
        group.apply(change);
    }
    Ok(())
}
