//! Offsets that go: OffsetDelete, DeleteGroups, expiry, deleted topics.
use super::{CommittedOffset, record};
use crate::group::claim::Retention;
use crate::group::context::GroupContext;
use crate::group::state::{Group, GroupKind};
use pylog_record::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_delete::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use pylog_wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

/// OffsetDelete: offsets of topics that no member is subscribed to.
pub fn delete_offsets(
    group: &mut Group,
    request: OffsetDeleteRequest,
    cx: &mut GroupContext<'_>,
) -> OffsetDeleteResponse {
    let refused = |error: ErrorCode| OffsetDeleteResponse { error_code: error.code(), ..Default::default() };
    if group.is_vacant() {
        return refused(ErrorCode::GroupIdNotFound);
    }
    if let Err(error) = group.kind.check_offset_delete() {
        return refused(error);
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let known = cx.topics.topic(&topic.name).map_or(0, |(_, partitions)| partitions);
        let subscribed = group.kind.is_subscribed_to(&topic.name);
        let partitions = topic.partitions.iter().map(|asked| {
            let error = if !(0..known).contains(&asked.partition_index) {
                ErrorCode::UnknownTopicOrPartition
            } else if subscribed {
                ErrorCode::GroupSubscribedToTopic
            } else {
                forget(group, &topic.name, asked.partition_index, cx);
                ErrorCode::None
            };
            OffsetDeleteResponsePartition { partition_index: asked.partition_index, error_code: error.code() }
        });
        topics.push(OffsetDeleteResponseTopic { partitions: partitions.collect(), name: topic.name });
    }
    OffsetDeleteResponse { topics, ..Default::default() }
}

/// DeleteGroups, one of them: its offsets and then itself.
///
/// # Errors
/// GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
pub fn delete_group(group: &mut Group, cx: &mut GroupContext<'_>) -> Result<(), ErrorCode> {
    if group.is_vacant() {
        return Err(ErrorCode::GroupIdNotFound);
    }
    group.kind.check_delete()?;
    for TopicPartition { topic, partition } in group.offsets.partitions() {
        forget(group, &topic, partition, cx);
    }
    forget_members(group, cx);
    Ok(())
}

/// Forgets the offsets of a topic that is no more.
pub fn forget_topic(group: &mut Group, topic: &str, cx: &mut GroupContext<'_>) {
    for at in group.offsets.partitions() {
        if *at.topic == *topic {
            forget(group, topic, at.partition, cx);
        }
    }
}

/// Forgets offsets that are too old, and then the group when nothing is left of it.
pub fn expire(group: &mut Group, cx: &mut GroupContext<'_>) {
    let retention = group.kind.retention();
    if retention == Retention::Keep {
        return;
    }
    let mut expired = Vec::new();
    for (topic, partitions) in group.offsets.committed() {
        if group.kind.is_subscribed_to(topic) {
            continue;
        }
        let old = partitions.iter().filter(|(partition, committed)| {
            is_expired(committed, retention, cx) && !group.offsets.is_pending(topic, **partition)
        });
        expired.extend(old.map(|(partition, _)| (topic.clone(), *partition)));
    }
    for (topic, partition) in expired {
        forget(group, &topic, partition, cx);
    }
    if group.offsets.is_empty() && group.kind.is_empty() {
        forget_members(group, cx);
    }
}

fn is_expired(committed: &CommittedOffset, retention: Retention, cx: &GroupContext<'_>) -> bool {
    let since_ms = match retention {
        _ if committed.expire_timestamp_ms >= 0 => return cx.now_ms >= committed.expire_timestamp_ms,
        Retention::Keep => return false,
        Retention::SinceCommit => committed.commit_timestamp_ms,
        Retention::Since(since_ms) => since_ms,
    };
    cx.now_ms.saturating_sub(since_ms) >= cx.settings.offsets_retention_ms()
}

/// Deletes the offset, if there is one.
fn forget(group: &mut Group, topic: &str, partition: i32, cx: &mut GroupContext<'_>) {
    if group.offsets.get(topic, partition).is_some() || group.offsets.is_pending(topic, partition) {
        // A name that was read from the log or a request can be written again.
        if let Ok(tombstone) = record(cx.group_id, topic, partition, None) {
            cx.effects.record(tombstone);
        }
        group.offsets.remove(topic, partition);
    }
}

fn forget_members(group: &mut Group, cx: &mut GroupContext<'_>) {
    let tombstones = group.kind.tombstones(cx.group_id);
    cx.effects.records.extend(tombstones);
    group.kind = GroupKind::Simple;
}
