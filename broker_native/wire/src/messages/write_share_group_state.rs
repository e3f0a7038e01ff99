//! WriteShareGroupState (85): the leader of a partition says what a group did with it.
use uuid::Uuid;

pub use super::read_share_group_state::StateBatch;
use crate::schema::messages;

messages! {
    /// What is written.
    WriteShareGroupStateRequest of WriteShareGroupState {
        group_id: String [0+],
        topics: Vec<WriteStateData> [0+],
    }

    /// The partitions of a topic.
    WriteStateData {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition: i32 [0+],
        state_epoch: i32 [0+],
        leader_epoch: i32 [0+],
        /// -1: it stays.
        start_offset: i64 [0+],
        /// Offsets behind the start that are done with; -1: not said.
        delivery_complete_count: i32 [1+] = -1,
        state_batches: Vec<StateBatch> [0+],
    }

    /// What became of it.
    WriteShareGroupStateResponse of WriteShareGroupState {
        results: Vec<WriteStateResult> [0+],
    }

    /// The partitions of a topic.
    WriteStateResult {
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
