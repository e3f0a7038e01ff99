//! TxnOffsetCommit (28): offsets that count when a transaction commits.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Offsets by topic and partition. Version 5 (KIP-890) says that the coordinator adds the group to the transaction;
    /// version 6 (KIP-1319) names topics by id.
    TxnOffsetCommitRequest of TxnOffsetCommit {
        transactional_id: String [0+],
        group_id: String [0+],
        producer_id: i64 [0+],
        producer_epoch: i16 [0+],
        /// Or the member's epoch, of a group of KIP-848.
        generation_id: i32 [3+] = -1,
        member_id: String [3+],
        group_instance_id: Option<String> [3+],
        topics: Vec<TxnOffsetCommitRequestTopic> [0+],
    }

    /// The partitions of a topic.
    TxnOffsetCommitRequestTopic {
        name: String [0-5],
        topic_id: Uuid [6+],
        partitions: Vec<TxnOffsetCommitRequestPartition> [0+],
    }

    /// The offset of a partition.
    TxnOffsetCommitRequestPartition {
        partition_index: i32 [0+],
        committed_offset: i64 [0+],
        committed_leader_epoch: i32 [2+] = -1,
        committed_metadata: Option<String> [0+] = Some(String::new()),
    }

    /// What became of each partition.
    TxnOffsetCommitResponse of TxnOffsetCommit {
        throttle_time_ms: i32 [0+],
        topics: Vec<TxnOffsetCommitResponseTopic> [0+],
    }

    /// The partitions of a topic.
    TxnOffsetCommitResponseTopic {
        name: String [0-5],
        topic_id: Uuid [6+],
        partitions: Vec<TxnOffsetCommitResponsePartition> [0+],
    }

    /// What became of a partition's offset.
    TxnOffsetCommitResponsePartition {
        partition_index: i32 [0+],
        error_code: i16 [0+],
    }
}
