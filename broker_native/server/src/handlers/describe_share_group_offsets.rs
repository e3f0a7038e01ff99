//! DescribeShareGroupOffsets: the first offset of each partition that is not done with, and the lag. As in Kafka, a group, topic or
//! partition that is not there has no offsets, which is no error.
//!
//! KIP-932. Version 1 has the lag (KIP-1226).
use std::collections::BTreeMap;

use super::common::share_admin::{Refusal, check_coordinated, check_count, check_kept, check_loaded};
use super::common::share_log_ends::end_of;
use crate::authorization::table::{
    DESCRIBE_SHARE_GROUP_OFFSETS_ALL, DESCRIBE_SHARE_GROUP_OFFSETS_GROUP, DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC,
};
use crate::call::{Call, Outcome};
use crate::state::topics::Topic;
use pylog_coordinator::share::ShareKey;
use pylog_coordinator::share::state_requests::UNKNOWN;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition, DescribeShareGroupOffsetsResponseTopic,
};
use pylog_wire::messages::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};

/// Stands for "none".
const NONE: i64 = -1;

/// Answers with the groups in the order of the request.
pub fn handle(call: Call, request: DescribeShareGroupOffsetsRequest) -> Outcome {
    Outcome::later(async move {
        let topics = request.groups.iter().flat_map(|group| group.topics.iter().flatten());
        let counted = check_count(topics.map(|topic| topic.partitions.len()).sum());
        let mut response = DescribeShareGroupOffsetsResponse::default();
        for group in request.groups {
            let group_id = group.group_id.clone();
            let described = match counted.clone() {
                Ok(()) => describe(&call, group).await,
                refusal => refusal.map(|()| Topics::new()),
            };
            let described = match described {
                Ok(topics) => {
                    DescribeShareGroupOffsetsResponseGroup { group_id, topics, ..Default::default() }
                }
                Err((error, sentence)) => DescribeShareGroupOffsetsResponseGroup {
                    group_id,
                    error_code: error.code(),
                    error_message: Some(sentence),
                    ..Default::default()
                },
            };
            response.groups.push(described);
        }
        call.answer(&response)
    })
}

type Topics = Vec<DescribeShareGroupOffsetsResponseTopic>;

async fn describe(call: &Call, group: DescribeShareGroupOffsetsRequestGroup) -> Result<Topics, Refusal> {
    let plain = |error: ErrorCode| (error, error.sentence().to_owned());
    call.check(&DESCRIBE_SHARE_GROUP_OFFSETS_GROUP, &group.group_id).map_err(plain)?;
    check_kept(call)?;
    check_coordinated(call, &group.group_id)?;
    check_loaded(&call.shared)?;
    let mut answers = Topics::new();
    for (name, partitions) in asked(call, &group).await? {
        if let Err(error) = check_topic(call, &group, &name) {
            answers.extend(error.map(|error| refused(name, partitions, error)));
            continue;
        }
        let topic = call.shared.topics.now().named(&name).cloned();
        let mut answer = DescribeShareGroupOffsetsResponseTopic { topic_name: name, ..Default::default() };
        answer.topic_id = topic.as_ref().map(|topic| topic.id).unwrap_or_default();
        for number in partitions {
            answer.partitions.push(describe_partition(call, &group.group_id, topic.as_deref(), number).await);
        }
        answers.push(answer);
    }
    Ok(answers)
}

/// Whether the client may know of the topic.
///
/// # Errors
/// What is answered; nothing where all topics of the group are asked for.
fn check_topic(
    call: &Call,
    group: &DescribeShareGroupOffsetsRequestGroup,
    name: &str,
) -> Result<(), Option<ErrorCode>> {
    match group.topics {
        Some(_) => call.check(&DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC, name).map_err(Some),
        None => call.check(&DESCRIBE_SHARE_GROUP_OFFSETS_ALL, name).map_err(|_hidden| None),
    }
}

fn refused(
    topic_name: String,
    partitions: Vec<i32>,
    error: ErrorCode,
) -> DescribeShareGroupOffsetsResponseTopic {
    let refused = partitions.into_iter().map(|partition_index| DescribeShareGroupOffsetsResponsePartition {
        partition_index,
        start_offset: NONE,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        ..Default::default()
    });
    DescribeShareGroupOffsetsResponseTopic { topic_name, partitions: refused.collect(), ..Default::default() }
}

/// The partitions that are named, or all that the group has.
async fn asked(
    call: &Call,
    group: &DescribeShareGroupOffsetsRequestGroup,
) -> Result<BTreeMap<String, Vec<i32>>, Refusal> {
    if let Some(topics) = &group.topics {
        return Ok(topics.iter().map(|topic| (topic.topic_name.clone(), topic.partitions.clone())).collect());
    }
    let all = call.shared.coordinators.share_store.keys(&group.group_id).await;
    let all = all.map_err(|error| (error, error.sentence().to_owned()))?;
    let image = call.shared.topics.now();
    let mut asked: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for key in all {
        if let Some(topic) = image.with_id(&key.topic_id) {
            asked.entry(topic.name.clone()).or_default().push(key.partition);
        }
    }
    Ok(asked)
}

async fn describe_partition(
    call: &Call,
    group_id: &str,
    topic: Option<&Topic>,
    partition_index: i32,
) -> DescribeShareGroupOffsetsResponsePartition {
    let blank = DescribeShareGroupOffsetsResponsePartition {
        partition_index,
        start_offset: NONE,
        ..Default::default()
    };
    if !call.shared.coordinators.shares.has_topic() {
        return blank;
    }
    let failed = |error: ErrorCode| DescribeShareGroupOffsetsResponsePartition {
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        ..blank.clone()
    };
    let found = topic.and_then(|topic| topic.partition(partition_index).map(|partition| (topic, partition)));
    let Some((topic, partition)) = found else { return blank };
    let key = ShareKey { group_id: group_id.to_owned(), topic_id: topic.id, partition: partition_index };
    match call.shared.coordinators.share_store.summary(&key).await {
        Ok(None) => blank,
        Ok(Some(state)) if state.start_offset == UNKNOWN => blank,
        Ok(Some(state)) => {
            let (start_offset, done) = (state.start_offset, i64::from(state.complete_count));
            let end = end_of(call, &topic.name, partition).await;
            let lag = end.map_or(NONE, |end| end.saturating_sub(start_offset).saturating_sub(done).max(0));
            DescribeShareGroupOffsetsResponsePartition {
                start_offset,
                leader_epoch: partition.spec.leader_epoch,
                lag,
                ..blank
            }
        }
        Err(error) => failed(error),
    }
}
