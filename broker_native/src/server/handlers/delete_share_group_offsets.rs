//! DeleteShareGroupOffsets: a share group without members forgets topics; it begins with them anew when it reads them again.
use super::share_admin::{delete, keys, must_be_empty};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::delete_share_group_offsets::DeleteShareGroupOffsetsResponseTopic;
use crate::wire::messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};

/// Answers when it is written down.
pub fn handle(call: Call, request: DeleteShareGroupOffsetsRequest) -> Outcome {
    if let Err((error, sentence)) = must_be_empty(&call, &request.group_id) {
        return Outcome::Now(call.answer(&DeleteShareGroupOffsetsResponse {
            error_code: error.code(),
            error_message: Some(sentence),
            ..Default::default()
        }));
    }
    Outcome::later(async move {
        let mut response = DeleteShareGroupOffsetsResponse::default();
        for asked in request.topics {
            let topic = call.shared.topics.now().named(&asked.topic_name).cloned();
            let topic_id = topic.map(|topic| topic.id).unwrap_or_default();
            let mine = keys(&call.shared, |key| key.topic_id == topic_id && key.group_id == request.group_id);
            let error = match mine {
                // Of a topic that is not there, too.
                Ok(mine) if mine.is_empty() => ErrorCode::UnknownTopicOrPartition,
                Ok(mine) => delete(&call.shared, mine).await,
                Err(error) => error,
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
