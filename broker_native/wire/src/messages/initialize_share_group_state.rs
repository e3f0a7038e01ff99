//! InitializeShareGroupState (83): the share partitions of a group begin: a group coordinator asks whoever keeps their states.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What begins.
    InitializeShareGroupStateRequest of InitializeShareGroupState {
        group_id: String [0+],
        topics: Vec<InitializeStateData> [0+],
    }

    /// The partitions of a topic.
    InitializeStateData {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition: i32 [0+],
        state_epoch: i32 [0+],
        /// -1: it is not known yet.
        start_offset: i64 [0+],
    }

    /// What became of it.
    InitializeShareGroupStateResponse of InitializeShareGroupState {
        results: Vec<InitializeStateResult> [0+],
    }

    /// The partitions of a topic.
    InitializeStateResult {
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
