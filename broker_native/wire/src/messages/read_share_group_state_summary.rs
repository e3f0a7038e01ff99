//! ReadShareGroupStateSummary (87): an administrator's question: where the share partitions of a group are.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What is asked.
    ReadShareGroupStateSummaryRequest of ReadShareGroupStateSummary {
        group_id: String [0+],
        topics: Vec<ReadStateSummaryData> [0+],
    }

    /// The partitions of a topic.
    ReadStateSummaryData {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition.
    PartitionData {
        partition: i32 [0+],
        leader_epoch: i32 [0+],
    }

    /// What became of it.
    ReadShareGroupStateSummaryResponse of ReadShareGroupStateSummary {
        results: Vec<ReadStateSummaryResult> [0+],
    }

    /// The partitions of a topic.
    ReadStateSummaryResult {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionResult> [0+],
    }

    /// A partition.
    PartitionResult {
        partition: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        state_epoch: i32 [0+],
        leader_epoch: i32 [0+],
        /// -1: it is not known yet.
        start_offset: i64 [0+],
        /// Offsets behind it that are done with; -1: not said.
        delivery_complete_count: i32 [1+] = -1,
    }
}
