//! Fetch (1): record batches from an offset on.
//!
//! Tags 10000 are pylog's own: where the records of an answer lie, for a reader that has the broker's disk at hand. Kafka numbers its
//! tags from 0 on, a few a year, so that none of them will meet these; who does not know a tag passes over it (KIP-482), and a
//! broker answers with it only to who sent it.
use bytes::Bytes;
use uuid::Uuid;

use super::hex;
use crate::schema::messages;

/// What a request says in `local_reads`.
pub mod local_reads {
    /// Nothing, as every client of Kafka's does.
    pub const NO: i8 = 0;
    /// The answer is to have the records, and to say where the data directory is.
    pub const ASK: i8 = 1;
    /// The reader sees the data directory: the answer is to say where the records lie, instead of having them.
    pub const SEES: i8 = 2;
}

messages! {
    /// Offsets to read from, by topic and partition, and how long to wait for data.
    FetchRequest of Fetch {
        cluster_id: Option<String> [12+ tag 0],
        replica_state: ReplicaState [15+ tag 1],
        /// -1 for a consumer; from version 15 on in `replica_state`.
        replica_id: i32 [0-14] = -1,
        max_wait_ms: i32 [0+],
        min_bytes: i32 [0+],
        max_bytes: i32 [3+] = i32::MAX,
        /// 0: read uncommitted; 1: read committed.
        isolation_level: i8 [4+],
        session_id: i32 [7+],
        session_epoch: i32 [7+] = -1,
        topics: Vec<FetchTopic> [0+],
        forgotten_topics_data: Vec<ForgottenTopic> [7+],
        rack_id: String [11+],
        /// See [`local_reads`].
        local_reads: i8 [12+ tag 10000],
    }

    /// A follower's identity.
    ReplicaState {
        replica_id: i32 [15+] = -1,
        replica_epoch: i64 [15+] = -1,
    }

    /// A topic, by name or, from version 13 on, by id.
    FetchTopic {
        topic: String [0-12],
        topic_id: Uuid [13+],
        partitions: Vec<FetchPartition> [0+],
    }

    /// A partition and where to start.
    FetchPartition {
        partition: i32 [0+],
        current_leader_epoch: i32 [9+] = -1,
        fetch_offset: i64 [0+],
        last_fetched_epoch: i32 [12+] = -1,
        /// Only a follower has one.
        log_start_offset: i64 [5+] = -1,
        partition_max_bytes: i32 [0+],
        replica_directory_id: Uuid [17+ tag 0],
        high_watermark: i64 [18+ tag 1] = i64::MAX,
    }

    /// Partitions to remove from the session.
    ForgottenTopic {
        topic: String [7-12],
        topic_id: Uuid [13+],
        partitions: Vec<i32> [7+],
    }

    /// Batches by topic and partition.
    FetchResponse of Fetch {
        throttle_time_ms: i32 [1+],
        error_code: i16 [7+],
        session_id: i32 [7+],
        responses: Vec<FetchableTopicResponse> [0+],
        node_endpoints: Vec<NodeEndpoint> [16+ tag 0],
        /// To a request with `local_reads`.
        in_directory: InDirectory [12+ tag 10000],
    }

    /// Where the broker's data directory is, and the part of a segment there that has the records of the answer's only partition.
    InDirectory {
        /// Absolute; empty when this broker lets nobody read its files.
        directory: String [12+],
        /// What the directory's file of that name holds since the broker's start.
        nonce: Uuid [12+],
        /// The first offset of the segment, after which its files are named; -1 when the answer has the records itself.
        segment: i64 [12+] = -1,
        /// The number of its `.log` in the file system, and when that was made, in nanoseconds since the epoch: another file may have
        /// the name meanwhile, and even the number.
        inode: i64 [12+],
        made_ns: i64 [12+],
        position: i64 [12+],
        size: i32 [12+],
        /// Nothing is stored between the last record of these bytes and this offset.
        next_offset: i64 [12+],
    }

    /// The partitions of a topic.
    FetchableTopicResponse {
        topic: String [0-12],
        topic_id: Uuid [13+],
        partitions: Vec<PartitionData> [0+],
    }

    /// A partition's batches and offsets.
    PartitionData {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        high_watermark: i64 [0+],
        last_stable_offset: i64 [4+] = -1,
        log_start_offset: i64 [5+] = -1,
        diverging_epoch: EpochEndOffset [12+ tag 0],
        current_leader: LeaderIdAndEpoch [12+ tag 1],
        snapshot_id: SnapshotId [12+ tag 2],
        aborted_transactions: Option<Vec<AbortedTransaction>> [4+],
        preferred_read_replica: i32 [11+] = -1,
        /// A slice of the frame when read; when written, this or a part of a file: `message::response_frame_around`.
        #[serde(with = "hex")]
        records: Option<Bytes> [0+],
    }

    /// Where a follower's log departs from the leader's.
    EpochEndOffset {
        epoch: i32 [12+] = -1,
        end_offset: i64 [12+] = -1,
    }

    /// The partition's leader, when it is not this broker.
    LeaderIdAndEpoch {
        leader_id: i32 [12+] = -1,
        leader_epoch: i32 [12+] = -1,
    }

    /// A snapshot to fetch instead (KRaft).
    SnapshotId {
        end_offset: i64 [0+] = -1,
        epoch: i32 [0+] = -1,
    }

    /// A transaction whose records a reader of committed data must drop.
    AbortedTransaction {
        producer_id: i64 [4+],
        first_offset: i64 [4+],
    }

    /// Where to reach a broker named in `current_leader`.
    NodeEndpoint {
        node_id: i32 [16+],
        host: String [16+],
        port: i32 [16+],
        rack: Option<String> [16+],
    }
}
