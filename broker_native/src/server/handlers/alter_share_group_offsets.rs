//! AlterShareGroupOffsets: moves a share group without members to other offsets; everything before them is done with, everything from
//! there on is delivered as if for the first time.
use super::share_admin::{check_count, must_be_empty};
use super::share_call::{ask, error_of};
use crate::coordinator::share::{ShareKey, ShareRequest};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use crate::wire::messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};

/// Answers when it is written down.
pub fn handle(call: Call, request: AlterShareGroupOffsetsRequest) -> Outcome {
    let count = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let allowed = check_count(count).and_then(|()| must_be_empty(&call, &request.group_id));
    if let Err((error, sentence)) = allowed {
        return Outcome::Now(call.answer(&AlterShareGroupOffsetsResponse {
            error_code: error.code(),
            error_message: Some(sentence),
            ..Default::default()
        }));
    }
    Outcome::later(async move {
        let mut response = AlterShareGroupOffsetsResponse::default();
        for asked in request.topics {
            let topic = call.shared.topics.now().named(&asked.topic_name).cloned();
            let mut answer = AlterShareGroupOffsetsResponseTopic {
                topic_name: asked.topic_name,
                topic_id: topic.as_ref().map(|topic| topic.id).unwrap_or_default(),
                partitions: Vec::new(),
            };
            for one in asked.partitions {
                let number = one.partition_index;
                let known = topic.as_ref().filter(|topic| topic.partition(number).is_some());
                let error = match known {
                    None => ErrorCode::UnknownTopicOrPartition,
                    Some(_) if one.start_offset < 0 => ErrorCode::InvalidRequest,
                    Some(topic) => {
                        let group_id = request.group_id.clone();
                        let key = ShareKey { group_id, topic_id: topic.id, partition: number };
                        let reset = ShareRequest::Reset { start_offset: one.start_offset };
                        error_of(ask(&call.shared, key, reset).await)
                    }
                };
                answer.partitions.push(AlterShareGroupOffsetsResponsePartition {
                    partition_index: number,
                    error_code: error.code(),
                    error_message: (error != ErrorCode::None).then(|| error.sentence().to_owned()),
                });
            }
            response.responses.push(answer);
        }
        call.answer(&response)
    })
}
