//! OffsetFetch.
use super::Committed;
use crate::coordinator::group::group::{Claim, Group};
use crate::wire::ErrorCode;
use crate::wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};

/// Stands for "none".
const NO_OFFSET: i64 = -1;

/// The offsets that are asked for; of a group that is not there, none.
pub fn fetch(
    group: &Group,
    version: i16,
    request: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let claim = Claim {
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
    let one = |topic: &str, partition: i32, committed: Option<&Committed>| {
        if require_stable && group.offsets.is_pending(topic, partition) {
            return answer(partition, None, ErrorCode::UnstableOffsetCommit);
        }
        answer(partition, committed, ErrorCode::None)
    };
    let topics = match request.topics {
        None => group
            .offsets
            .committed()
            .iter()
            .map(|(topic, partitions)| OffsetFetchResponseTopics {
                name: topic.clone(),
                partitions: partitions
                    .iter()
                    .map(|(number, found)| one(topic, *number, Some(found)))
                    .collect(),
            })
            .collect(),
        Some(asked) => asked
            .into_iter()
            .map(|topic| {
                let found = group.offsets.committed().get(&topic.name);
                let partitions = topic.partition_indexes.iter();
                let partitions = partitions
                    .map(|number| one(&topic.name, *number, found.and_then(|found| found.get(number))));
                OffsetFetchResponseTopics { partitions: partitions.collect(), name: topic.name }
            })
            .collect(),
    };
    OffsetFetchResponseGroup { group_id: request.group_id, topics, ..Default::default() }
}

fn answer(partition: i32, committed: Option<&Committed>, error: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: partition,
        committed_offset: committed.map_or(NO_OFFSET, |found| found.offset),
        committed_leader_epoch: committed.map_or(-1, |found| found.leader_epoch),
        metadata: Some(committed.map_or_else(String::new, |found| found.metadata.clone())),
        error_code: error.code(),
    }
}
