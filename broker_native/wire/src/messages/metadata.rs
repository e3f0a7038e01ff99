//! Metadata (3): brokers, topics, and which broker leads which partition.
use uuid::Uuid;

use crate::schema::messages;

/// `*_authorized_operations` when the request did not ask for them.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

messages! {
    /// Asks for topics; null means all, and in version 0 so does the empty list.
    MetadataRequest of Metadata {
        topics: Option<Vec<MetadataRequestTopic>> [0+ null 1+] = Some(Vec::new()),
        allow_auto_topic_creation: bool [4+] = true,
        include_cluster_authorized_operations: bool [8-10],
        include_topic_authorized_operations: bool [8+],
    }

    /// A topic, by name or, from version 12 on, by id with a null name.
    MetadataRequestTopic {
        topic_id: Uuid [10+],
        name: Option<String> [0+ null 10+] = Some(String::new()),
    }

    /// The cluster as the broker sees it.
    MetadataResponse of Metadata {
        throttle_time_ms: i32 [3+],
        brokers: Vec<MetadataResponseBroker> [0+],
        cluster_id: Option<String> [2+],
        controller_id: i32 [1+] = -1,
        topics: Vec<MetadataResponseTopic> [0+],
        cluster_authorized_operations: i32 [8-10] = OPERATIONS_NOT_ASKED,
        error_code: i16 [13+],
    }

    /// A broker and where to reach it.
    MetadataResponseBroker {
        node_id: i32 [0+],
        host: String [0+],
        port: i32 [0+],
        rack: Option<String> [1+],
    }

    /// A topic and its partitions.
    MetadataResponseTopic {
        error_code: i16 [0+],
        name: Option<String> [0+ null 12+] = Some(String::new()),
        topic_id: Uuid [10+],
        is_internal: bool [1+],
        partitions: Vec<MetadataResponsePartition> [0+],
        topic_authorized_operations: i32 [8+] = OPERATIONS_NOT_ASKED,
    }

    /// A partition, its leader and replicas.
    MetadataResponsePartition {
        error_code: i16 [0+],
        partition_index: i32 [0+],
        leader_id: i32 [0+],
        leader_epoch: i32 [7+] = -1,
        replica_nodes: Vec<i32> [0+],
        isr_nodes: Vec<i32> [0+],
        offline_replicas: Vec<i32> [5+],
    }
}
