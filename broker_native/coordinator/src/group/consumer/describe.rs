//! ConsumerGroupDescribe, one group of it.
use std::sync::Arc;

use super::super::context::{GroupContext, TopicsView};
use super::super::refusal::{not_found, not_of_this_kind};
use super::super::state::{Group, GroupKind};
use super::assignor;
use super::group::{CONSUMER, ConsumerGroup};
use super::member::ConsumerMember;
use pylog_wire::messages::consumer_group_describe::{Assignment, DescribedGroup, Member, TopicPartitions};
use uuid::Uuid;

/// `member_type` of members of this protocol.
const OF_THIS_PROTOCOL: i8 = 1;

/// Describes the group; GROUP_ID_NOT_FOUND when it is none of this kind.
pub fn handle(group: &Group, cx: &GroupContext<'_>) -> DescribedGroup {
    let refusal = match &group.kind {
        GroupKind::Consumer(group) => return describe(group, cx),
        GroupKind::Classic(_) | GroupKind::Share(_) => not_of_this_kind(cx.group_id, CONSUMER),
        GroupKind::Simple if !group.offsets.is_empty() => not_of_this_kind(cx.group_id, CONSUMER),
        GroupKind::Simple => not_found(cx.group_id),
    };
    DescribedGroup {
        error_code: refusal.error.code(),
        error_message: Some(refusal.message),
        group_id: cx.group_id.to_owned(),
        ..Default::default()
    }
}

fn describe(group: &ConsumerGroup, cx: &GroupContext<'_>) -> DescribedGroup {
    DescribedGroup {
        group_id: cx.group_id.to_owned(),
        group_state: group.state_name().to_owned(),
        group_epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch.max(0),
        assignor_name: assignor::preferred(group).to_owned(),
        members: group.members.values().map(|member| describe_member(group, member, cx)).collect(),
        ..Default::default()
    }
}

fn describe_member(group: &ConsumerGroup, member: &ConsumerMember, cx: &GroupContext<'_>) -> Member {
    let target = group.targets.get(&member.member_id).into_iter().flatten();
    Member {
        member_id: member.member_id.clone(),
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        member_epoch: member.member_epoch,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.subscribed_topic_names.iter().cloned().collect(),
        subscribed_topic_regex: member.subscribed_topic_regex.clone(),
        assignment: assignment(member.assigned.iter().map(|(id, owned)| (id, owned.keys())), cx.topics),
        target_assignment: assignment(target.map(|(id, partitions)| (id, partitions.iter())), cx.topics),
        member_type: OF_THIS_PROTOCOL,
    }
}

/// Topics that are gone are left out.
fn assignment<'a, P: Iterator<Item = &'a i32>>(
    partitions: impl Iterator<Item = (&'a Uuid, P)>,
    topics: &Arc<dyn TopicsView>,
) -> Assignment {
    let named = partitions.filter_map(|(topic_id, partitions)| {
        let (topic_name, _) = topics.topic_with_id(topic_id)?;
        Some(TopicPartitions { topic_id: *topic_id, topic_name, partitions: partitions.copied().collect() })
    });
    Assignment { topic_partitions: named.collect() }
}
