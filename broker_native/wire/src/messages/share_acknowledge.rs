//! ShareAcknowledge (79): a member of a share group says what became of records.
use uuid::Uuid;

pub use super::share_fetch::{AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint};
use crate::schema::messages;

messages! {
    /// What became of which records.
    ShareAcknowledgeRequest of ShareAcknowledge {
        group_id: Option<String> [0+],
        member_id: Option<String> [0+],
        /// -1 closes the session; else one more with each request.
        share_session_epoch: i32 [0+],
        /// Whether some of the acknowledgements renew.
        is_renew_ack: bool [2+],
        topics: Vec<AcknowledgeTopic> [0+],
    }

    /// The partitions of a topic.
    AcknowledgeTopic {
        topic_id: Uuid [0+],
        partitions: Vec<AcknowledgePartition> [0+],
    }

    /// A partition's records.
    AcknowledgePartition {
        partition_index: i32 [0+],
        acknowledgement_batches: Vec<AcknowledgementBatch> [0+],
    }

    /// Whether it was taken.
    ShareAcknowledgeResponse of ShareAcknowledge {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        acquisition_lock_timeout_ms: i32 [2+],
        responses: Vec<ShareAcknowledgeTopicResponse> [0+],
        node_endpoints: Vec<NodeEndpoint> [0+],
    }

    /// The partitions of a topic.
    ShareAcknowledgeTopicResponse {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        current_leader: LeaderIdAndEpoch [0+],
    }
}
