//! DeleteShareGroupState (86): the share partitions of a group end.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What ends.
    DeleteShareGroupStateRequest of DeleteShareGroupState {
        group_id: String [0+],
        topics: Vec<DeleteStateData> [0+],
    }

    /// The partitions of a topic.
    DeleteStateData {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition: i32 [0+],
    }

    /// What became of it.
    DeleteShareGroupStateResponse of DeleteShareGroupState {
        results: Vec<DeleteStateResult> [0+],
    }

    /// The partitions of a topic.
    DeleteStateResult {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionResult> [0+],
    }

    /// A partition.
    PartitionResult {
        partition: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
