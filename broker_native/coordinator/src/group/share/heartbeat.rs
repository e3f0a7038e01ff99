//! A heartbeat: a member joins, stays or leaves; the group gets a new assignment when it needs one.
use super::super::context::GroupContext;
use super::super::refusal::{Refusal, check_sizes, no_room, not_found, not_of_this_kind};
use super::super::state::{Group, GroupKind};
use super::change::ShareChange;
use super::group::{SESSION, SHARE, ShareGroup};
use super::member::ShareMember;
use super::membership::Membership;
use crate::Caller;
use crate::group::consumer::group::RECORD_BYTES_MAX;
use crate::group::consumer::member::AssignedPartitions;
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_group_heartbeat::{Assignment, TopicPartitions};
use pylog_wire::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};

/// The epoch with which a member leaves.
const LEAVES: i32 = -1;

/// Takes a heartbeat.
pub fn handle(
    group: &mut Group,
    who: &Caller,
    request: &ShareGroupHeartbeatRequest,
    membership: Membership,
    cx: &mut GroupContext<'_>,
) -> ShareGroupHeartbeatResponse {
    take(group, who, request, membership, cx).unwrap_or_else(Into::into)
}

fn take(
    group: &mut Group,
    who: &Caller,
    request: &ShareGroupHeartbeatRequest,
    membership: Membership,
    cx: &mut GroupContext<'_>,
) -> Result<ShareGroupHeartbeatResponse, Refusal> {
    check(request)?;
    let joins = request.member_epoch == 0;
    let empty = ShareGroup::default();
    // Nothing changes before all that can be refused was.
    let known = find(group, cx)?;
    if known.is_none() && !joins {
        return Err(not_found(cx.group_id));
    }
    let before = known.unwrap_or(&empty).admit(who, request, cx)?;
    let mut members = take_out(group, cx);
    let answer = match request.member_epoch {
        LEAVES => {
            members.remove(&request.member_id, cx);
            Ok(left(request))
        }
        _ => members.heartbeat(before, who, request, membership, cx),
    };
    group.kind = GroupKind::Share(members);
    answer
}

impl From<Refusal> for ShareGroupHeartbeatResponse {
    fn from(refusal: Refusal) -> Self {
        Self { error_code: refusal.error.code(), error_message: Some(refusal.message), ..Default::default() }
    }
}

fn too_large(bytes: usize, epoch: i32) -> Refusal {
    let message = format!(
        "The assignment for epoch {epoch} takes {bytes} bytes and the log has room for {RECORD_BYTES_MAX}: spread the partitions \
         over more groups."
    );
    Refusal::new(ErrorCode::UnknownServerError, message)
}

/// The share group; `None`: there is none, and one can be made.
pub(super) fn find<'a>(group: &'a Group, cx: &GroupContext<'_>) -> Result<Option<&'a ShareGroup>, Refusal> {
    match &group.kind {
        GroupKind::Share(members) => Ok(Some(members)),
        // A classic group without members and offsets makes room.
        GroupKind::Classic(classic) if classic.is_empty() && group.offsets.is_empty() => Ok(None),
        GroupKind::Simple if group.offsets.is_empty() => Ok(None),
        _ => Err(not_of_this_kind(cx.group_id, SHARE)),
    }
}

/// Takes the share group out of `group`, to be changed and put back; makes it when [`find`] found none.
pub(super) fn take_out(group: &mut Group, cx: &mut GroupContext<'_>) -> Box<ShareGroup> {
    match std::mem::take(&mut group.kind) {
        GroupKind::Share(members) => members,
        other => {
            cx.effects.records.extend(other.tombstones(cx.group_id));
            Box::default()
        }
    }
}

fn left(request: &ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse {
        member_id: Some(request.member_id.clone()),
        member_epoch: LEAVES,
        ..Default::default()
    }
}

impl ShareGroup {
    /// The member as it was before the request, when it may do what it wants.
    fn admit(
        &self,
        who: &Caller,
        request: &ShareGroupHeartbeatRequest,
        cx: &GroupContext<'_>,
    ) -> Result<ShareMember, Refusal> {
        let member_id = &request.member_id;
        let known = self.members.get(member_id);
        let joins = request.member_epoch == 0;
        let size_max = usize::try_from(cx.settings.group_share_max_size).unwrap_or(0);
        let member = match known {
            Some(member) => member.clone(),
            None if !joins => {
                let message = format!("Member {member_id} is not a member of group {}.", cx.group_id);
                return Err(Refusal::new(ErrorCode::UnknownMemberId, message));
            }
            None if self.members.len() >= size_max => {
                let message =
                    format!("The share group has reached its maximum capacity of {size_max} members.");
                return Err(Refusal::new(ErrorCode::GroupMaxSizeReached, message));
            }
            None => ShareMember::default(),
        };
        check_epoch(&member, request.member_epoch)?;
        let more = member.updated(request, who).bytes(member_id);
        if !cx.room.has(more.saturating_sub(known.map_or(0, |member| member.bytes(member_id)))) {
            return Err(no_room());
        }
        Ok(member)
    }

    fn heartbeat(
        &mut self,
        before: ShareMember,
        who: &Caller,
        request: &ShareGroupHeartbeatRequest,
        membership: Membership,
        cx: &mut GroupContext<'_>,
    ) -> Result<ShareGroupHeartbeatResponse, Refusal> {
        let member_id = &request.member_id;
        let updated = before.updated(request, who);
        let is_new = !self.members.contains_key(member_id);
        let subscription_changed = is_new || updated.subscribed_topic_names != before.subscribed_topic_names;
        if is_new || updated != before {
            self.emit(ShareChange::Member(member_id.clone(), Some(Box::new(updated.clone()))), cx);
        }
        // Most heartbeats find nothing new and cost nothing of the group's size.
        let topics_version = Some(cx.topics.version());
        if std::mem::replace(&mut self.topics_seen, topics_version) != topics_version || subscription_changed
        {
            self.raise_epoch_if(subscription_changed, cx);
        }
        cx.set_timer(member_id, SESSION, membership.session_timeout_ms.into());
        if self.group_epoch > self.assignment_epoch {
            let epoch = self.group_epoch;
            self.assign(cx).map_err(|bytes| too_large(bytes, epoch))?;
        }
        let after = self.reach(member_id, updated, cx);
        // A member that joins, or names its topics again, may not know its assignment.
        let full = request.member_epoch == 0
            || request.subscribed_topic_names.is_some()
            || after.assigned != before.assigned;
        Ok(ShareGroupHeartbeatResponse {
            member_id: Some(member_id.clone()),
            member_epoch: after.member_epoch,
            heartbeat_interval_ms: membership.heartbeat_interval_ms,
            assignment: full.then(|| assignment(&after.assigned)),
            ..Default::default()
        })
    }

    /// The member has what the assignment says.
    fn reach(&mut self, member_id: &str, member: ShareMember, cx: &mut GroupContext<'_>) -> ShareMember {
        if member.member_epoch == self.assignment_epoch {
            return member;
        }
        let after = ShareMember {
            previous_member_epoch: member.member_epoch,
            member_epoch: self.assignment_epoch,
            assigned: self.targets.get(member_id).cloned().unwrap_or_default(),
            ..member
        };
        self.emit(ShareChange::Current(member_id.to_owned(), Some(Box::new(after.clone()))), cx);
        after
    }
}

/// Whether the request makes sense whatever the group is.
fn check(request: &ShareGroupHeartbeatRequest) -> Result<(), Refusal> {
    let blank = |text: &str| text.trim().is_empty();
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    if blank(&request.member_id) {
        return invalid("MemberId can't be empty.");
    }
    if blank(&request.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if request.rack_id.as_deref().is_some_and(blank) {
        return invalid("RackId can't be empty.");
    }
    if request.member_epoch < LEAVES {
        return invalid("MemberEpoch is invalid.");
    }
    if request.member_epoch == 0 && request.subscribed_topic_names.as_ref().is_none_or(Vec::is_empty) {
        return invalid("SubscribedTopicNames must be set in first request.");
    }
    let names = || request.subscribed_topic_names.iter().flatten();
    let texts = [&request.group_id, &request.member_id].into_iter().chain(&request.rack_id).chain(names());
    check_sizes(texts, names(), "")
}

/// The member must be at the epoch it says, or the answer with the next one may have been lost. Epoch 0 begins anew.
fn check_epoch(member: &ShareMember, said: i32) -> Result<(), Refusal> {
    let known = member.member_epoch;
    if said <= 0 || said == known || said == member.previous_member_epoch {
        return Ok(());
    }
    let relation = if said > known { "greater" } else { "smaller" };
    Err(Refusal::new(
        ErrorCode::FencedMemberEpoch,
        format!(
            "The share group member has a {relation} member epoch ({said}) than the one known by the group coordinator \
             ({known}). The member must abandon all its partitions and rejoin."
        ),
    ))
}

fn assignment(assigned: &AssignedPartitions) -> Assignment {
    let topics = assigned.iter().map(|(topic_id, partitions)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.iter().copied().collect(),
    });
    Assignment { topic_partitions: topics.collect() }
}
