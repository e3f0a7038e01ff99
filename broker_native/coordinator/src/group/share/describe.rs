//! ShareGroupDescribe, one group of it.
use super::super::context::GroupContext;
use super::super::refusal::{not_found, not_of_this_kind};
use super::super::state::{Group, GroupKind};
use super::assignor;
use super::group::{SHARE, ShareGroup};
use super::member::ShareMember;
use pylog_wire::messages::share_group_describe::{Assignment, DescribedGroup, Member, TopicPartitions};

/// Describes the group; GROUP_ID_NOT_FOUND when it is none of this kind.
pub fn handle(group: &Group, cx: &GroupContext<'_>) -> DescribedGroup {
    let refusal = match &group.kind {
        GroupKind::Share(group) => return describe(group, cx),
        GroupKind::Simple if group.offsets.is_empty() => not_found(cx.group_id),
        _ => not_of_this_kind(cx.group_id, SHARE),
    };
    DescribedGroup {
        error_code: refusal.error.code(),
        error_message: Some(refusal.message),
        group_id: cx.group_id.to_owned(),
        ..Default::default()
    }
}

fn describe(group: &ShareGroup, cx: &GroupContext<'_>) -> DescribedGroup {
    DescribedGroup {
        group_id: cx.group_id.to_owned(),
        group_state: group.state_name().to_owned(),
        group_epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: assignor::SIMPLE.to_owned(),
        members: group
            .members
            .iter()
            .map(|(member_id, member)| describe_member(member_id, member, cx))
            .collect(),
        ..Default::default()
    }
}

fn describe_member(member_id: &str, member: &ShareMember, cx: &GroupContext<'_>) -> Member {
    // Topics that are gone are left out.
    let named = member.assigned.iter().filter_map(|(topic_id, partitions)| {
        let (topic_name, _) = cx.topics.topic_with_id(topic_id)?;
        Some(TopicPartitions {
            topic_id: *topic_id,
            topic_name,
            partitions: partitions.iter().copied().collect(),
        })
    });
    Member {
        member_id: member_id.to_owned(),
        rack_id: member.rack_id.clone(),
        member_epoch: member.member_epoch,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.subscribed_topic_names.iter().cloned().collect(),
        assignment: Assignment { topic_partitions: named.collect() },
    }
}
