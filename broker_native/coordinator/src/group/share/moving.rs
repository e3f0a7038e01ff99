//! AlterShareGroupOffsets, what the group says to it: one with members stays where it is, one that is not there is made (Kafka 4.2 on), so
//! that it can be given offsets before its first member reads.
use super::super::context::GroupContext;
use super::super::refusal::{Refusal, no_room};
use super::super::state::{Group, GroupKind};
use super::change::ShareChange;
use super::heartbeat::{find, take_out};
use pylog_wire::ErrorCode;

/// What a group without members costs, about.
const EMPTY_BYTES: usize = 1_000;

/// Whether the group may be moved now; begins a new epoch of it when something `moves`.
///
/// # Errors
/// NON_EMPTY_GROUP; GROUP_ID_NOT_FOUND for a group of another kind; INVALID_GROUP_ID, GROUP_MAX_SIZE_REACHED for one that cannot be made.
pub fn handle(group: &mut Group, moves: bool, cx: &mut GroupContext<'_>) -> Result<(), Refusal> {
    match find(group, cx)? {
        Some(members) if !members.is_empty() => {
            let message = format!("Group {} has members.", cx.group_id);
            return Err(Refusal::new(ErrorCode::NonEmptyGroup, message));
        }
        _ if !moves => return Ok(()),
        Some(_empty) => {}
        None if !cx.room.has(EMPTY_BYTES) => return Err(no_room()),
        None if cx.group_id.is_empty() || ShareChange::Deleted.record(cx.group_id).is_err() => {
            let message = "The group's id is empty, or longer than a record has room for.";
            return Err(Refusal::new(ErrorCode::InvalidGroupId, message));
        }
        None => {}
    }
    let mut members = take_out(group, cx);
    members.begin_epoch(cx);
    group.kind = GroupKind::Share(members);
    Ok(())
}
