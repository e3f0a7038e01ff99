//! Kafka's error codes, the only table of them: number, name, what to do about it, whether trying again can help.
//!
//! Codes, names and retriability are those of Kafka 4.4 (org.apache.kafka.common.protocol.Errors and which of its
//! exceptions are RetriableExceptions). `retriable`
//! means: the same request may succeed later, perhaps after a refresh of the metadata.

/// Declares the table; each entry is one code.
macro_rules! error_codes {
    (@retriable retriable) => { true };
    (@retriable final) => { false };
    ($( $variant:ident = $code:literal, $name:literal, $kind:tt, $sentence:literal; )*) => {
        /// An error code of the protocol; its documentation is [`ErrorCode::sentence`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        pub enum ErrorCode { $( #[doc = $sentence] $variant = $code, )* }

        impl ErrorCode {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Self] = &[ $( Self::$variant, )* ];

            /// The number on the wire.
            pub const fn code(self) -> i16 {
                self as i16
            }

            /// The error with this number; `None` for one newer than this table.
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$variant), )*
                    _ => None,
                }
            }

            /// Kafka's name of it.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// What is wrong and what to do.
            pub const fn sentence(self) -> &'static str {
                match self { $( Self::$variant => $sentence, )* }
            }

            /// Whether the same request may succeed later.
            pub const fn is_retriable(self) -> bool {
                match self { $( Self::$variant => error_codes!(@retriable $kind), )* }
            }
        }
    };
}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> Self {
        error.code()
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name(), self.sentence())
    }
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", final,
        "The broker failed in a way it has no code for: see its log.";
    None = 0, "NONE", final,
        "There is no error.";
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", final,
        "The offset is before the first or after the last one of the partition: start from the earliest or latest offset.";
    CorruptMessage = 2, "CORRUPT_MESSAGE", retriable,
        "A batch is damaged, too long, or has a null key in a compacted topic: send it again, and correct the key if it is null.";
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", retriable,
        "The broker has no such topic or partition: check the name, or refresh the metadata and try again.";
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", final,
        "The size to fetch is not valid: set it to a positive number.";
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", retriable,
        "The partition has no leader at the moment: try again after the election.";
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", retriable,
        "This broker does not lead the partition or has no replica of it: refresh the metadata and ask the leader.";
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", retriable,
        "The request did not finish in time: try again or allow more time.";
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE", final,
        "The broker is not available: check that it runs.";
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", retriable,
        "The replica is not available on this broker: refresh the metadata and try again.";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", final,
        "A batch is larger than the topic's max.message.bytes: send smaller batches or raise the limit.";
    StaleControllerEpoch = 11, "STALE_CONTROLLER_EPOCH", final,
        "The controller is older than another one: only the newest controller may ask this.";
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", final,
        "The metadata stored with an offset is too long: shorten it.";
    NetworkException = 13, "NETWORK_EXCEPTION", retriable,
        "The connection ended before the answer came: connect and try again.";
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", retriable,
        "The coordinator is still loading: try again.";
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", retriable,
        "The coordinator is not available: try again.";
    NotCoordinator = 16, "NOT_COORDINATOR", retriable,
        "Another broker is the coordinator: find the coordinator and ask there.";
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", final,
        "The topic name is not valid: use 1 to 249 letters, digits, dots, underscores and hyphens, other than one or two dots alone.";
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", final,
        "A batch is larger than a log segment: send smaller batches or raise segment.bytes.";
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", retriable,
        "Too few replicas are in sync to accept records: try again when replicas are back or lower min.insync.replicas.";
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", retriable,
        "The records were written, but to fewer in-sync replicas than required: try again, which may duplicate them.";
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", final,
        "The acks value is not valid: use 0, 1 or -1 (all).";
    IllegalGeneration = 22, "ILLEGAL_GENERATION", final,
        "The group's generation is another one: rejoin the group.";
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", final,
        "The member's protocols have nothing in common with those of the group: configure the same assignor in all members.";
    InvalidGroupId = 24, "INVALID_GROUP_ID", final,
        "The group id is not valid: give a group id that is not empty.";
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", final,
        "The group does not know this member: rejoin without a member id.";
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", final,
        "The session timeout is outside the broker's bounds: see group.min.session.timeout.ms and group.max.session.timeout.ms.";
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", final,
        "The group is rebalancing: rejoin it.";
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", final,
        "The offsets to commit are too large: commit fewer at once or shorten their metadata.";
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", final,
        "The user may not do this to the topic: ask for an ACL.";
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", final,
        "The user may not do this to the group: ask for an ACL.";
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", final,
        "The user may not do this to the cluster: ask for an ACL.";
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", final,
        "A timestamp is outside what the topic accepts: correct it or change message.timestamp.before.max.ms and message.timestamp.after.max.ms.";
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", final,
        "The broker has no such SASL mechanism: choose one that it lists.";
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", final,
        "The request does not fit the state of the SASL handshake: start again with SaslHandshake.";
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", final,
        "The broker does not speak this version of the request: ask ApiVersions and use a version in its range.";
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", final,
        "A topic with this name exists: choose another name or use the existing topic.";
    InvalidPartitions = 37, "INVALID_PARTITIONS", final,
        "The number of partitions is not valid: give at least 1, and more than the topic has when adding.";
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", final,
        "The replication factor is not valid: give at least 1 and at most the number of brokers.";
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", final,
        "The replica assignment is not valid: name each partition once and only brokers that exist.";
    InvalidConfig = 40, "INVALID_CONFIG", final,
        "A configuration name or value is not valid: see the message for which one.";
    NotController = 41, "NOT_CONTROLLER", retriable,
        "Another broker is the controller: refresh the metadata and ask there.";
    InvalidRequest = 42, "INVALID_REQUEST", final,
        "The request is malformed or contradicts itself: see the broker's log for what is wrong.";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", final,
        "The record format on the broker does not support this: send record batches of version 2.";
    PolicyViolation = 44, "POLICY_VIOLATION", final,
        "The request breaks a policy of the cluster: see the message for which one.";
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", final,
        "A batch of this producer is missing before this one: reset the producer.";
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", final,
        "The batch with this sequence number was written before: nothing has to be sent again.";
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", final,
        "A newer producer with the same id has taken over: close this producer.";
    InvalidTxnState = 48, "INVALID_TXN_STATE", final,
        "The transaction is not in a state that allows this: abort it or close the producer.";
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", final,
        "The producer id does not belong to the transactional id: initialize the producer again.";
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", final,
        "The transaction timeout is larger than the broker allows: lower it or raise transaction.max.timeout.ms.";
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", retriable,
        "Another operation on the transaction is under way: try again.";
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED", final,
        "A newer transaction coordinator has taken over: only that one may write markers.";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", final,
        "The user may not use the transactional id: ask for an ACL.";
    SecurityDisabled = 54, "SECURITY_DISABLED", final,
        "The broker runs without access control: configure an authorizer first.";
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", final,
        "Nothing was done because another part of the request failed: correct that part and try again.";
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", retriable,
        "The disk failed under the log: check the broker's disk and log.";
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", final,
        "The broker has no such log directory: name one of its log.dirs.";
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", final,
        "Authentication failed: check user and password.";
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", final,
        "The broker has forgotten this producer id: initialize the producer again.";
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS", final,
        "The partition is being reassigned: wait until that is done.";
    DelegationTokenAuthDisabled = 61, "DELEGATION_TOKEN_AUTH_DISABLED", final,
        "Delegation tokens are not enabled on the broker: enable them or use another mechanism.";
    DelegationTokenNotFound = 62, "DELEGATION_TOKEN_NOT_FOUND", final,
        "The broker has no such delegation token: create a new one.";
    DelegationTokenOwnerMismatch = 63, "DELEGATION_TOKEN_OWNER_MISMATCH", final,
        "The user is neither owner nor renewer of the delegation token: use one of those.";
    DelegationTokenRequestNotAllowed = 64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", final,
        "A delegation token cannot be asked for over this connection: use SASL or mutual TLS without a token.";
    DelegationTokenAuthorizationFailed = 65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", final,
        "The user may not use the delegation token: ask for an ACL.";
    DelegationTokenExpired = 66, "DELEGATION_TOKEN_EXPIRED", final,
        "The delegation token has expired: create a new one.";
    InvalidPrincipalType = 67, "INVALID_PRINCIPAL_TYPE", final,
        "The principal type is not supported: use User.";
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", final,
        "The group has members: stop them first.";
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", final,
        "There is no group with this id: check the name.";
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", retriable,
        "The broker has no such fetch session: fetch with a new session.";
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", retriable,
        "The fetch session's epoch is not the expected one: fetch with a new session.";
    ListenerNotFound = 72, "LISTENER_NOT_FOUND", retriable,
        "The leader has no listener of the name that was used: configure the same listeners on all brokers.";
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED", final,
        "Topic deletion is disabled: set delete.topic.enable=true.";
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", retriable,
        "The request knows an older leader epoch than the broker: refresh the metadata and try again.";
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", retriable,
        "The request knows a newer leader epoch than the broker: try again.";
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", final,
        "The client cannot read the partition's compression type: use a newer version of Fetch.";
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH", final,
        "The broker's epoch is another one: register the broker again.";
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", retriable,
        "The new leader does not know yet which records are committed: try again.";
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", final,
        "The group wants a member id first: join again with the one in the answer.";
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", retriable,
        "The preferred leader is not available: try again when it runs.";
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", final,
        "The group is full: remove members or raise group.max.size.";
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", final,
        "Another member has the same group.instance.id: give each member its own.";
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", retriable,
        "No replica can become leader: try again when one is back.";
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", retriable,
        "The partition already has the wanted leader: nothing has to be done.";
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", final,
        "The partition is not being reassigned: there is nothing to cancel.";
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", final,
        "Members of the group consume the topic: stop them before deleting its offsets.";
    InvalidRecord = 87, "INVALID_RECORD", final,
        "A record is not valid: see the message for which one and why.";
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", retriable,
        "Offsets of an open transaction are not stable yet: try again.";
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", retriable,
        "The quota is used up: wait as long as throttle_time_ms says.";
    ProducerFenced = 90, "PRODUCER_FENCED", final,
        "A newer producer with the same transactional id has taken over: close this producer.";
    ResourceNotFound = 91, "RESOURCE_NOT_FOUND", final,
        "The resource does not exist: check its type and name.";
    DuplicateResource = 92, "DUPLICATE_RESOURCE", final,
        "The resource is named twice: name it once.";
    UnacceptableCredential = 93, "UNACCEPTABLE_CREDENTIAL", final,
        "The credential does not meet the broker's rules: choose another.";
    InconsistentVoterSet = 94, "INCONSISTENT_VOTER_SET", final,
        "Sender or receiver is not in the set of voters: check the voters on both.";
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION", final,
        "The update's version is not valid: read the current one and try again.";
    FeatureUpdateFailed = 96, "FEATURE_UPDATE_FAILED", final,
        "The features could not be changed: see the broker's log.";
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE", final,
        "The forwarded principal could not be read: use the same principal builder on all brokers.";
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND", final,
        "The snapshot does not exist: fetch from the log or a newer snapshot.";
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE", final,
        "The position is outside the snapshot: use a position from 0 to below its size.";
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", retriable,
        "The broker has no topic with this id: refresh the metadata and try again.";
    DuplicateBrokerRegistration = 101, "DUPLICATE_BROKER_REGISTRATION", final,
        "Another broker has this id: give each broker its own node.id.";
    BrokerIdNotRegistered = 102, "BROKER_ID_NOT_REGISTERED", final,
        "No broker with this id is registered: register it first.";
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", retriable,
        "The log belongs to another topic id: refresh the metadata and try again.";
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID", final,
        "The cluster id is another one: check the addresses of the brokers.";
    TransactionalIdNotFound = 105, "TRANSACTIONAL_ID_NOT_FOUND", final,
        "There is no such transactional id: check the name.";
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", retriable,
        "The fetch session mixes topic names and topic ids: fetch with a new session.";
    IneligibleReplica = 107, "INELIGIBLE_REPLICA", final,
        "A replica of the new in-sync set may not be in it: read the current state and try again.";
    NewLeaderElected = 108, "NEW_LEADER_ELECTED", final,
        "The in-sync set was changed and there is a new leader: refresh the metadata.";
    OffsetMovedToTieredStorage = 109, "OFFSET_MOVED_TO_TIERED_STORAGE", final,
        "The offset lies in tiered storage: fetch it from there.";
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", final,
        "The group has a newer epoch of this member: drop all partitions and rejoin.";
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", final,
        "Another member still uses the group.instance.id: let it leave first.";
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", final,
        "The group does not support the assignor: configure one that it does.";
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", final,
        "The member's epoch is old: try again after the next heartbeat.";
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", final,
        "The request went to an endpoint of the wrong type: ask a broker or a controller as the request demands.";
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", final,
        "The endpoint type is not supported: use brokers (1).";
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID", final,
        "There is no controller with this id: check the id.";
    UnknownSubscriptionId = 117, "UNKNOWN_SUBSCRIPTION_ID", final,
        "The telemetry subscription is another one: ask for the current one.";
    TelemetryTooLarge = 118, "TELEMETRY_TOO_LARGE", final,
        "The telemetry is larger than the broker accepts: send less at once.";
    InvalidRegistration = 119, "INVALID_REGISTRATION", final,
        "The controller refused the registration of the broker: see the controller's log.";
    TransactionAbortable = 120, "TRANSACTION_ABORTABLE", final,
        "The transaction cannot be completed: abort it and start again.";
    InvalidRecordState = 121, "INVALID_RECORD_STATE", final,
        "The record is not in a state that allows this acknowledgement: drop it and read on.";
    ShareSessionNotFound = 122, "SHARE_SESSION_NOT_FOUND", retriable,
        "The broker has no such share session: open a new one.";
    InvalidShareSessionEpoch = 123, "INVALID_SHARE_SESSION_EPOCH", retriable,
        "The share session's epoch is not the expected one: open a new session.";
    FencedStateEpoch = 124, "FENCED_STATE_EPOCH", final,
        "The share group's state has another epoch: read the state again.";
    InvalidVoterKey = 125, "INVALID_VOTER_KEY", final,
        "The voter's key is not that of the replica: check id and directory id.";
    DuplicateVoter = 126, "DUPLICATE_VOTER", final,
        "The voter is already in the set of voters: nothing has to be done.";
    VoterNotFound = 127, "VOTER_NOT_FOUND", final,
        "The voter is not in the set of voters: check id and directory id.";
    InvalidRegularExpression = 128, "INVALID_REGULAR_EXPRESSION", final,
        "The regular expression is not valid: correct it.";
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED", final,
        "The client's view of the cluster is too old: start again from the bootstrap servers.";
    StreamsInvalidTopology = 130, "STREAMS_INVALID_TOPOLOGY", final,
        "The streams topology is not valid: see the message for why.";
    StreamsInvalidTopologyEpoch = 131, "STREAMS_INVALID_TOPOLOGY_EPOCH", final,
        "The epoch of the streams topology is not valid: see the message for why.";
    StreamsTopologyFenced = 132, "STREAMS_TOPOLOGY_FENCED", final,
        "The epoch of the streams topology is old: update the application.";
    ShareSessionLimitReached = 133, "SHARE_SESSION_LIMIT_REACHED", retriable,
        "The broker has as many share sessions as it allows: try again later.";
    GroupDeletionFailed = 134, "GROUP_DELETION_FAILED", final,
        "The group could not be deleted: see the message for why.";
    StreamsTopologyDescriptionUpdateFailed = 135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", final,
        "The description of the streams topology could not be taken: see the message for why.";
    ControllerIdNotRegistered = 136, "CONTROLLER_ID_NOT_REGISTERED", final,
        "No controller is registered with this id: check the id.";
}
