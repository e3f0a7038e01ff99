//! Which topic a producer means.
use std::sync::Arc;

use crate::call::Call;
use crate::state::topics::{MetadataImage, Topic};
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::TopicProduceData;

/// From this version on topics are named by id.
pub const TOPIC_IDS_FROM: i16 = 13;

/// The topic that a request means; `refusal`: why the client may not write to it.
///
/// # Errors
/// `TOPIC_AUTHORIZATION_FAILED`, `UNKNOWN_TOPIC_ID`, `UNKNOWN_TOPIC_OR_PARTITION`.
pub fn find<'a>(
    call: &Call,
    topics: &'a MetadataImage,
    asked: &TopicProduceData,
    refusal: Option<ErrorCode>,
) -> Result<&'a Arc<Topic>, ErrorCode> {
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if call.version >= TOPIC_IDS_FROM {
        return topics.with_id(&asked.topic_id).ok_or(ErrorCode::UnknownTopicId);
    }
    topics.named(&asked.name).ok_or(ErrorCode::UnknownTopicOrPartition)
}
