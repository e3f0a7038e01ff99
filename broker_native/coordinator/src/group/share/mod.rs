//! Share groups (KIP-932): members report, the coordinator says what each of them reads.
//!
//! No partition belongs to a member alone, so that nothing is given back before somebody else gets it: a member has at once what
//! the assignment of the group's epoch says. What becomes of the records is not this room's (`coordinator/share`).
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`group`] | the state, and how a [`Change`] alters it; what every kind of group is asked |
//! | [`change`] | each change as a record of `__consumer_offsets`, and back |
//! | [`heartbeat`] | joining, staying, leaving, being fenced |
//! | [`moving`] | AlterShareGroupOffsets: whether the group may be moved |
//! | [`assignor`] | who reads what |
//! | [`describe`] | ShareGroupDescribe |
pub mod assignor;
pub mod change;
pub mod describe;
pub mod group;
pub mod heartbeat;
pub mod moving;
#[cfg(test)]
mod tests;

pub use change::Change;
pub use group::{Member, ShareGroup};

use super::context::Context;
use super::requests::{GroupReply, GroupRequest};
use super::state::{Group, Kind};
use crate::{Caller, Record, Ticket};
use pylog_settings::share::GroupSettings;

/// What a group may set for its members, or the broker's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// A member that does not report for so long is removed.
    pub session_timeout_ms: i32,
    /// How often a member is told to report.
    pub heartbeat_interval_ms: i32,
}

impl From<&GroupSettings> for Membership {
    fn from(group: &GroupSettings) -> Self {
        Self {
            session_timeout_ms: group.share_session_timeout_ms,
            heartbeat_interval_ms: group.share_heartbeat_interval_ms,
        }
    }
}

/// As Kafka calls the kind.
const SHARE: &str = "share";
/// A member did not report in time.
const SESSION: &str = "share session";

/// Takes a request of this protocol.
pub fn handle(group: &mut Group, ticket: Ticket, who: &Caller, asked: GroupRequest, cx: &mut Context<'_>) {
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
pub fn timer(group: &mut Group, member_id: &str, purpose: &'static str, cx: &mut Context<'_>) {
    let Kind::Share(group) = &mut group.kind else { return };
    if purpose == SESSION && group.members.contains_key(member_id) {
        group.remove(member_id, cx);
    }
}

/// The log is at its end: sets the deadlines of the group's members. By the broker's settings: the next heartbeats go by the group's own.
pub fn loaded(group: &mut Group, cx: &mut Context<'_>) {
    let Kind::Share(group) = &group.kind else { return };
    for member_id in group.members.keys() {
        cx.set_timer(member_id, SESSION, cx.settings.group_share_session_timeout_ms.into());
    }
}

/// Takes a record of this kind from the log, whose key has the type `key_type`.
///
/// # Errors
/// A sentence when the record is not what its schema says.
pub fn replay(group: &mut Group, key_type: i16, record: &Record) -> Result<(), String> {
    let Some(change) = Change::read(key_type, record).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    if matches!(change, Change::Deleted) {
        if matches!(group.kind, Kind::Share(_)) {
            group.kind = Kind::Simple;
        }
        return Ok(());
    }
    if !matches!(group.kind, Kind::Share(_)) {
        // What is left of a group that is gone.
        if change.is_removal() {
            return Ok(());
        }
        group.kind = Kind::Share(Box::default());
    }
    if let Kind::Share(group) = &mut group.kind {
        group.apply(change);
    }
    Ok(())
}
