//! ReadShareGroupState (84): the leader of a partition asks what a group did with it; the leader before is fenced.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What is read.
    ReadShareGroupStateRequest of ReadShareGroupState {
        group_id: String [0+],
        topics: Vec<ReadStateData> [0+],
    }

    /// The partitions of a topic.
    ReadStateData {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition: i32 [0+],
        leader_epoch: i32 [0+],
    }

    /// What became of it.
    ReadShareGroupStateResponse of ReadShareGroupState {
        results: Vec<ReadStateResult> [0+],
    }

    /// The partitions of a topic.
    ReadStateResult {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionResult> [0+],
    }

    /// A partition.
    PartitionResult {
        partition: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        state_epoch: i32 [0+],
        /// -1: it is not known yet.
        start_offset: i64 [0+],
        state_batches: Vec<StateBatch> [0+],
    }

    /// A run of offsets in the same state.
    StateBatch {
        first_offset: i64 [0+],
        last_offset: i64 [0+],
        /// 0: available, 2: acknowledged, 4: archived.
        delivery_state: i8 [0+],
        delivery_count: i16 [0+],
    }
}
