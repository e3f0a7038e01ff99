//! What each request demands: API -> operation -> resource. The only place where this is written down; handlers ask with these rights
//! ([`Call::may`](crate::call::Call::may)), and a test finds every right in the handler of its API.
//!
//! The rights are those of Kafka's KafkaApis and ControllerApis. Where Kafka asks for one of two, both are here, and what is
//! refused is written to the log for the second. What is demanded beyond Kafka is marked: who claims to be a broker, by a replica id or by
//! the name `__admin_client`, must be allowed to act as one.
//!
//! | word | what happens when it is denied |
//! |---|---|
//! | `refuses` | what the request names is refused with the resource's error, and the denial is written to the log |
//! | `hides` | it is left out of the answer, or another right is asked for; nothing is written |
use pylog_security::acl::{Operation, ResourceType};
use pylog_wire::{ApiKey, ErrorCode};

/// One right that a request may demand.
#[derive(Debug, PartialEq, Eq)]
pub struct Right {
    /// Its name in the code.
    pub name: &'static str,
    /// Whose.
    pub api: ApiKey,
    /// What has to be allowed.
    pub operation: Operation,
    /// On what.
    pub resource_type: ResourceType,
    /// Whether a denial is written to the log.
    pub is_logged: bool,
}

impl Right {
    /// The error of what is refused for want of this right.
    pub const fn error(&self) -> ErrorCode {
        match self.resource_type {
            ResourceType::Topic => ErrorCode::TopicAuthorizationFailed,
            ResourceType::Group => ErrorCode::GroupAuthorizationFailed,
            ResourceType::TransactionalId => ErrorCode::TransactionalIdAuthorizationFailed,
            ResourceType::DelegationToken => ErrorCode::DelegationTokenAuthorizationFailed,
            ResourceType::Cluster | ResourceType::User => ErrorCode::ClusterAuthorizationFailed,
        }
    }
}

/// Requests that everybody may send who is connected: what a client needs to find out what is spoken, and to log in.
pub const FREE: &[ApiKey] = &[ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate];

macro_rules! rights {
    ($($(#[$doc:meta])+ $name:ident: $api:ident $operation:ident $resource_type:ident $says:ident;)*) => {
        $(
            $(#[$doc])+
            pub const $name: Right = Right {
                name: stringify!($name),
                api: ApiKey::$api,
                operation: Operation::$operation,
                resource_type: ResourceType::$resource_type,
                is_logged: rights!(@ $says),
            };
        )*

        /// All rights, in the order of this file.
        pub const RIGHTS: &[&Right] = &[$(&$name),*];
    };
    (@ refuses) => { true };
    (@ hides) => { false };
}

rights! {
    // Records.
    /// All of a request with transactional records.
    PRODUCE_TRANSACTION: Produce Write TransactionalId refuses;
    /// Each topic, also by id.
    PRODUCE_TOPIC: Produce Write Topic refuses;
    /// The dead letter topic of a topic, where the producer may not write to it: by whoever named it there. Beyond Kafka.
    PRODUCE_DEAD_LETTERS: Produce Write Topic refuses;
    /// Each internal topic, by a client that calls itself `__admin_client`. Beyond Kafka.
    PRODUCE_INTERNAL: Produce ClusterAction Cluster refuses;
    /// A fetch with a replica id.
    FETCH_REPLICA: Fetch ClusterAction Cluster refuses;
    /// Each topic, also by id and in a session, at every fetch.
    FETCH_TOPIC: Fetch Read Topic refuses;
    /// Each topic.
    LIST_OFFSETS_TOPIC: ListOffsets Describe Topic refuses;
    /// A request with a replica id. Beyond Kafka.
    LIST_OFFSETS_REPLICA: ListOffsets ClusterAction Cluster refuses;
    /// Who may act as a broker may ask for every topic.
    OFFSET_FOR_LEADER_EPOCH_CLUSTER: OffsetForLeaderEpoch ClusterAction Cluster hides;
    /// Else: each topic.
    OFFSET_FOR_LEADER_EPOCH_TOPIC: OffsetForLeaderEpoch Describe Topic refuses;
    /// A request with a replica id. Beyond Kafka.
    OFFSET_FOR_LEADER_EPOCH_REPLICA: OffsetForLeaderEpoch ClusterAction Cluster refuses;
    /// Each topic.
    DELETE_RECORDS_TOPIC: DeleteRecords Delete Topic refuses;
    /// Each topic.
    DESCRIBE_PRODUCERS_TOPIC: DescribeProducers Read Topic refuses;

    // Metadata.
    /// Each topic that is named, also by id.
    METADATA_TOPIC: Metadata Describe Topic refuses;
    /// Each topic, where all are asked for.
    METADATA_ALL_TOPICS: Metadata Describe Topic hides;
    /// A topic that is created because it is missing: of the cluster,
    METADATA_CREATE_CLUSTER: Metadata Create Cluster hides;
    /// or else of the topic.
    METADATA_CREATE_TOPIC: Metadata Create Topic refuses;
    /// What may be done with the cluster is told to who may describe it.
    METADATA_OPERATIONS: Metadata Describe Cluster refuses;
    /// Each topic that is named.
    DESCRIBE_TOPIC_PARTITIONS_TOPIC: DescribeTopicPartitions Describe Topic refuses;
    /// Each topic, where all are asked for.
    DESCRIBE_TOPIC_PARTITIONS_ALL: DescribeTopicPartitions Describe Topic hides;
    /// What may be done with the cluster is told to who may describe it.
    DESCRIBE_CLUSTER_OPERATIONS: DescribeCluster Describe Cluster refuses;
    /// The whole request.
    DESCRIBE_QUORUM_CLUSTER: DescribeQuorum Describe Cluster refuses;
    /// A group's coordinator.
    FIND_COORDINATOR_GROUP: FindCoordinator Describe Group refuses;
    /// A transactional id's.
    FIND_COORDINATOR_TRANSACTION: FindCoordinator Describe TransactionalId refuses;
    /// A share partition's.
    FIND_COORDINATOR_SHARE: FindCoordinator ClusterAction Cluster refuses;

    // Groups.
    /// The group.
    JOIN_GROUP_GROUP: JoinGroup Read Group refuses;
    /// The group.
    SYNC_GROUP_GROUP: SyncGroup Read Group refuses;
    /// The group.
    HEARTBEAT_GROUP: Heartbeat Read Group refuses;
    /// The group.
    LEAVE_GROUP_GROUP: LeaveGroup Read Group refuses;
    /// The group.
    OFFSET_COMMIT_GROUP: OffsetCommit Read Group refuses;
    /// Each topic, also by id.
    OFFSET_COMMIT_TOPIC: OffsetCommit Read Topic refuses;
    /// Each group.
    OFFSET_FETCH_GROUP: OffsetFetch Describe Group refuses;
    /// Each topic that is named, also by id.
    OFFSET_FETCH_TOPIC: OffsetFetch Describe Topic refuses;
    /// Each topic, where all of a group are asked for.
    OFFSET_FETCH_ALL_TOPICS: OffsetFetch Describe Topic hides;
    /// The group.
    OFFSET_DELETE_GROUP: OffsetDelete Delete Group refuses;
    /// Each topic.
    OFFSET_DELETE_TOPIC: OffsetDelete Read Topic refuses;
    /// Each group.
    DESCRIBE_GROUPS_GROUP: DescribeGroups Describe Group refuses;
    /// Who may describe the cluster sees all groups.
    LIST_GROUPS_CLUSTER: ListGroups Describe Cluster hides;
    /// Else: each group.
    LIST_GROUPS_GROUP: ListGroups Describe Group hides;
    /// Each group.
    DELETE_GROUPS_GROUP: DeleteGroups Delete Group refuses;
    /// The group.
    CONSUMER_GROUP_HEARTBEAT_GROUP: ConsumerGroupHeartbeat Read Group refuses;
    /// Each topic that is subscribed to by its name; the whole request is refused.
    CONSUMER_GROUP_HEARTBEAT_TOPIC: ConsumerGroupHeartbeat Describe Topic refuses;
    /// Each topic of an assignment, which may come from an expression.
    CONSUMER_GROUP_HEARTBEAT_ASSIGNED: ConsumerGroupHeartbeat Describe Topic hides;
    /// Each group.
    CONSUMER_GROUP_DESCRIBE_GROUP: ConsumerGroupDescribe Describe Group refuses;
    /// Each topic of its members; the group is refused.
    CONSUMER_GROUP_DESCRIBE_TOPIC: ConsumerGroupDescribe Describe Topic refuses;

    // Share groups.
    /// The group.
    SHARE_GROUP_HEARTBEAT_GROUP: ShareGroupHeartbeat Read Group refuses;
    /// Each topic that is subscribed to; the whole request is refused.
    SHARE_GROUP_HEARTBEAT_TOPIC: ShareGroupHeartbeat Describe Topic refuses;
    /// Each group.
    SHARE_GROUP_DESCRIBE_GROUP: ShareGroupDescribe Describe Group refuses;
    /// Each topic of its members; the group is refused.
    SHARE_GROUP_DESCRIBE_TOPIC: ShareGroupDescribe Describe Topic refuses;
    /// The group.
    SHARE_FETCH_GROUP: ShareFetch Read Group refuses;
    /// Each topic that is named or in the session, at every fetch, and what is acknowledged.
    SHARE_FETCH_TOPIC: ShareFetch Read Topic refuses;
    /// The group.
    SHARE_ACKNOWLEDGE_GROUP: ShareAcknowledge Read Group refuses;
    /// Each topic.
    SHARE_ACKNOWLEDGE_TOPIC: ShareAcknowledge Read Topic refuses;
    /// Each group.
    DESCRIBE_SHARE_GROUP_OFFSETS_GROUP: DescribeShareGroupOffsets Describe Group refuses;
    /// Each topic that is named.
    DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC: DescribeShareGroupOffsets Describe Topic refuses;
    /// Each topic, where all of a group are asked for.
    DESCRIBE_SHARE_GROUP_OFFSETS_ALL: DescribeShareGroupOffsets Describe Topic hides;
    /// The group.
    ALTER_SHARE_GROUP_OFFSETS_GROUP: AlterShareGroupOffsets Read Group refuses;
    /// Each topic.
    ALTER_SHARE_GROUP_OFFSETS_TOPIC: AlterShareGroupOffsets Read Topic refuses;
    /// The group.
    DELETE_SHARE_GROUP_OFFSETS_GROUP: DeleteShareGroupOffsets Delete Group refuses;
    /// Each topic.
    DELETE_SHARE_GROUP_OFFSETS_TOPIC: DeleteShareGroupOffsets Read Topic refuses;
    /// Only brokers ask.
    INITIALIZE_SHARE_GROUP_STATE_CLUSTER: InitializeShareGroupState ClusterAction Cluster refuses;
    /// Only brokers ask.
    READ_SHARE_GROUP_STATE_CLUSTER: ReadShareGroupState ClusterAction Cluster refuses;
    /// Only brokers ask.
    WRITE_SHARE_GROUP_STATE_CLUSTER: WriteShareGroupState ClusterAction Cluster refuses;
    /// Only brokers ask.
    DELETE_SHARE_GROUP_STATE_CLUSTER: DeleteShareGroupState ClusterAction Cluster refuses;
    /// Only brokers ask.
    READ_SHARE_GROUP_STATE_SUMMARY_CLUSTER: ReadShareGroupStateSummary ClusterAction Cluster refuses;

    // Transactions.
    /// The transactional id, where there is one.
    INIT_PRODUCER_ID_TRANSACTION: InitProducerId Write TransactionalId refuses;
    /// The same, where the producer prepares its transactions (KIP-939).
    INIT_PRODUCER_ID_TWO_PHASE: InitProducerId TwoPhaseCommit TransactionalId refuses;
    /// An idempotent producer without one: of the cluster,
    INIT_PRODUCER_ID_CLUSTER: InitProducerId IdempotentWrite Cluster hides;
    /// or else of some topic, whichever it is; refused with the cluster's error.
    INIT_PRODUCER_ID_SOME_TOPIC: InitProducerId Write Topic refuses;
    /// From version 4 on, where only brokers ask: the whole request.
    ADD_PARTITIONS_TO_TXN_CLUSTER: AddPartitionsToTxn ClusterAction Cluster refuses;
    /// Before: the transactional id.
    ADD_PARTITIONS_TO_TXN_TRANSACTION: AddPartitionsToTxn Write TransactionalId refuses;
    /// Before: each topic; nothing is added when one is refused.
    ADD_PARTITIONS_TO_TXN_TOPIC: AddPartitionsToTxn Write Topic refuses;
    /// The transactional id.
    ADD_OFFSETS_TO_TXN_TRANSACTION: AddOffsetsToTxn Write TransactionalId refuses;
    /// The group.
    ADD_OFFSETS_TO_TXN_GROUP: AddOffsetsToTxn Read Group refuses;
    /// The transactional id.
    TXN_OFFSET_COMMIT_TRANSACTION: TxnOffsetCommit Write TransactionalId refuses;
    /// The group.
    TXN_OFFSET_COMMIT_GROUP: TxnOffsetCommit Read Group refuses;
    /// Each topic.
    TXN_OFFSET_COMMIT_TOPIC: TxnOffsetCommit Read Topic refuses;
    /// The transactional id.
    END_TXN_TRANSACTION: EndTxn Write TransactionalId refuses;
    /// Who may alter the cluster ends transactions that hang,
    WRITE_TXN_MARKERS_ALTER: WriteTxnMarkers Alter Cluster hides;
    /// else only brokers do.
    WRITE_TXN_MARKERS_CLUSTER: WriteTxnMarkers ClusterAction Cluster refuses;
    /// Each transactional id.
    DESCRIBE_TRANSACTIONS_TRANSACTION: DescribeTransactions Describe TransactionalId refuses;
    /// Each topic of a transaction; it is left out.
    DESCRIBE_TRANSACTIONS_TOPIC: DescribeTransactions Describe Topic hides;
    /// Each transactional id; it is left out.
    LIST_TRANSACTIONS_TRANSACTION: ListTransactions Describe TransactionalId hides;

    // Topics and settings.
    /// New topics: of the cluster,
    CREATE_TOPICS_CLUSTER: CreateTopics Create Cluster hides;
    /// or else of each topic.
    CREATE_TOPICS_TOPIC: CreateTopics Create Topic refuses;
    /// The topic that a setting names as a dead letter topic. Beyond Kafka, as what else settings name.
    CREATE_TOPICS_DEAD_LETTERS: CreateTopics Write Topic refuses;
    /// Each group that a setting names, whose offsets retention waits for.
    CREATE_TOPICS_KEPT_FOR: CreateTopics Describe Group refuses;
    /// The settings of the new topic in the answer; they are left out.
    CREATE_TOPICS_CONFIGS: CreateTopics DescribeConfigs Topic hides;
    /// Topics: of the cluster,
    DELETE_TOPICS_CLUSTER: DeleteTopics Delete Cluster hides;
    /// or else of each topic: to delete one by its name, or to be told the name of one,
    DELETE_TOPICS_DESCRIBE: DeleteTopics Describe Topic refuses;
    /// and to delete it.
    DELETE_TOPICS_TOPIC: DeleteTopics Delete Topic refuses;
    /// Each topic.
    CREATE_PARTITIONS_TOPIC: CreatePartitions Alter Topic refuses;
    /// Settings of brokers and loggers.
    DESCRIBE_CONFIGS_CLUSTER: DescribeConfigs DescribeConfigs Cluster refuses;
    /// Of a topic.
    DESCRIBE_CONFIGS_TOPIC: DescribeConfigs DescribeConfigs Topic refuses;
    /// Of a group.
    DESCRIBE_CONFIGS_GROUP: DescribeConfigs DescribeConfigs Group refuses;
    /// Settings of brokers.
    ALTER_CONFIGS_CLUSTER: AlterConfigs AlterConfigs Cluster refuses;
    /// Of a topic.
    ALTER_CONFIGS_TOPIC: AlterConfigs AlterConfigs Topic refuses;
    /// Of a group.
    ALTER_CONFIGS_GROUP: AlterConfigs AlterConfigs Group refuses;
    /// The topic that a setting of a topic names as a dead letter topic.
    ALTER_CONFIGS_DEAD_LETTERS: AlterConfigs Write Topic refuses;
    /// Each group that a setting of a topic names.
    ALTER_CONFIGS_KEPT_FOR: AlterConfigs Describe Group refuses;
    /// Settings of brokers, and levels of loggers.
    INCREMENTAL_ALTER_CONFIGS_CLUSTER: IncrementalAlterConfigs AlterConfigs Cluster refuses;
    /// Settings of a topic.
    INCREMENTAL_ALTER_CONFIGS_TOPIC: IncrementalAlterConfigs AlterConfigs Topic refuses;
    /// Of a group.
    INCREMENTAL_ALTER_CONFIGS_GROUP: IncrementalAlterConfigs AlterConfigs Group refuses;
    /// The topic that a setting of a topic names as a dead letter topic.
    INCREMENTAL_ALTER_CONFIGS_DEAD_LETTERS: IncrementalAlterConfigs Write Topic refuses;
    /// Each group that a setting of a topic names.
    INCREMENTAL_ALTER_CONFIGS_KEPT_FOR: IncrementalAlterConfigs Describe Group refuses;
    /// The whole request.
    LIST_CONFIG_RESOURCES_CLUSTER: ListConfigResources DescribeConfigs Cluster refuses;

    // The cluster.
    /// The whole request.
    ELECT_LEADERS_CLUSTER: ElectLeaders Alter Cluster refuses;
    /// The whole request.
    ALTER_PARTITION_REASSIGNMENTS_CLUSTER: AlterPartitionReassignments Alter Cluster refuses;
    /// The whole request.
    LIST_PARTITION_REASSIGNMENTS_CLUSTER: ListPartitionReassignments Describe Cluster refuses;
    /// The whole request.
    ALTER_REPLICA_LOG_DIRS_CLUSTER: AlterReplicaLogDirs Alter Cluster refuses;
    /// The whole request.
    DESCRIBE_LOG_DIRS_CLUSTER: DescribeLogDirs Describe Cluster refuses;
    /// The whole request.
    UPDATE_FEATURES_CLUSTER: UpdateFeatures Alter Cluster refuses;
    /// The whole request.
    UNREGISTER_BROKER_CLUSTER: UnregisterBroker Alter Cluster refuses;

    // Security.
    /// The whole request.
    DESCRIBE_ACLS_CLUSTER: DescribeAcls Describe Cluster refuses;
    /// The whole request.
    CREATE_ACLS_CLUSTER: CreateAcls Alter Cluster refuses;
    /// The whole request.
    DELETE_ACLS_CLUSTER: DeleteAcls Alter Cluster refuses;
    /// The whole request.
    DESCRIBE_CLIENT_QUOTAS_CLUSTER: DescribeClientQuotas DescribeConfigs Cluster refuses;
    /// The whole request.
    ALTER_CLIENT_QUOTAS_CLUSTER: AlterClientQuotas AlterConfigs Cluster refuses;
    /// The whole request.
    DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER: DescribeUserScramCredentials Describe Cluster refuses;
    /// The whole request.
    ALTER_USER_SCRAM_CREDENTIALS_CLUSTER: AlterUserScramCredentials Alter Cluster refuses;
}
