//! ShareFetch (78): a member of a share group acknowledges records and acquires others.
use bytes::Bytes;
use uuid::Uuid;

use super::hex;
use crate::schema::messages;

/// `share_acquire_mode` of a request that may be given more records than it asks for, in whole batches.
pub const BATCH_OPTIMIZED: i8 = 0;
/// `share_acquire_mode` of a request that is given no more records than it asks for.
pub const RECORD_LIMIT: i8 = 1;

messages! {
    /// What is acknowledged, and how much is wanted.
    ShareFetchRequest of ShareFetch {
        group_id: Option<String> [0+],
        member_id: Option<String> [0+],
        /// 0 opens a session, -1 closes it; else one more with each request.
        share_session_epoch: i32 [0+],
        max_wait_ms: i32 [0+],
        min_bytes: i32 [0+],
        max_bytes: i32 [0+] = i32::MAX,
        max_records: i32 [1+],
        /// Most records of one batch of acquired records.
        batch_size: i32 [1+],
        share_acquire_mode: i8 [2+],
        /// Whether some of the acknowledgements renew.
        is_renew_ack: bool [2+],
        topics: Vec<FetchTopic> [0+],
        forgotten_topics_data: Vec<ForgottenTopic> [0+],
    }

    /// The partitions of a topic.
    FetchTopic {
        topic_id: Uuid [0+],
        partitions: Vec<FetchPartition> [0+],
    }

    /// A partition that comes into the session, or whose records are acknowledged.
    FetchPartition {
        partition_index: i32 [0+],
        acknowledgement_batches: Vec<AcknowledgementBatch> [0+],
    }

    /// What became of a run of records.
    AcknowledgementBatch {
        first_offset: i64 [0+],
        last_offset: i64 [0+],
        /// One for all, or one for each offset: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
        acknowledge_types: Vec<i8> [0+],
    }

    /// Partitions that leave the session.
    ForgottenTopic {
        topic_id: Uuid [0+],
        partitions: Vec<i32> [0+],
    }

    /// Batches, and which of their records the member may process.
    ShareFetchResponse of ShareFetch {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        acquisition_lock_timeout_ms: i32 [1+],
        responses: Vec<ShareFetchableTopicResponse> [0+],
        node_endpoints: Vec<NodeEndpoint> [0+],
    }

    /// The partitions of a topic.
    ShareFetchableTopicResponse {
        topic_id: Uuid [0+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition's batches.
    PartitionData {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        acknowledge_error_code: i16 [0+],
        acknowledge_error_message: Option<String> [0+],
        current_leader: LeaderIdAndEpoch [0+],
        /// A slice of the frame when read; when written, this or a part of a file: `message::response_frame_around`.
        #[serde(with = "hex::never_null")]
        records: Bytes [0+],
        acquired_records: Vec<AcquiredRecords> [0+],
    }

    /// The partition's leader, when it is not this broker.
    LeaderIdAndEpoch {
        leader_id: i32 [0+],
        leader_epoch: i32 [0+],
    }

    /// A run of records that the member may process.
    AcquiredRecords {
        first_offset: i64 [0+],
        last_offset: i64 [0+],
        delivery_count: i16 [0+],
    }

    /// Where to reach a broker named in `current_leader`.
    NodeEndpoint {
        node_id: i32 [0+],
        host: String [0+],
        port: i32 [0+],
        rack: Option<String> [0+],
    }
}
