//! A heartbeat: a member joins or stays, the group gets a new target when it needs one, the member takes its next step.
use super::super::context::GroupContext;
use super::super::refusal::{Refusal, no_room, not_found, not_of_this_kind};
use super::super::state::{Group, GroupKind};
use super::assignor;
use super::change::ConsumerChange;
use super::group::{CONSUMER, ConsumerGroup, REBALANCE, RECORD_BYTES_MAX, SESSION, size};
use super::member::{ConsumerMember, LEAVES, LEFT_FOR_A_WHILE, MemberState, Owned, is_subset};
use super::reconcile::Goal;
use super::refusals::{check_holder, unknown_instance, unknown_member};
use super::request;
use crate::Caller;
use pylog_wire::ErrorCode;
use pylog_wire::messages::consumer_group_heartbeat::{Assignment, TopicPartitions};
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// Takes a heartbeat. `fresh_member_id` is for a member of version 0 that joins: it has none.
pub fn handle(
    group: &mut Group,
    who: &Caller,
    mut request: ConsumerGroupHeartbeatRequest,
    fresh_member_id: String,
    cx: &mut GroupContext<'_>,
) -> ConsumerGroupHeartbeatResponse {
    if let Err(refusal) = request::check(&request, who.version) {
        return refusal.into();
    }
    if request.member_id.is_empty() {
        request.member_id = fresh_member_id;
    }
    let taken = match request.member_epoch {
        LEAVES | LEFT_FOR_A_WHILE => super::leave::handle(group, &request, cx),
        _ => take(group, who, &request, cx),
    };
    taken.unwrap_or_else(Into::into)
}

fn take(
    group: &mut Group,
    who: &Caller,
    request: &ConsumerGroupHeartbeatRequest,
    cx: &mut GroupContext<'_>,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    let joins = request.member_epoch == 0;
    // Nothing changes before all that can be refused was.
    let admitted = match &group.kind {
        GroupKind::Consumer(group) => group.admit(request, cx)?,
        GroupKind::Classic(classic) if !classic.is_empty() => {
            return Err(not_of_this_kind(cx.group_id, CONSUMER));
        }
        GroupKind::Share(_) => return Err(not_of_this_kind(cx.group_id, CONSUMER)),
        _ if !joins => return Err(not_found(cx.group_id)),
        _ => ConsumerGroup::default().admit(request, cx)?,
    };
    let mut members = match std::mem::take(&mut group.kind) {
        GroupKind::Consumer(members) => members,
        // A classic group without members makes room.
        other => {
            cx.effects.records.extend(other.tombstones(cx.group_id));
            Box::default()
        }
    };
    let answer = members.heartbeat(admitted, who, request, cx);
    group.kind = GroupKind::Consumer(members);
    answer
}

/// The member that a heartbeat is of.
pub struct Admitted {
    /// As it was before the request.
    member: ConsumerMember,
    /// A static member that left for a while, in whose place the member comes.
    replaces: Option<String>,
}

impl ConsumerGroup {
    /// Whether the member may do what it wants.
    fn admit(
        &self,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &GroupContext<'_>,
    ) -> Result<Admitted, Refusal> {
        let member_id = &request.member_id;
        let size_max = usize::try_from(cx.settings.group_consumer_max_size).unwrap_or(0);
        if self.members.len() >= size_max && !self.members.contains_key(member_id) {
            return Err(Refusal::new(
                ErrorCode::GroupMaxSizeReached,
                format!("The consumer group has reached its maximum capacity of {size_max} members."),
            ));
        }
        let joins = request.member_epoch == 0;
        let known = self.members.get(member_id);
        let Some(instance_id) = &request.instance_id else {
            let member = match known {
                Some(member) => member.clone(),
                None if joins => ConsumerMember::new(member_id),
                None => return Err(unknown_member(member_id, cx.group_id)),
            };
            check_epoch(&member, request)?;
            return Ok(Admitted { member, replaces: None });
        };
        match self.static_member(instance_id) {
            None if joins => {
                let member = known.cloned().unwrap_or_else(|| ConsumerMember::new(member_id));
                Ok(Admitted { member, replaces: None })
            }
            None => Err(unknown_instance(instance_id)),
            Some(holder) if joins && holder.member_epoch != LEFT_FOR_A_WHILE => Err(Refusal::new(
                ErrorCode::UnreleasedInstanceId,
                format!(
                    "Static member {member_id} with instance id {instance_id} cannot join the group because the instance id \
                     is owned by {} member.",
                    holder.member_id
                ),
            )),
            Some(holder) if joins => {
                let (member_epoch, previous_member_epoch) = (0, 0);
                let member = ConsumerMember {
                    member_id: member_id.clone(),
                    member_epoch,
                    previous_member_epoch,
                    ..holder.clone()
                };
                Ok(Admitted { member, replaces: Some(holder.member_id.clone()) })
            }
            Some(holder) => {
                check_holder(holder, member_id, instance_id)?;
                check_epoch(holder, request)?;
                Ok(Admitted { member: holder.clone(), replaces: None })
            }
        }
    }

    fn heartbeat(
        &mut self,
        admitted: Admitted,
        who: &Caller,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &mut GroupContext<'_>,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let before = admitted.member;
        let known_bytes = self.members.get(&before.member_id).map_or(0, ConsumerMember::bytes);
        if !cx.room.has(before.updated(request, who).bytes().saturating_sub(known_bytes)) {
            return Err(no_room());
        }
        if let Some(old_id) = admitted.replaces {
            self.replace(&old_id, &before, cx);
        }
        let updated = before.updated(request, who);
        let subscription_changed = self.subscribe(&before, &updated, cx);
        // Most heartbeats find nothing new and cost nothing of the group's size.
        if self.look_at_topics(cx) || subscription_changed {
            self.raise_epoch_if(subscription_changed, cx);
        }
        // Also a member that cannot be given anything has to go on reporting.
        cx.set_timer(&updated.member_id, SESSION, cx.settings.group_consumer_session_timeout_ms.into());
        if self.group_epoch > self.assignment_epoch {
            self.assign(cx)?;
        }
        let after = self.reconcile(&updated, request.topic_partitions.as_deref(), cx);
        // A full request asks for a full answer: the member joins, or does not know what reached the coordinator.
        let subscribed = request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some();
        let full = request.member_epoch == 0
            || (request.rebalance_timeout_ms != -1 && subscribed && request.topic_partitions.is_some());
        let answers = full || !same_partitions(&before.assigned, &after.assigned);
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(after.member_id.clone()),
            member_epoch: after.member_epoch,
            heartbeat_interval_ms: cx.settings.group_consumer_heartbeat_interval_ms,
            assignment: answers.then(|| assignment(&after.assigned)),
            ..Default::default()
        })
    }

    /// Puts `member` in the place of the static member `old_id`, with what that owned and shall own.
    fn replace(&mut self, old_id: &str, member: &ConsumerMember, cx: &mut GroupContext<'_>) {
        let target = self.targets.get(old_id).cloned().unwrap_or_default();
        self.remove(old_id, cx);
        let new_id = member.member_id.clone();
        self.emit(ConsumerChange::Member(new_id.clone(), Some(Box::new(member.clone()))), cx);
        self.emit(ConsumerChange::Target(new_id.clone(), Some(target)), cx);
        self.emit(ConsumerChange::Current(new_id, Some(Box::new(member.clone()))), cx);
    }

    /// Makes the target of the group's epoch. One that is too large for the log is not made: the group has none for its
    /// epoch then, and every heartbeat gets the error until the target becomes smaller.
    fn assign(&mut self, cx: &mut GroupContext<'_>) -> Result<(), Refusal> {
        let mut targets = assignor::assign(self, cx.topics);
        targets.retain(|member_id, target| self.targets.get(member_id) != Some(target));
        let changes =
            targets.into_iter().map(|(member_id, target)| ConsumerChange::Target(member_id, Some(target)));
        let changes: Vec<ConsumerChange> = changes.collect();
        let bytes: usize = changes
            .iter()
            .filter_map(|change| change.record(cx.group_id).ok())
            .map(|record| size(&record))
            .sum();
        if bytes > RECORD_BYTES_MAX {
            return Err(Refusal::new(
                ErrorCode::UnknownServerError,
                format!(
                    "The target assignment for epoch {} takes {bytes} bytes and the log has room for {RECORD_BYTES_MAX}: \
                     spread the partitions or the members over more groups.",
                    self.group_epoch
                ),
            ));
        }
        for change in changes {
            self.emit(change, cx);
        }
        self.emit(ConsumerChange::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        Ok(())
    }

    /// The member's next step.
    fn reconcile(
        &mut self,
        member: &ConsumerMember,
        said: Option<&[TopicPartitions]>,
        cx: &mut GroupContext<'_>,
    ) -> ConsumerMember {
        if member.is_reconciled_to(self.assignment_epoch) {
            return member.clone();
        }
        let none = Default::default();
        let goal = Goal {
            epoch: self.assignment_epoch,
            target: self.targets.get(&member.member_id).unwrap_or(&none),
            is_owned: &|topic_id, partition| self.is_owned(topic_id, partition),
            said,
        };
        let after = goal.step(member);
        if after == *member {
            return after;
        }
        self.emit(ConsumerChange::Current(after.member_id.clone(), Some(Box::new(after.clone()))), cx);
        if after.state == MemberState::UnrevokedPartitions {
            cx.set_timer(&after.member_id, REBALANCE, after.rebalance_timeout_ms.max(0).into());
        } else {
            cx.cancel_timer(&after.member_id, REBALANCE);
        }
        after
    }
}

/// The member must be at the epoch it says, or the answer with the next one may have been lost. Epoch 0 begins anew.
fn check_epoch(member: &ConsumerMember, request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let (said, known) = (request.member_epoch, member.member_epoch);
    let answer_was_lost = || {
        let owns_no_more =
            request.topic_partitions.as_deref().is_some_and(|owned| is_subset(owned, &member.assigned));
        said == member.previous_member_epoch && owns_no_more
    };
    if said == 0 || said == known || (said < known && answer_was_lost()) {
        return Ok(());
    }
    let relation = if said > known { "greater" } else { "smaller" };
    Err(Refusal::new(
        ErrorCode::FencedMemberEpoch,
        format!(
            "The consumer group member has a {relation} member epoch ({said}) than the one known by the group coordinator \
             ({known}). The member must abandon all its partitions and rejoin."
        ),
    ))
}

fn same_partitions(one: &Owned, other: &Owned) -> bool {
    super::member::each(one).eq(super::member::each(other))
}

fn assignment(owned: &Owned) -> Assignment {
    let topics = owned.iter().map(|(topic_id, partitions)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
    });
    Assignment { topic_partitions: topics.collect() }
}
