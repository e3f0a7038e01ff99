//! The table of APIs: number, versions, and the names of the request and response of each.
//!
//! Ranges are those of Kafka 4.4's descriptors; reasons where the advertised range differs stand beside it.

/// What is known of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiInfo {
    /// Which one.
    pub key: ApiKey,
    /// Oldest version with a layout here.
    pub min: i16,
    /// Newest version with a layout here.
    pub max: i16,
    /// First version with compact lengths and tagged fields.
    pub flexible_from: i16,
    /// Oldest version that ApiVersions names to clients.
    pub advertised_min: i16,
    /// Newest version that ApiVersions names to clients.
    pub advertised_max: i16,
}

impl ApiInfo {
    /// Whether the version's lengths are compact.
    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// Whether the version has a layout here.
    pub const fn supports(&self, version: i16) -> bool {
        version >= self.min && version <= self.max
    }
}

/// Declares numbers and versions.
macro_rules! apis {
    ($( $name:ident = $code:literal, $request:ident -> $response:ident,
        $min:literal - $max:literal, flexible $flexible:literal + $(, advertised $low:literal - $high:literal)? ; )*) => {
        /// An API by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        #[allow(missing_docs)]
        pub enum ApiKey { $( $name = $code, )* }

        impl ApiKey {
            /// Kafka's number of it.
            pub const fn code(self) -> i16 {
                self as i16
            }

            /// The API with this number.
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// Kafka's name of it.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            /// The API that Kafka calls `name`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $( stringify!($name) => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// Its versions.
            pub const fn info(self) -> ApiInfo {
                match self {
                    $( Self::$name => {
                        #[allow(unused_mut, unused_assignments)]
                        let (mut advertised_min, mut advertised_max) = ($min, $max);
                        $( (advertised_min, advertised_max) = ($low, $high); )?
                        ApiInfo {
                            key: self, min: $min, max: $max, flexible_from: $flexible, advertised_min, advertised_max,
                        }
                    } )*
                }
            }
        }

        /// All APIs with a layout here, in the order of their numbers.
        pub const TABLE: &[ApiInfo] = &[ $( ApiKey::$name.info(), )* ];
    };
}

/// Calls the macro `$declare` with the table; each line is one API.
macro_rules! with_apis {
    ($declare:ident) => {
        $declare! {
            // Versions 0 to 2 carry record formats that Kafka 4 dropped; they are advertised because librdkafka otherwise
            // sends uncompressed (KAFKA-18659), and a client that really uses them gets UNSUPPORTED_VERSION.
            Produce = 0, ProduceRequest -> ProduceResponse, 3-13, flexible 9+, advertised 0-13;
            Fetch = 1, FetchRequest -> FetchResponse, 4-18, flexible 12+;
            ListOffsets = 2, ListOffsetsRequest -> ListOffsetsResponse, 1-11, flexible 6+;
            Metadata = 3, MetadataRequest -> MetadataResponse, 0-13, flexible 9+;
            OffsetCommit = 8, OffsetCommitRequest -> OffsetCommitResponse, 2-10, flexible 8+;
            OffsetFetch = 9, OffsetFetchRequest -> OffsetFetchResponse, 1-10, flexible 6+;
            FindCoordinator = 10, FindCoordinatorRequest -> FindCoordinatorResponse, 0-6, flexible 3+;
            JoinGroup = 11, JoinGroupRequest -> JoinGroupResponse, 0-9, flexible 6+;
            Heartbeat = 12, HeartbeatRequest -> HeartbeatResponse, 0-4, flexible 4+;
            LeaveGroup = 13, LeaveGroupRequest -> LeaveGroupResponse, 0-5, flexible 4+;
            SyncGroup = 14, SyncGroupRequest -> SyncGroupResponse, 0-5, flexible 4+;
            DescribeGroups = 15, DescribeGroupsRequest -> DescribeGroupsResponse, 0-6, flexible 5+;
            ListGroups = 16, ListGroupsRequest -> ListGroupsResponse, 0-5, flexible 3+;
            // No version of it is flexible.
            SaslHandshake = 17, SaslHandshakeRequest -> SaslHandshakeResponse, 0-1, flexible 32767+;
            ApiVersions = 18, ApiVersionsRequest -> ApiVersionsResponse, 0-5, flexible 3+;
            CreateTopics = 19, CreateTopicsRequest -> CreateTopicsResponse, 2-7, flexible 5+;
            DeleteTopics = 20, DeleteTopicsRequest -> DeleteTopicsResponse, 1-6, flexible 4+;
            DeleteRecords = 21, DeleteRecordsRequest -> DeleteRecordsResponse, 0-2, flexible 2+;
            // Version 6 (two-phase commit, KIP-939) is marked unstable in Kafka 4.4, which does not advertise it either.
            InitProducerId = 22, InitProducerIdRequest -> InitProducerIdResponse, 0-6, flexible 2+, advertised 0-5;
            OffsetForLeaderEpoch = 23, OffsetForLeaderEpochRequest -> OffsetForLeaderEpochResponse, 2-4, flexible 4+;
            AddPartitionsToTxn = 24, AddPartitionsToTxnRequest -> AddPartitionsToTxnResponse, 0-5, flexible 3+;
            AddOffsetsToTxn = 25, AddOffsetsToTxnRequest -> AddOffsetsToTxnResponse, 0-4, flexible 3+;
            EndTxn = 26, EndTxnRequest -> EndTxnResponse, 0-5, flexible 3+;
            WriteTxnMarkers = 27, WriteTxnMarkersRequest -> WriteTxnMarkersResponse, 1-2, flexible 1+;
            TxnOffsetCommit = 28, TxnOffsetCommitRequest -> TxnOffsetCommitResponse, 0-6, flexible 3+;
            DescribeAcls = 29, DescribeAclsRequest -> DescribeAclsResponse, 1-3, flexible 2+;
            CreateAcls = 30, CreateAclsRequest -> CreateAclsResponse, 1-3, flexible 2+;
            DeleteAcls = 31, DeleteAclsRequest -> DeleteAclsResponse, 1-3, flexible 2+;
            DescribeConfigs = 32, DescribeConfigsRequest -> DescribeConfigsResponse, 1-4, flexible 4+;
            AlterConfigs = 33, AlterConfigsRequest -> AlterConfigsResponse, 0-2, flexible 2+;
            AlterReplicaLogDirs = 34, AlterReplicaLogDirsRequest -> AlterReplicaLogDirsResponse, 1-2, flexible 2+;
            // Version 5 names directories that take no new partitions; there are none.
            DescribeLogDirs = 35, DescribeLogDirsRequest -> DescribeLogDirsResponse, 1-4, flexible 2+;
            SaslAuthenticate = 36, SaslAuthenticateRequest -> SaslAuthenticateResponse, 0-2, flexible 2+;
            CreatePartitions = 37, CreatePartitionsRequest -> CreatePartitionsResponse, 0-3, flexible 2+;
            DeleteGroups = 42, DeleteGroupsRequest -> DeleteGroupsResponse, 0-3, flexible 2+;
            ElectLeaders = 43, ElectLeadersRequest -> ElectLeadersResponse, 0-2, flexible 2+;
            IncrementalAlterConfigs = 44, IncrementalAlterConfigsRequest -> IncrementalAlterConfigsResponse, 0-1, flexible 1+;
            AlterPartitionReassignments = 45, AlterPartitionReassignmentsRequest -> AlterPartitionReassignmentsResponse, 0-1, flexible 0+;
            ListPartitionReassignments = 46, ListPartitionReassignmentsRequest -> ListPartitionReassignmentsResponse, 0-0, flexible 0+;
            // No version of it is flexible.
            OffsetDelete = 47, OffsetDeleteRequest -> OffsetDeleteResponse, 0-0, flexible 32767+;
            DescribeClientQuotas = 48, DescribeClientQuotasRequest -> DescribeClientQuotasResponse, 0-1, flexible 1+;
            AlterClientQuotas = 49, AlterClientQuotasRequest -> AlterClientQuotasResponse, 0-1, flexible 1+;
            DescribeUserScramCredentials = 50, DescribeUserScramCredentialsRequest -> DescribeUserScramCredentialsResponse, 0-0, flexible 0+;
            AlterUserScramCredentials = 51, AlterUserScramCredentialsRequest -> AlterUserScramCredentialsResponse, 0-0, flexible 0+;
            DescribeQuorum = 55, DescribeQuorumRequest -> DescribeQuorumResponse, 0-2, flexible 0+;
            UpdateFeatures = 57, UpdateFeaturesRequest -> UpdateFeaturesResponse, 0-2, flexible 0+;
            DescribeCluster = 60, DescribeClusterRequest -> DescribeClusterResponse, 0-2, flexible 0+;
            DescribeProducers = 61, DescribeProducersRequest -> DescribeProducersResponse, 0-0, flexible 0+;
            UnregisterBroker = 64, UnregisterBrokerRequest -> UnregisterBrokerResponse, 0-0, flexible 0+;
            DescribeTransactions = 65, DescribeTransactionsRequest -> DescribeTransactionsResponse, 0-0, flexible 0+;
            ListTransactions = 66, ListTransactionsRequest -> ListTransactionsResponse, 0-2, flexible 0+;
            ConsumerGroupHeartbeat = 68, ConsumerGroupHeartbeatRequest -> ConsumerGroupHeartbeatResponse, 0-1, flexible 0+;
            ConsumerGroupDescribe = 69, ConsumerGroupDescribeRequest -> ConsumerGroupDescribeResponse, 0-1, flexible 0+;
            ListConfigResources = 74, ListConfigResourcesRequest -> ListConfigResourcesResponse, 0-1, flexible 0+;
            DescribeTopicPartitions = 75, DescribeTopicPartitionsRequest -> DescribeTopicPartitionsResponse, 0-0, flexible 0+;
            // Version 0 of the share groups' requests was Kafka 4.0's early access, which 4.1 dropped.
            ShareGroupHeartbeat = 76, ShareGroupHeartbeatRequest -> ShareGroupHeartbeatResponse, 1-1, flexible 0+;
            ShareGroupDescribe = 77, ShareGroupDescribeRequest -> ShareGroupDescribeResponse, 1-1, flexible 0+;
            ShareFetch = 78, ShareFetchRequest -> ShareFetchResponse, 1-2, flexible 0+;
            ShareAcknowledge = 79, ShareAcknowledgeRequest -> ShareAcknowledgeResponse, 1-2, flexible 0+;
            InitializeShareGroupState = 83, InitializeShareGroupStateRequest -> InitializeShareGroupStateResponse, 0-0, flexible 0+;
            ReadShareGroupState = 84, ReadShareGroupStateRequest -> ReadShareGroupStateResponse, 0-0, flexible 0+;
            WriteShareGroupState = 85, WriteShareGroupStateRequest -> WriteShareGroupStateResponse, 0-1, flexible 0+;
            DeleteShareGroupState = 86, DeleteShareGroupStateRequest -> DeleteShareGroupStateResponse, 0-0, flexible 0+;
            ReadShareGroupStateSummary = 87, ReadShareGroupStateSummaryRequest -> ReadShareGroupStateSummaryResponse, 0-1, flexible 0+;
            DescribeShareGroupOffsets = 90, DescribeShareGroupOffsetsRequest -> DescribeShareGroupOffsetsResponse, 0-1, flexible 0+;
            AlterShareGroupOffsets = 91, AlterShareGroupOffsetsRequest -> AlterShareGroupOffsetsResponse, 0-0, flexible 0+;
            DeleteShareGroupOffsets = 92, DeleteShareGroupOffsetsRequest -> DeleteShareGroupOffsetsResponse, 0-0, flexible 0+;
        }
    };
}

with_apis!(apis);

pub(super) use with_apis;
