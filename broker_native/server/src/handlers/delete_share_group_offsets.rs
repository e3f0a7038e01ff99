//! DeleteShareGroupOffsets: a share group without members forgets topics; it begins with them anew when it reads them again.
//!
//! KIP-932.
use std::collections::BTreeMap;

use uuid::Uuid;

use super::common::share_admin::{delete, must_be_empty};
use crate::authorization::table::{DELETE_SHARE_GROUP_OFFSETS_GROUP, DELETE_SHARE_GROUP_OFFSETS_TOPIC};
use crate::call::{Call, Outcome};
use pylog_coordinator::share::ShareKey;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_share_group_offsets::DeleteShareGroupOffsetsResponseTopic;
use pylog_wire::messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, request: DeleteShareGroupOffsetsRequest) -> Outcome {
    let allowed = call.check(&DELETE_SHARE_GROUP_OFFSETS_GROUP, &request.group_id);
    let allowed = allowed.map_err(|error| (error, error.sentence().to_owned()));
    if let Err((error, sentence)) = allowed.and_then(|()| must_be_empty(&call, &request.group_id)) {
        return Outcome::Now(call.answer(&DeleteShareGroupOffsetsResponse {
            error_code: error.code(),
            error_message: Some(sentence),
            ..Default::default()
        }));
    }
    Outcome::later(async move {
        let mut response = DeleteShareGroupOffsetsResponse::default();
        let mut all = BTreeMap::<Uuid, Vec<ShareKey>>::new();
        match call.shared.coordinators.share_store.keys(&request.group_id).await {
            Ok(keys) => keys.into_iter().for_each(|key| all.entry(key.topic_id).or_default().push(key)),
            Err(error) => {
                (response.error_code, response.error_message) =
                    (error.code(), Some(error.sentence().to_owned()));
                return call.answer(&response);
            }
        }
        for asked in request.topics {
            if let Err(error) = call.check(&DELETE_SHARE_GROUP_OFFSETS_TOPIC, &asked.topic_name) {
                response.responses.push(DeleteShareGroupOffsetsResponseTopic {
                    topic_name: asked.topic_name,
                    error_code: error.code(),
                    error_message: Some(error.sentence().to_owned()),
                    ..Default::default()
                });
                continue;
            }
            let topic_id = call.shared.topics.now().named(&asked.topic_name).map(|topic| topic.id);
            let topic_id = topic_id.unwrap_or_default();
            let (topic_id, error) = match all.remove(&topic_id) {
                // The id is told of topics alone that the group has.
                None => (Uuid::nil(), ErrorCode::UnknownTopicOrPartition),
                Some(mine) => (topic_id, delete(&call.shared, mine).await),
            };
            response.responses.push(DeleteShareGroupOffsetsResponseTopic {
                topic_name: asked.topic_name,
                topic_id,
                error_code: error.code(),
                error_message: (error != ErrorCode::None).then(|| error.sentence().to_owned()),
            });
        }
        call.answer(&response)
    })
}
