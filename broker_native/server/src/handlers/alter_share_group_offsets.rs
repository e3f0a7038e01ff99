//! AlterShareGroupOffsets: moves a share group without members to other offsets; everything before them is done with, everything from
//! there on is delivered as if for the first time. A group that is not there is made. A negative offset: the group forgets the partition
//! and begins with it anew.
//!
//! KIP-932.
use std::sync::Arc;

use super::common::group_call;
use super::common::internal_topic;
use super::common::share_admin::{Refusal, check_count, check_id, check_loaded};
use crate::authorization::table::{ALTER_SHARE_GROUP_OFFSETS_GROUP, ALTER_SHARE_GROUP_OFFSETS_TOPIC};
use crate::call::{Call, Outcome};
use crate::state::topics::Topic;
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_coordinator::share::ShareKey;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use pylog_wire::messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, mut request: AlterShareGroupOffsetsRequest) -> Outcome {
    if let Err(error) = call.check(&ALTER_SHARE_GROUP_OFFSETS_GROUP, &request.group_id) {
        return Outcome::Now(call.answer(&error_response((error, error.sentence().to_owned()))));
    }
    let count = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    if let Err(refusal) = check_count(count).and_then(|()| check_id(&call, &request.group_id)) {
        return Outcome::Now(call.answer(&error_response(refusal)));
    }
    let right = &ALTER_SHARE_GROUP_OFFSETS_TOPIC;
    let refused = call.set_aside(&mut request.topics, right, |topic| &topic.topic_name);
    let refused: Vec<_> = refused.into_iter().map(|topic| refusal(topic, right.error())).collect();
    // When all topics are refused, too, the group is asked: that it has members is the answer to all of the request.
    Outcome::later(async move {
        let asked = request.topics.into_iter().map(|asked| (topic_of(&call, &asked), asked));
        let asked: Vec<_> = asked.collect();
        let moves =
            asked.iter().any(|(topic, asked)| asked.partitions.iter().any(|partition| has(topic, partition)));
        if let Err(refusal) = may_move(&call, &request.group_id, moves).await {
            return call.answer(&error_response(refusal));
        }
        let mut response = AlterShareGroupOffsetsResponse::default();
        for (topic, asked) in asked {
            let mut answer = AlterShareGroupOffsetsResponseTopic {
                topic_name: asked.topic_name,
                topic_id: topic.as_ref().map(|topic| topic.id).unwrap_or_default(),
                partitions: Vec::new(),
            };
            for partition in asked.partitions {
                let error = move_partition(&call, &request.group_id, &topic, &partition).await;
                answer.partitions.push(AlterShareGroupOffsetsResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: error.code(),
                    error_message: (error != ErrorCode::None).then(|| error.sentence().to_owned()),
                });
            }
            response.responses.push(answer);
        }
        response.responses.extend(refused);
        call.answer(&response)
    })
}

/// The answer about a topic that the client may not read.
fn refusal(
    topic: AlterShareGroupOffsetsRequestTopic,
    error: ErrorCode,
) -> AlterShareGroupOffsetsResponseTopic {
    let refused = topic.partitions.iter().map(|partition| AlterShareGroupOffsetsResponsePartition {
        partition_index: partition.partition_index,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
    });
    AlterShareGroupOffsetsResponseTopic {
        partitions: refused.collect(),
        topic_name: topic.topic_name,
        ..Default::default()
    }
}

fn topic_of(call: &Call, asked: &AlterShareGroupOffsetsRequestTopic) -> Option<Arc<Topic>> {
    call.shared.topics.now().named(&asked.topic_name).cloned()
}

fn has(topic: &Option<Arc<Topic>>, asked: &AlterShareGroupOffsetsRequestPartition) -> bool {
    topic.as_ref().is_some_and(|topic| topic.partition(asked.partition_index).is_some())
}

/// Asks the group, which may be the first of all.
async fn may_move(call: &Call, group_id: &str, moves: bool) -> Result<(), Refusal> {
    let shares = &call.shared.coordinators.shares;
    if let Some(topic) = internal_topic::missing(shares).filter(|_| moves) {
        internal_topic::make(call, topic).await;
    }
    check_loaded(&call.shared)?;
    let asked = GroupRequest::ShareMove { group_id: group_id.to_owned(), moves };
    match group_call::ask(call, asked).await {
        Ok(GroupReply::ShareMove(answer)) => answer.map_err(|refusal| (refusal.error, refusal.message)),
        other => {
            let error = other.err().unwrap_or(ErrorCode::UnknownServerError);
            Err((error, error.sentence().to_owned()))
        }
    }
}

async fn move_partition(
    call: &Call,
    group_id: &str,
    topic: &Option<Arc<Topic>>,
    asked: &AlterShareGroupOffsetsRequestPartition,
) -> ErrorCode {
    let Some(topic) = topic.as_ref().filter(|_| has(topic, asked)) else {
        return ErrorCode::UnknownTopicOrPartition;
    };
    let key =
        ShareKey { group_id: group_id.to_owned(), topic_id: topic.id, partition: asked.partition_index };
    let store = &call.shared.coordinators.share_store;
    let outcome = match asked.start_offset {
        ..0 => store.delete(&key).await,
        start_offset => store.reset(&key, start_offset).await,
    };
    call.shared.coordinators.share_partitions.forget(&key);
    outcome.err().unwrap_or(ErrorCode::None)
}

fn error_response((error, sentence): Refusal) -> AlterShareGroupOffsetsResponse {
    AlterShareGroupOffsetsResponse {
        error_code: error.code(),
        error_message: Some(sentence),
        ..Default::default()
    }
}
