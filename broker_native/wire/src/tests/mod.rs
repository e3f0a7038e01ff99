//! Promises of the codec; `oracle` asks the `kafka-protocol` crate, `golden` holds bytes of Apache Kafka itself.
mod debug_tree;
mod frames;
mod golden;
mod hostile;
mod json;
mod oracle;
mod table;

/// Calls `$test!(Api, Request, Response)` for every API in the table.
macro_rules! for_each_api {
    ($test:ident) => {
        $test!(Produce, ProduceRequest, ProduceResponse);
        $test!(Fetch, FetchRequest, FetchResponse);
        $test!(ListOffsets, ListOffsetsRequest, ListOffsetsResponse);
        $test!(Metadata, MetadataRequest, MetadataResponse);
        $test!(OffsetCommit, OffsetCommitRequest, OffsetCommitResponse);
        $test!(OffsetFetch, OffsetFetchRequest, OffsetFetchResponse);
        $test!(FindCoordinator, FindCoordinatorRequest, FindCoordinatorResponse);
        $test!(JoinGroup, JoinGroupRequest, JoinGroupResponse);
        $test!(Heartbeat, HeartbeatRequest, HeartbeatResponse);
        $test!(LeaveGroup, LeaveGroupRequest, LeaveGroupResponse);
        $test!(SyncGroup, SyncGroupRequest, SyncGroupResponse);
        $test!(DescribeGroups, DescribeGroupsRequest, DescribeGroupsResponse);
        $test!(ListGroups, ListGroupsRequest, ListGroupsResponse);
        $test!(SaslHandshake, SaslHandshakeRequest, SaslHandshakeResponse);
        $test!(ApiVersions, ApiVersionsRequest, ApiVersionsResponse);
        $test!(CreateTopics, CreateTopicsRequest, CreateTopicsResponse);
        $test!(DeleteTopics, DeleteTopicsRequest, DeleteTopicsResponse);
        $test!(DeleteRecords, DeleteRecordsRequest, DeleteRecordsResponse);
        $test!(InitProducerId, InitProducerIdRequest, InitProducerIdResponse);
        $test!(OffsetForLeaderEpoch, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse);
        $test!(AddPartitionsToTxn, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse);
        $test!(AddOffsetsToTxn, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse);
        $test!(EndTxn, EndTxnRequest, EndTxnResponse);
        $test!(WriteTxnMarkers, WriteTxnMarkersRequest, WriteTxnMarkersResponse);
        $test!(TxnOffsetCommit, TxnOffsetCommitRequest, TxnOffsetCommitResponse);
        $test!(DescribeAcls, DescribeAclsRequest, DescribeAclsResponse);
        $test!(CreateAcls, CreateAclsRequest, CreateAclsResponse);
        $test!(DeleteAcls, DeleteAclsRequest, DeleteAclsResponse);
        $test!(DescribeConfigs, DescribeConfigsRequest, DescribeConfigsResponse);
        $test!(AlterConfigs, AlterConfigsRequest, AlterConfigsResponse);
        $test!(AlterReplicaLogDirs, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse);
        $test!(DescribeLogDirs, DescribeLogDirsRequest, DescribeLogDirsResponse);
        $test!(SaslAuthenticate, SaslAuthenticateRequest, SaslAuthenticateResponse);
        $test!(CreatePartitions, CreatePartitionsRequest, CreatePartitionsResponse);
        $test!(DeleteGroups, DeleteGroupsRequest, DeleteGroupsResponse);
        $test!(ElectLeaders, ElectLeadersRequest, ElectLeadersResponse);
        $test!(IncrementalAlterConfigs, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse);
        $test!(
            AlterPartitionReassignments,
            AlterPartitionReassignmentsRequest,
            AlterPartitionReassignmentsResponse
        );
        $test!(
            ListPartitionReassignments,
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse
        );
        $test!(OffsetDelete, OffsetDeleteRequest, OffsetDeleteResponse);
        $test!(DescribeClientQuotas, DescribeClientQuotasRequest, DescribeClientQuotasResponse);
        $test!(AlterClientQuotas, AlterClientQuotasRequest, AlterClientQuotasResponse);
        $test!(
            DescribeUserScramCredentials,
            DescribeUserScramCredentialsRequest,
            DescribeUserScramCredentialsResponse
        );
        $test!(
            AlterUserScramCredentials,
            AlterUserScramCredentialsRequest,
            AlterUserScramCredentialsResponse
        );
        $test!(DescribeQuorum, DescribeQuorumRequest, DescribeQuorumResponse);
        $test!(UpdateFeatures, UpdateFeaturesRequest, UpdateFeaturesResponse);
        $test!(DescribeCluster, DescribeClusterRequest, DescribeClusterResponse);
        $test!(DescribeProducers, DescribeProducersRequest, DescribeProducersResponse);
        $test!(UnregisterBroker, UnregisterBrokerRequest, UnregisterBrokerResponse);
        $test!(DescribeTransactions, DescribeTransactionsRequest, DescribeTransactionsResponse);
        $test!(ListTransactions, ListTransactionsRequest, ListTransactionsResponse);
        $test!(ConsumerGroupHeartbeat, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse);
        $test!(ConsumerGroupDescribe, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse);
        $test!(ListConfigResources, ListConfigResourcesRequest, ListConfigResourcesResponse);
        $test!(DescribeTopicPartitions, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse);
        $test!(ShareGroupHeartbeat, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse);
        $test!(ShareGroupDescribe, ShareGroupDescribeRequest, ShareGroupDescribeResponse);
        $test!(ShareFetch, ShareFetchRequest, ShareFetchResponse);
        $test!(ShareAcknowledge, ShareAcknowledgeRequest, ShareAcknowledgeResponse);
        $test!(
            InitializeShareGroupState,
            InitializeShareGroupStateRequest,
            InitializeShareGroupStateResponse
        );
        $test!(ReadShareGroupState, ReadShareGroupStateRequest, ReadShareGroupStateResponse);
        $test!(WriteShareGroupState, WriteShareGroupStateRequest, WriteShareGroupStateResponse);
        $test!(DeleteShareGroupState, DeleteShareGroupStateRequest, DeleteShareGroupStateResponse);
        $test!(
            ReadShareGroupStateSummary,
            ReadShareGroupStateSummaryRequest,
            ReadShareGroupStateSummaryResponse
        );
        $test!(
            DescribeShareGroupOffsets,
            DescribeShareGroupOffsetsRequest,
            DescribeShareGroupOffsetsResponse
        );
        $test!(AlterShareGroupOffsets, AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse);
        $test!(DeleteShareGroupOffsets, DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse);
    };
}
use for_each_api;
