//! What the machine calls. Refuses requests that no classic group could take, whatever its state.
use super::group::{ClassicGroup, not_joined};
use super::state::ClassicState;
use super::{leave, stored};
use crate::group::context::GroupContext;
use crate::group::requests::{GroupReply, GroupRequest};
use crate::group::state::{Group, GroupKind};
use crate::{Caller, Record, Ticket};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_groups::DescribedGroup;
use pylog_wire::messages::{
    HeartbeatResponse, JoinGroupRequest, LeaveGroupRequest, LeaveGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};

/// Longest name that a record can hold.
const NAME_MAX_BYTES: usize = i16::MAX as usize;
/// What makes a client's or an instance's name a member's id: a hyphen and a UUID.
const ID_SUFFIX_BYTES: usize = 37;
/// First version of SyncGroup that must name the protocol.
const SYNC_NAMES_PROTOCOL_FROM: i16 = 5;
/// First version of DescribeGroups in which a missing group is an error.
const DESCRIBE_MISSING_IS_ERROR_FROM: i16 = 6;

/// Takes a request of this protocol.
pub fn handle(
    group: &mut Group,
    ticket: Ticket,
    who: &Caller,
    asked: GroupRequest,
    cx: &mut GroupContext<'_>,
) {
    let reply = match asked {
        GroupRequest::JoinGroup { request, uuid } => {
            if let Err(error) = check_join(group, &request, who, cx) {
                Some(GroupReply::JoinGroup(not_joined(&request.member_id, error)))
            } else {
                let mut classic = entered(group, cx);
                classic.join(ticket, who, &request, uuid, cx);
                group.kind = GroupKind::Classic(classic);
                None
            }
        }
        GroupRequest::SyncGroup(request) => match check_sync(group, &request, who) {
            Ok(classic) => {
                classic.sync(ticket, &request, cx);
                None
            }
            Err(error) => Some(GroupReply::SyncGroup(SyncGroupResponse {
                error_code: error.code(),
                ..Default::default()
            })),
        },
        GroupRequest::Heartbeat(request) => {
            let outcome =
                members_of(group, &request.group_id).and_then(|classic| classic.heartbeat(&request, cx));
            let error_code = outcome.err().map_or(0, ErrorCode::code);
            Some(GroupReply::Heartbeat(HeartbeatResponse { error_code, ..Default::default() }))
        }
        GroupRequest::LeaveGroup(request) => Some(GroupReply::LeaveGroup(left(group, &request, cx))),
        GroupRequest::DescribeGroup(group_id) => {
            Some(GroupReply::DescribeGroup(described(group, group_id, who.version)))
        }
        // Of other modules.
        _ => None,
    };
    if let Some(reply) = reply {
        cx.effects.reply(ticket, reply);
    }
    drop_untouched(group);
}

/// A deadline of this kind's is over.
pub fn timer(group: &mut Group, member_id: &str, purpose: &'static str, cx: &mut GroupContext<'_>) {
    if let GroupKind::Classic(classic) = &mut group.kind {
        classic.deadline(member_id, purpose, cx);
    }
    drop_untouched(group);
}

/// The log is at its end: sets the deadlines of the group's members.
pub fn loaded(group: &mut Group, cx: &mut GroupContext<'_>) {
    if let GroupKind::Classic(classic) = &mut group.kind {
        classic.loaded(cx);
    }
}

/// Takes a record of this kind from the log, whose key has the type `key_type`.
///
/// # Errors
/// A sentence when the record is not what its schema says.
pub fn replay(group: &mut Group, key_type: i16, record: &Record) -> Result<(), String> {
    match stored::read(key_type, record)? {
        Some(classic) => group.kind = GroupKind::Classic(Box::new(classic)),
        None if matches!(group.kind, GroupKind::Classic(_)) => group.kind = GroupKind::Simple,
        // Another kind has taken the group over since.
        None => {}
    }
    Ok(())
}

/// A group without members and history does not exist.
fn drop_untouched(group: &mut Group) {
    if matches!(&group.kind, GroupKind::Classic(classic) if classic.is_untouched()) {
        group.kind = GroupKind::Simple;
    }
}

fn check_group_id(group_id: &str) -> Result<(), ErrorCode> {
    if group_id.is_empty() || group_id.len() > NAME_MAX_BYTES {
        return Err(ErrorCode::InvalidGroupId);
    }
    Ok(())
}

fn check_join(
    group: &Group,
    request: &JoinGroupRequest,
    who: &Caller,
    cx: &GroupContext<'_>,
) -> Result<(), ErrorCode> {
    check_group_id(&request.group_id)?;
    let named_after = request.group_instance_id.as_ref().unwrap_or(&who.client_id);
    if named_after.len() + ID_SUFFIX_BYTES > NAME_MAX_BYTES {
        return Err(ErrorCode::InvalidRequest);
    }
    let sessions = cx.settings.group_min_session_timeout_ms..=cx.settings.group_max_session_timeout_ms;
    if !sessions.contains(&request.session_timeout_ms) {
        return Err(ErrorCode::InvalidSessionTimeout);
    }
    match &group.kind {
        GroupKind::Simple if !request.member_id.is_empty() => Err(ErrorCode::UnknownMemberId),
        GroupKind::Consumer(consumer) if !consumer.is_empty() => Err(ErrorCode::InconsistentGroupProtocol),
        // What it did with records is kept until it is deleted.
        GroupKind::Share(_) => Err(ErrorCode::InconsistentGroupProtocol),
        _ => Ok(()),
    }
}

/// The group's members, made when there are none. An empty group of the other protocol is replaced.
fn entered(group: &mut Group, cx: &mut GroupContext<'_>) -> Box<ClassicGroup> {
    let kind = std::mem::take(&mut group.kind);
    if let GroupKind::Classic(classic) = kind {
        return classic;
    }
    for record in kind.tombstones(cx.group_id) {
        cx.effects.record(record);
    }
    Box::new(ClassicGroup::new(cx.now_ms))
}

/// The group, when it has members of this protocol.
fn members_of<'a>(group: &'a mut Group, group_id: &str) -> Result<&'a mut ClassicGroup, ErrorCode> {
    check_group_id(group_id)?;
    match &mut group.kind {
        GroupKind::Classic(classic) => Ok(classic),
        GroupKind::Simple | GroupKind::Consumer(_) | GroupKind::Share(_) => Err(ErrorCode::UnknownMemberId),
    }
}

fn check_sync<'a>(
    group: &'a mut Group,
    request: &SyncGroupRequest,
    who: &Caller,
) -> Result<&'a mut ClassicGroup, ErrorCode> {
    let named = request.protocol_type.is_some() && request.protocol_name.is_some();
    if who.version >= SYNC_NAMES_PROTOCOL_FROM && !named {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    members_of(group, &request.group_id)
}

fn left(group: &mut Group, request: &LeaveGroupRequest, cx: &mut GroupContext<'_>) -> LeaveGroupResponse {
    match members_of(group, &request.group_id) {
        Ok(classic) => classic.leave(request, cx),
        Err(ErrorCode::UnknownMemberId) => leave::all_unknown(request),
        Err(error) => LeaveGroupResponse { error_code: error.code(), ..Default::default() },
    }
}

fn described(group: &Group, group_id: String, version: i16) -> DescribedGroup {
    match &group.kind {
        GroupKind::Classic(classic) => classic.describe(&group_id),
        GroupKind::Simple if !group.offsets.is_empty() => DescribedGroup {
            group_state: ClassicState::Empty.name().to_owned(),
            group_id,
            ..Default::default()
        },
        GroupKind::Simple | GroupKind::Consumer(_) | GroupKind::Share(_) => {
            let is_error = version >= DESCRIBE_MISSING_IS_ERROR_FROM;
            let sentence = match &group.kind {
                GroupKind::Consumer(_) | GroupKind::Share(_) => {
                    format!("Group {group_id} is not a classic group.")
                }
                _ => format!("Group {group_id} not found."),
            };
            DescribedGroup {
                error_code: if is_error { ErrorCode::GroupIdNotFound.code() } else { 0 },
                error_message: is_error.then_some(sentence),
                group_state: ClassicState::Dead.name().to_owned(),
                group_id,
                ..Default::default()
            }
        }
    }
}
