//! OffsetFetch.
use uuid::Uuid;

use super::CommittedOffset;
use crate::group::claim::OffsetClaim;
use crate::group::context::TopicsView;
use crate::group::state::Group;
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};

/// From this version on topics are named by id.
const TOPIC_IDS_FROM: i16 = 10;
/// Stands for "none".
const NO_OFFSET: i64 = -1;

/// The offsets that are asked for; of a group that is not there, none.
pub fn fetch(
    group: &Group,
    version: i16,
    mut request: OffsetFetchRequestGroup,
    require_stable: bool,
    topics: &dyn TopicsView,
) -> OffsetFetchResponseGroup {
    let claim = OffsetClaim {
        member_id: request.member_id.as_deref().unwrap_or_default(),
        group_instance_id: None,
        generation_or_epoch: request.member_epoch,
        transactional: false,
        version,
    };
    if let Err(error) = group.kind.check_fetch(&claim) {
        return OffsetFetchResponseGroup {
            group_id: request.group_id,
            error_code: error.code(),
            ..Default::default()
        };
    }
    let ids = version >= TOPIC_IDS_FROM;
    if ids {
        for topic in request.topics.iter_mut().flatten() {
            topic.name = topics.topic_with_id(&topic.topic_id).map_or_else(String::new, |(name, _)| name);
        }
    }
    let answer_of = |topic: &str, partition: i32, committed: Option<&CommittedOffset>| {
        if require_stable && group.offsets.is_pending(topic, partition) {
            return answer(partition, None, ErrorCode::UnstableOffsetCommit);
        }
        answer(partition, committed, ErrorCode::None)
    };
    let found = match request.topics {
        None => {
            // A topic that is no more has no id to name it by.
            let id =
                |topic: &str| if ids { topics.topic(topic).map(|(id, _)| id) } else { Some(Uuid::nil()) };
            let all = group.offsets.committed().iter().filter_map(|(topic, partitions)| {
                let partitions =
                    partitions.iter().map(|(number, found)| answer_of(topic, *number, Some(found)));
                let (name, partitions) = (topic.clone(), partitions.collect());
                Some(OffsetFetchResponseTopics { name, topic_id: id(topic)?, partitions })
            });
            all.collect()
        }
        Some(asked) => {
            let asked = asked.into_iter().map(|topic| {
                let known = group.offsets.committed().get(&topic.name);
                let partitions = topic.partition_indexes.iter().map(|number| {
                    if topic.name.is_empty() && ids {
                        return answer(*number, None, ErrorCode::UnknownTopicId);
                    }
                    answer_of(&topic.name, *number, known.and_then(|known| known.get(number)))
                });
                let partitions = partitions.collect();
                OffsetFetchResponseTopics { name: topic.name, topic_id: topic.topic_id, partitions }
            });
            asked.collect()
        }
    };
    OffsetFetchResponseGroup { group_id: request.group_id, topics: found, ..Default::default() }
}

fn answer(
    partition: i32,
    committed: Option<&CommittedOffset>,
    error: ErrorCode,
) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: partition,
        committed_offset: committed.map_or(NO_OFFSET, |found| found.offset),
        committed_leader_epoch: committed.map_or(-1, |found| found.leader_epoch),
        metadata: Some(committed.map_or_else(String::new, |found| found.metadata.clone())),
        error_code: error.code(),
    }
}
