//! DeleteTopics (20).
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Topics to delete: `topics` from version 6 on, `topic_names` before.
    DeleteTopicsRequest of DeleteTopics {
        topics: Vec<DeleteTopicState> [6+],
        topic_names: Vec<String> [0-5],
        timeout_ms: i32 [0+],
    }

    /// A topic, by name or, with a null name, by id.
    DeleteTopicState {
        name: Option<String> [6+],
        topic_id: Uuid [6+],
    }

    /// What became of each topic.
    DeleteTopicsResponse of DeleteTopics {
        throttle_time_ms: i32 [1+],
        responses: Vec<DeletableTopicResult> [0+],
    }

    /// Whether the topic was deleted.
    DeletableTopicResult {
        name: Option<String> [0+ null 6+] = Some(String::new()),
        topic_id: Uuid [6+],
        error_code: i16 [0+],
        error_message: Option<String> [5+],
    }
}
