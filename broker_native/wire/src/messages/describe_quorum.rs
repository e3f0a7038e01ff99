//! DescribeQuorum (55): who votes on the cluster's metadata, and who leads them.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Of which logs; there is only the one of the metadata.
    DescribeQuorumRequest of DescribeQuorum {
        topics: Vec<AskedTopic> [0+],
    }

    /// A topic.
    AskedTopic {
        topic_name: String [0+],
        partitions: Vec<AskedPartition> [0+],
    }

    /// A partition.
    AskedPartition {
        partition_index: i32 [0+],
    }

    /// The quorum.
    DescribeQuorumResponse of DescribeQuorum {
        error_code: i16 [0+],
        error_message: Option<String> [2+] = Some(String::new()),
        topics: Vec<QuorumTopic> [0+],
        nodes: Vec<QuorumNode> [2+],
    }

    /// A topic.
    QuorumTopic {
        topic_name: String [0+],
        partitions: Vec<QuorumPartition> [0+],
    }

    /// Who leads, votes and follows.
    QuorumPartition {
        partition_index: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [2+] = Some(String::new()),
        leader_id: i32 [0+],
        leader_epoch: i32 [0+],
        high_watermark: i64 [0+],
        current_voters: Vec<ReplicaState> [0+],
        observers: Vec<ReplicaState> [0+],
    }

    /// How far a replica of the log is; -1: not known.
    ReplicaState {
        replica_id: i32 [0+],
        replica_directory_id: Uuid [2+],
        log_end_offset: i64 [0+],
        last_fetch_timestamp: i64 [1+] = -1,
        last_caught_up_timestamp: i64 [1+] = -1,
    }

    /// Where a voter is reached.
    QuorumNode {
        node_id: i32 [2+],
        listeners: Vec<QuorumListener> [2+],
    }

    /// One of its addresses.
    QuorumListener {
        name: String [2+],
        host: String [2+],
        port: u16 [2+],
    }
}
