//! Kafka's messages, one file per API, names and fields as in Kafka 4.4's descriptors.
//!
//! Requests, responses and [`ApiVersion`] are re-exported here; parts of messages stay in their files because Kafka
//! uses some names twice.
pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod api_versions;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod elect_leaders;
pub mod end_txn;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub(super) mod hex;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;
pub mod txn_offset_commit;
pub mod update_features;
pub mod write_txn_markers;

pub use add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
pub use add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};
pub use alter_configs::{AlterConfigsRequest, AlterConfigsResponse};
pub use alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};
pub use api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
pub use consumer_group_describe::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};
pub use consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
pub use create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse};
pub use create_topics::{CreateTopicsRequest, CreateTopicsResponse};
pub use delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
pub use delete_records::{DeleteRecordsRequest, DeleteRecordsResponse};
pub use delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse};
pub use describe_cluster::{DescribeClusterRequest, DescribeClusterResponse};
pub use describe_configs::{DescribeConfigsRequest, DescribeConfigsResponse};
pub use describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
pub use describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse};
pub use describe_producers::{DescribeProducersRequest, DescribeProducersResponse};
pub use describe_topic_partitions::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
pub use describe_transactions::{DescribeTransactionsRequest, DescribeTransactionsResponse};
pub use elect_leaders::{ElectLeadersRequest, ElectLeadersResponse};
pub use end_txn::{EndTxnRequest, EndTxnResponse};
pub use fetch::{FetchRequest, FetchResponse};
pub use find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
pub use heartbeat::{HeartbeatRequest, HeartbeatResponse};
pub use incremental_alter_configs::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
pub use init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
pub use join_group::{JoinGroupRequest, JoinGroupResponse};
pub use leave_group::{LeaveGroupRequest, LeaveGroupResponse};
pub use list_groups::{ListGroupsRequest, ListGroupsResponse};
pub use list_offsets::{ListOffsetsRequest, ListOffsetsResponse};
pub use list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};
pub use list_transactions::{ListTransactionsRequest, ListTransactionsResponse};
pub use metadata::{MetadataRequest, MetadataResponse};
pub use offset_commit::{OffsetCommitRequest, OffsetCommitResponse};
pub use offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse};
pub use offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};
pub use offset_for_leader_epoch::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
pub use produce::{ProduceRequest, ProduceResponse};
pub use sync_group::{SyncGroupRequest, SyncGroupResponse};
pub use txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
pub use update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse};
pub use write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
