//! Why the heartbeat of a member is refused that does not exist or is not the one it claims to be.
use super::super::refusal::Refusal;
use super::member::ConsumerMember;
use pylog_wire::ErrorCode;

/// The name of a static member belongs to one member id.
pub(super) fn check_holder(
    holder: &ConsumerMember,
    member_id: &str,
    instance_id: &str,
) -> Result<(), Refusal> {
    if holder.member_id == member_id {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::FencedInstanceId,
        format!(
            "Static member {member_id} with instance id {instance_id} was fenced by member {}.",
            holder.member_id
        ),
    ))
}

/// There is no such member.
pub(super) fn unknown_member(member_id: &str, group_id: &str) -> Refusal {
    Refusal::new(
        ErrorCode::UnknownMemberId,
        format!("Member {member_id} is not a member of group {group_id}."),
    )
}

/// There is no static member of that name.
pub(super) fn unknown_instance(instance_id: &str) -> Refusal {
    Refusal::new(ErrorCode::UnknownMemberId, format!("Instance id {instance_id} is unknown."))
}
