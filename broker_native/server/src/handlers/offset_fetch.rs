//! OffsetFetch: committed offsets of groups.
//!
//! Version 2 asks for all topics, and has an error of the group; 5 has the leader's epoch (KIP-320); 7 refuses what an open
//! transaction may still change, if asked to (KIP-447); 8 asks for several groups (KIP-709); 9 is for members of KIP-848 too;
//! 10 names topics by id (KIP-848).
use super::common::group_call::{answer_all, ask, error_of};
use super::common::lookup::{check_topic, may_topic};
use crate::authorization::table::{OFFSET_FETCH_ALL_TOPICS, OFFSET_FETCH_GROUP, OFFSET_FETCH_TOPIC};
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use pylog_wire::messages::{OffsetFetchRequest, OffsetFetchResponse};

/// From this version on the request has many groups.
const MANY_FROM: i16 = 8;
/// From this version on the answer has an error of its own; before, each partition has it.
const OWN_ERROR_FROM: i16 = 2;

/// Answers when every group has.
pub fn handle(call: Call, request: OffsetFetchRequest) -> Outcome {
    let require_stable = request.require_stable;
    let groups = if call.version < MANY_FROM { vec![only_group(request)] } else { request.groups };
    let (mut shapes, mut waiting) = (Vec::new(), Vec::new());
    for mut group in groups {
        let blank = blank_response(&call, &group);
        let allowed = call.check(&OFFSET_FETCH_GROUP, &group.group_id);
        let refused = match (allowed, &mut group.topics) {
            (Ok(()), Some(topics)) => remove_denied(&call, topics),
            _ => Vec::new(),
        };
        shapes.push(Shape { blank, all: group.topics.is_none(), refused });
        waiting.push(match allowed {
            Ok(()) => ask(&call, GroupRequest::OffsetFetch { group, require_stable }),
            Err(error) => Waiting::now(Err(error)),
        });
    }
    answer_all(call, waiting, |call, outcomes| {
        let groups = shapes.into_iter().zip(outcomes).map(|(shape, outcome)| match outcome {
            Ok(GroupReply::OffsetFetch(group)) if group.error_code == ErrorCode::None.code() => {
                shape.visible(call, group)
            }
            Ok(GroupReply::OffsetFetch(group)) => error_response(shape.blank, group.error_code),
            other => error_response(shape.blank, error_of(other)),
        });
        call.answer(&in_version(call.version, groups.collect()))
    })
}

/// What an answer about a group is made of besides what the group says.
struct Shape {
    /// The answer of a group that cannot be asked.
    blank: OffsetFetchResponseGroup,
    /// Whether all topics are asked for.
    all: bool,
    /// The answers about topics that the client may not describe.
    refused: Vec<OffsetFetchResponseTopics>,
}

impl Shape {
    /// The group's answer, as far as the client may see it.
    fn visible(self, call: &Call, mut group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup {
        if self.all && call.is_guarded() {
            let right = &OFFSET_FETCH_ALL_TOPICS;
            group.topics.retain(|topic| may_topic(call, right, &topic.name, &topic.topic_id));
        }
        group.topics.extend(self.refused);
        group
    }
}

/// Takes out the topics that the client may not describe, and answers them.
fn remove_denied(call: &Call, topics: &mut Vec<OffsetFetchRequestTopics>) -> Vec<OffsetFetchResponseTopics> {
    let check = |topic: &OffsetFetchRequestTopics| {
        check_topic(call, &OFFSET_FETCH_TOPIC, &topic.name, &topic.topic_id)
    };
    let refused = call.set_aside_with(topics, check).into_iter().map(|(topic, error)| {
        let partition = |partition_index| OffsetFetchResponsePartitions {
            partition_index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some(String::new()),
            error_code: error.code(),
        };
        OffsetFetchResponseTopics {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: topic.partition_indexes.into_iter().map(partition).collect(),
        }
    });
    refused.collect()
}

fn only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup {
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..Default::default()
        });
        topics.collect()
    });
    OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }
}

/// The answer of a group that cannot be asked, still without an error.
fn blank_response(call: &Call, group: &OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let topics = group.topics.iter().flatten().filter(|_| call.version < OWN_ERROR_FROM);
    let topics = topics.map(|topic| OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partition_indexes
            .iter()
            .map(|partition| OffsetFetchResponsePartitions {
                partition_index: *partition,
                committed_offset: -1,
                ..Default::default()
            })
            .collect(),
    });
    OffsetFetchResponseGroup {
        group_id: group.group_id.clone(),
        topics: topics.collect(),
        ..Default::default()
    }
}

fn error_response(mut blank_response: OffsetFetchResponseGroup, error_code: i16) -> OffsetFetchResponseGroup {
    blank_response.error_code = error_code;
    for partition in blank_response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error_code;
    }
    blank_response
}

fn in_version(version: i16, mut groups: Vec<OffsetFetchResponseGroup>) -> OffsetFetchResponse {
    if version >= MANY_FROM {
        return OffsetFetchResponse { groups, ..Default::default() };
    }
    let only = groups.pop().unwrap_or_default();
    let topics = only.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
            })
            .collect(),
    });
    OffsetFetchResponse { topics: topics.collect(), error_code: only.error_code, ..Default::default() }
}
