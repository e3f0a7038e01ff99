//! DeleteShareGroupOffsets (92): a share group without members forgets topics.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Which topics.
    DeleteShareGroupOffsetsRequest of DeleteShareGroupOffsets {
        group_id: String [0+],
        topics: Vec<DeleteShareGroupOffsetsRequestTopic> [0+],
    }

    /// A topic.
    DeleteShareGroupOffsetsRequestTopic {
        topic_name: String [0+],
    }

    /// Whether it was done.
    DeleteShareGroupOffsetsResponse of DeleteShareGroupOffsets {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        responses: Vec<DeleteShareGroupOffsetsResponseTopic> [0+],
    }

    /// A topic.
    DeleteShareGroupOffsetsResponseTopic {
        topic_name: String [0+],
        topic_id: Uuid [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
