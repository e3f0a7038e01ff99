//! Produce (0): record batches to append.
//!
//! Tags 10000 are pylog's own, as in Fetch: with them a mirror hands batches of another cluster over, which keep their offsets
//! ([`mirrored`]). They count only together with `acks` [`mirrored::ACKS`], which every broker refuses that does not know them.
use bytes::Bytes;
use uuid::Uuid;

use super::hex;
use crate::schema::messages;

/// What a mirror says.
pub mod mirrored {
    /// In the place of `acks`. Nobody else has such a number, and a broker that does not know it refuses the request
    /// (INVALID_REQUIRED_ACKS), so that it cannot take the batches for a producer's. It is answered as acks=all.
    pub const ACKS: i16 = -10;
    /// In the place of `mirrored_from`: the mirror has ended. Transactions that are open are aborted, and producers forgotten.
    pub const END: i64 = -2;
    /// In the place of `mirror_source` and of the topic's setting `mirror.source`: the topic is being promoted.
    pub const ENDED: &str = "ended";
}

messages! {
    /// Batches by topic and partition.
    ProduceRequest of Produce {
        transactional_id: Option<String> [3+],
        /// 0: no answer; 1: the leader has it; -1: the in-sync replicas have it.
        acks: i16 [0+],
        timeout_ms: i32 [0+],
        topic_data: Vec<TopicProduceData> [0+],
        /// The id of the cluster that the batches are from. See [`mirrored`].
        mirror_source: Option<String> [9+ tag 10000],
    }

    /// A topic, by name or, from version 13 on, by id.
    TopicProduceData {
        name: String [0-12],
        topic_id: Uuid [13+],
        partition_data: Vec<PartitionProduceData> [0+],
    }

    /// The batch of one partition.
    PartitionProduceData {
        index: i32 [0+],
        /// A slice of the frame, not looked at here.
        #[serde(with = "hex")]
        records: Option<Bytes> [0+],
        /// The batches are all that the source has from this offset on; without batches it has nothing before it.
        mirrored_from: i64 [9+ tag 10000] = -1,
    }

    /// What became of each batch.
    ProduceResponse of Produce {
        responses: Vec<TopicProduceResponse> [0+],
        throttle_time_ms: i32 [1+],
        node_endpoints: Vec<NodeEndpoint> [10+ tag 0],
    }

    /// The partitions of a topic.
    TopicProduceResponse {
        name: String [0-12],
        topic_id: Uuid [13+],
        partition_responses: Vec<PartitionProduceResponse> [0+],
    }

    /// Where the batch lies, or why it does not.
    PartitionProduceResponse {
        index: i32 [0+],
        error_code: i16 [0+],
        base_offset: i64 [0+],
        /// -1 unless the topic's timestamps are the broker's.
        log_append_time_ms: i64 [2+] = -1,
        log_start_offset: i64 [5+] = -1,
        record_errors: Vec<BatchIndexAndErrorMessage> [8+],
        error_message: Option<String> [8+],
        current_leader: LeaderIdAndEpoch [10+ tag 0],
        /// One past the last record that is written, in an answer to a mirror.
        log_end_offset: i64 [9+ tag 10000] = -1,
    }

    /// A record that caused the batch to be refused.
    BatchIndexAndErrorMessage {
        batch_index: i32 [8+],
        batch_index_error_message: Option<String> [8+],
    }

    /// The partition's leader, when it is not this broker.
    LeaderIdAndEpoch {
        leader_id: i32 [10+] = -1,
        leader_epoch: i32 [10+] = -1,
    }

    /// Where to reach a broker named in `current_leader`.
    NodeEndpoint {
        node_id: i32 [10+],
        host: String [10+],
        port: i32 [10+],
        rack: Option<String> [10+],
    }
}
