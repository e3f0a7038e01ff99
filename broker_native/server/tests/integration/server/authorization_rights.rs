//! Every right of the table, one by one: who has all but this one is refused with its error, and who has all is not.
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use pylog_record::{BatchBuilder, Codec};
use pylog_security::acl::{CLUSTER_NAME, ResourceType};
use pylog_server::authorization::table::{self, RIGHTS, Right};
use pylog_server::call::SERVED;
use pylog_wire::messages::*;
use pylog_wire::{ErrorCode, Request};
use serde_json::{Value, json};
use uuid::Uuid;

use super::authorization::{all_but, guarded};
use crate::server::support::{Client, produce_request, topic};

/// The topic, group and transactional id of all requests here.
const NAME: &str = "secret";

/// A request that demands rights.
struct Probe {
    /// Those that have to be denied for it to be refused: the last is the one that refuses.
    rights: Vec<&'static Right>,
    /// The error that it is refused with.
    error: ErrorCode,
    /// Whether it is not refused with the same error to who has the right: a broker that is alone knows no other brokers.
    is_allowed_otherwise: bool,
    ask: Box<dyn Fn(&mut Client) -> Value>,
}

fn probe<Q: Request + serde::de::DeserializeOwned + 'static>(
    rights: &[&'static Right],
    version: i16,
    request: Value,
) -> Probe
where
    Q::Response: serde::Serialize,
{
    let request: Q = serde_json::from_value(request).unwrap();
    Probe {
        rights: rights.to_vec(),
        error: rights.last().unwrap().error(),
        is_allowed_otherwise: true,
        ask: Box::new(move |client| serde_json::to_value(client.call(&request, version)).unwrap()),
    }
}

/// All error codes in an answer.
fn errors(answer: &Value) -> HashSet<i64> {
    match answer {
        Value::Array(each) => each.iter().flat_map(errors).collect(),
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| name.ends_with("error_code"));
            let own = own.filter_map(|(_, code)| code.as_i64());
            own.chain(fields.values().flat_map(errors)).collect()
        }
        _ => HashSet::new(),
    }
}

fn transactional_batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_producer(1, 0, 0);
    builder.set_transactional(true);
    builder.append(1, None, Some(b"x"), &[]).unwrap();
    builder.finish(Codec::None).unwrap()
}

fn of_records(id: Uuid) -> Vec<Probe> {
    use table::*;
    let batch = "00";
    let in_transaction = ProduceRequest {
        transactional_id: Some(NAME.into()),
        ..produce_request(NAME, 0, transactional_batch(), 1)
    };
    let in_transaction = serde_json::to_value(in_transaction).unwrap();
    let by_name = json!({"acks": 1, "timeout_ms": 1000, "topic_data": [
        {"name": NAME, "partition_data": [{"index": 0, "records": batch}]}]});
    let by_id = json!({"acks": 1, "timeout_ms": 1000, "topic_data": [
        {"topic_id": id, "partition_data": [{"index": 0, "records": batch}]}]});
    let partitions = json!([{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]);
    let offsets = json!([{"name": NAME, "partitions": [{"partition_index": 0, "timestamp": -1}]}]);
    let epochs = json!([{"topic": NAME, "partitions": [{"partition": 0, "leader_epoch": 3}]}]);
    let of_broker = |probe: Probe| Probe { is_allowed_otherwise: false, ..probe };
    let both_epochs = [&OFFSET_FOR_LEADER_EPOCH_CLUSTER, &OFFSET_FOR_LEADER_EPOCH_TOPIC];
    let replica = [&OFFSET_FOR_LEADER_EPOCH_CLUSTER, &OFFSET_FOR_LEADER_EPOCH_REPLICA];
    vec![
        probe::<ProduceRequest>(&[&PRODUCE_TOPIC], 9, by_name),
        probe::<ProduceRequest>(&[&PRODUCE_TOPIC], 13, by_id),
        probe::<ProduceRequest>(&[&PRODUCE_TRANSACTION], 9, in_transaction),
        probe::<FetchRequest>(
            &[&FETCH_TOPIC],
            12,
            json!({"topics": [{"topic": NAME, "partitions": partitions}]}),
        ),
        probe::<FetchRequest>(
            &[&FETCH_TOPIC],
            13,
            json!({"topics": [{"topic_id": id, "partitions": partitions}]}),
        ),
        of_broker(probe::<FetchRequest>(
            &[&FETCH_REPLICA],
            12,
            json!({"replica_id": 2, "topics": [
            {"topic": NAME, "partitions": partitions}]}),
        )),
        probe::<ListOffsetsRequest>(&[&LIST_OFFSETS_TOPIC], 7, json!({"topics": offsets})),
        of_broker(probe::<ListOffsetsRequest>(
            &[&LIST_OFFSETS_REPLICA],
            7,
            json!({"replica_id": 2, "topics": offsets}),
        )),
        probe::<OffsetForLeaderEpochRequest>(&both_epochs, 4, json!({"replica_id": -1, "topics": epochs})),
        of_broker(probe::<OffsetForLeaderEpochRequest>(
            &replica,
            4,
            json!({"replica_id": 2, "topics": epochs}),
        )),
        probe::<DeleteRecordsRequest>(
            &[&DELETE_RECORDS_TOPIC],
            2,
            json!({"timeout_ms": 1000, "topics": [
            {"name": NAME, "partitions": [{"partition_index": 0, "offset": 0}]}]}),
        ),
        probe::<DescribeProducersRequest>(
            &[&DESCRIBE_PRODUCERS_TOPIC],
            0,
            json!({"topics": [
            {"name": NAME, "partition_indexes": [0]}]}),
        ),
    ]
}

fn of_metadata(id: Uuid) -> Vec<Probe> {
    use table::*;
    let created = json!({"topics": [{"name": NAME.to_owned() + "-new"}]});
    vec![
        probe::<MetadataRequest>(&[&METADATA_TOPIC], 12, json!({"topics": [{"name": NAME}]})),
        probe::<MetadataRequest>(&[&METADATA_TOPIC], 12, json!({"topics": [{"name": null, "topic_id": id}]})),
        probe::<MetadataRequest>(&[&METADATA_CREATE_CLUSTER, &METADATA_CREATE_TOPIC], 12, created),
        probe::<DescribeTopicPartitionsRequest>(
            &[&DESCRIBE_TOPIC_PARTITIONS_TOPIC],
            0,
            json!({"topics": [
            {"name": NAME}]}),
        ),
        probe::<DescribeQuorumRequest>(
            &[&DESCRIBE_QUORUM_CLUSTER],
            1,
            json!({"topics": [
            {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}),
        ),
        probe::<FindCoordinatorRequest>(&[&FIND_COORDINATOR_GROUP], 4, json!({"coordinator_keys": [NAME]})),
        probe::<FindCoordinatorRequest>(&[&FIND_COORDINATOR_GROUP], 3, json!({"key": NAME})),
        probe::<FindCoordinatorRequest>(
            &[&FIND_COORDINATOR_TRANSACTION],
            4,
            json!({
            "key_type": 1, "coordinator_keys": [NAME]}),
        ),
        probe::<FindCoordinatorRequest>(
            &[&FIND_COORDINATOR_SHARE],
            6,
            json!({
            "key_type": 2, "coordinator_keys": [format!("{NAME}:{id}:0")]}),
        ),
    ]
}

fn of_groups() -> Vec<Probe> {
    use table::*;
    let member = json!({"group_id": NAME, "member_id": "m"});
    let committed = json!([{"name": NAME, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]);
    let commit = json!({"group_id": NAME, "topics": committed});
    let fetch = json!({"groups": [{"group_id": NAME, "topics": [{"name": NAME, "partition_indexes": [0]}]}]});
    let delete =
        json!({"group_id": NAME, "topics": [{"name": NAME, "partitions": [{"partition_index": 0}]}]});
    let beat = json!({"group_id": NAME.to_owned() + "-consumers", "member_id": Uuid::new_v4(), "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": [NAME], "topic_partitions": []});
    vec![
        probe::<JoinGroupRequest>(
            &[&JOIN_GROUP_GROUP],
            5,
            json!({"group_id": NAME, "session_timeout_ms": 1}),
        ),
        probe::<SyncGroupRequest>(&[&SYNC_GROUP_GROUP], 3, member.clone()),
        probe::<HeartbeatRequest>(&[&HEARTBEAT_GROUP], 3, member.clone()),
        probe::<LeaveGroupRequest>(&[&LEAVE_GROUP_GROUP], 2, member),
        probe::<OffsetCommitRequest>(&[&OFFSET_COMMIT_GROUP], 8, commit.clone()),
        probe::<OffsetCommitRequest>(&[&OFFSET_COMMIT_TOPIC], 8, commit),
        probe::<OffsetFetchRequest>(&[&OFFSET_FETCH_GROUP], 8, fetch.clone()),
        probe::<OffsetFetchRequest>(&[&OFFSET_FETCH_TOPIC], 8, fetch),
        probe::<OffsetFetchRequest>(
            &[&OFFSET_FETCH_GROUP],
            1,
            json!({"group_id": NAME, "topics": [
            {"name": NAME, "partition_indexes": [0]}]}),
        ),
        probe::<OffsetDeleteRequest>(&[&OFFSET_DELETE_GROUP], 0, delete.clone()),
        probe::<OffsetDeleteRequest>(&[&OFFSET_DELETE_TOPIC], 0, delete),
        probe::<DescribeGroupsRequest>(&[&DESCRIBE_GROUPS_GROUP], 5, json!({"groups": [NAME]})),
        probe::<DeleteGroupsRequest>(&[&DELETE_GROUPS_GROUP], 2, json!({"groups_names": [NAME]})),
        probe::<ConsumerGroupHeartbeatRequest>(&[&CONSUMER_GROUP_HEARTBEAT_GROUP], 1, beat.clone()),
        probe::<ConsumerGroupHeartbeatRequest>(&[&CONSUMER_GROUP_HEARTBEAT_TOPIC], 1, beat),
        probe::<ConsumerGroupDescribeRequest>(
            &[&CONSUMER_GROUP_DESCRIBE_GROUP],
            0,
            json!({"group_ids": [NAME]}),
        ),
        probe::<ShareGroupDescribeRequest>(&[&SHARE_GROUP_DESCRIBE_GROUP], 1, json!({"group_ids": [NAME]})),
    ]
}

fn of_share_groups(id: Uuid) -> Vec<Probe> {
    use table::*;
    // A group of each kind: that of the offsets has no members.
    let (beating, group) = (NAME.to_owned() + "-beating", NAME.to_owned() + "-offsets");
    let beat = json!({"group_id": beating, "member_id": Uuid::new_v4(), "subscribed_topic_names": [NAME]});
    let member = Uuid::new_v4();
    let topics = json!([{"topic_id": id, "partitions": [{"partition_index": 0}]}]);
    let fetch =
        json!({"group_id": NAME, "member_id": member, "max_bytes": 1000, "max_records": 1, "topics": topics});
    let said = json!([{"topic_id": id, "partitions": [{"partition_index": 0, "acknowledgement_batches": [
        {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]}]}]);
    let acknowledge =
        json!({"group_id": NAME, "member_id": member, "share_session_epoch": 1, "topics": said});
    let named = json!([{"topic_name": NAME, "partitions": [{"partition_index": 0, "start_offset": 0}]}]);
    let alter = json!({"group_id": group, "topics": named});
    let delete = json!({"group_id": group, "topics": [{"topic_name": NAME}]});
    let describe =
        json!({"groups": [{"group_id": NAME, "topics": [{"topic_name": NAME, "partitions": [0]}]}]});
    let state = json!({"group_id": NAME, "topics": [{"topic_id": id, "partitions": [{"partition": 0}]}]});
    let opens = probe::<ShareFetchRequest>(&[&SHARE_ACKNOWLEDGE_TOPIC], 1, fetch.clone()).ask;
    let mut acknowledging =
        probe::<ShareAcknowledgeRequest>(&[&SHARE_ACKNOWLEDGE_TOPIC], 1, acknowledge.clone());
    let acknowledges = acknowledging.ask;
    acknowledging.ask = Box::new(move |client| {
        opens(client);
        acknowledges(client)
    });
    vec![
        probe::<ShareGroupHeartbeatRequest>(&[&SHARE_GROUP_HEARTBEAT_GROUP], 1, beat.clone()),
        probe::<ShareGroupHeartbeatRequest>(&[&SHARE_GROUP_HEARTBEAT_TOPIC], 1, beat),
        probe::<ShareFetchRequest>(&[&SHARE_FETCH_GROUP], 1, fetch.clone()),
        probe::<ShareFetchRequest>(&[&SHARE_FETCH_TOPIC], 1, fetch),
        probe::<ShareAcknowledgeRequest>(&[&SHARE_ACKNOWLEDGE_GROUP], 1, acknowledge),
        acknowledging,
        probe::<DescribeShareGroupOffsetsRequest>(
            &[&DESCRIBE_SHARE_GROUP_OFFSETS_GROUP],
            0,
            describe.clone(),
        ),
        probe::<DescribeShareGroupOffsetsRequest>(&[&DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC], 0, describe),
        probe::<AlterShareGroupOffsetsRequest>(&[&ALTER_SHARE_GROUP_OFFSETS_GROUP], 0, alter.clone()),
        probe::<AlterShareGroupOffsetsRequest>(&[&ALTER_SHARE_GROUP_OFFSETS_TOPIC], 0, alter),
        probe::<DeleteShareGroupOffsetsRequest>(&[&DELETE_SHARE_GROUP_OFFSETS_TOPIC], 0, delete.clone()),
        probe::<DeleteShareGroupOffsetsRequest>(&[&DELETE_SHARE_GROUP_OFFSETS_GROUP], 0, delete),
        probe::<InitializeShareGroupStateRequest>(&[&INITIALIZE_SHARE_GROUP_STATE_CLUSTER], 0, state.clone()),
        probe::<ReadShareGroupStateRequest>(&[&READ_SHARE_GROUP_STATE_CLUSTER], 0, state.clone()),
        probe::<WriteShareGroupStateRequest>(&[&WRITE_SHARE_GROUP_STATE_CLUSTER], 0, state.clone()),
        probe::<ReadShareGroupStateSummaryRequest>(
            &[&READ_SHARE_GROUP_STATE_SUMMARY_CLUSTER],
            0,
            state.clone(),
        ),
        probe::<DeleteShareGroupStateRequest>(&[&DELETE_SHARE_GROUP_STATE_CLUSTER], 0, state),
    ]
}

fn of_transactions() -> Vec<Probe> {
    use table::*;
    let init = |id: Value| json!({"transactional_id": id, "transaction_timeout_ms": 1000});
    let both = json!({"transactional_id": NAME, "transaction_timeout_ms": 1000, "enable_2_pc": true});
    let added = json!([{"name": NAME, "partitions": [0]}]);
    let old = json!({"v3_and_below_transactional_id": NAME, "v3_and_below_producer_id": 1, "v3_and_below_topics": added});
    let new = json!({"transactions": [{"transactional_id": NAME, "producer_id": 1, "topics": added}]});
    let group = json!({"transactional_id": NAME, "producer_id": 1, "group_id": NAME, "topics": [
        {"name": NAME, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]});
    let offsets = json!({"transactional_id": NAME, "producer_id": 1, "group_id": NAME});
    let end = json!({"transactional_id": NAME, "producer_id": 1});
    let markers =
        json!({"markers": [{"producer_id": 1, "topics": [{"name": NAME, "partition_indexes": [0]}]}]});
    vec![
        probe::<InitProducerIdRequest>(&[&INIT_PRODUCER_ID_TRANSACTION], 4, init(NAME.into())),
        Probe {
            // Two phases are not allowed by the settings either.
            is_allowed_otherwise: false,
            ..probe::<InitProducerIdRequest>(&[&INIT_PRODUCER_ID_TWO_PHASE], 6, both)
        },
        Probe {
            error: ErrorCode::ClusterAuthorizationFailed,
            ..probe::<InitProducerIdRequest>(
                &[&INIT_PRODUCER_ID_CLUSTER, &INIT_PRODUCER_ID_SOME_TOPIC],
                4,
                init(Value::Null),
            )
        },
        probe::<AddPartitionsToTxnRequest>(&[&ADD_PARTITIONS_TO_TXN_TRANSACTION], 3, old.clone()),
        probe::<AddPartitionsToTxnRequest>(&[&ADD_PARTITIONS_TO_TXN_TOPIC], 3, old),
        probe::<AddPartitionsToTxnRequest>(&[&ADD_PARTITIONS_TO_TXN_CLUSTER], 4, new),
        probe::<AddOffsetsToTxnRequest>(&[&ADD_OFFSETS_TO_TXN_TRANSACTION], 3, offsets.clone()),
        probe::<AddOffsetsToTxnRequest>(&[&ADD_OFFSETS_TO_TXN_GROUP], 3, offsets),
        probe::<TxnOffsetCommitRequest>(&[&TXN_OFFSET_COMMIT_TRANSACTION], 3, group.clone()),
        probe::<TxnOffsetCommitRequest>(&[&TXN_OFFSET_COMMIT_GROUP], 3, group.clone()),
        probe::<TxnOffsetCommitRequest>(&[&TXN_OFFSET_COMMIT_TOPIC], 3, group),
        probe::<EndTxnRequest>(&[&END_TXN_TRANSACTION], 3, end),
        probe::<WriteTxnMarkersRequest>(&[&WRITE_TXN_MARKERS_ALTER, &WRITE_TXN_MARKERS_CLUSTER], 1, markers),
        probe::<DescribeTransactionsRequest>(
            &[&DESCRIBE_TRANSACTIONS_TRANSACTION],
            0,
            json!({
            "transactional_ids": [NAME]}),
        ),
    ]
}

/// Requests that the control plane decides once they are allowed.
fn of_administrators() -> Vec<Probe> {
    use table::*;
    let resource =
        |kind: i8, name: &str| json!({"resources": [{"resource_type": kind, "resource_name": name}]});
    let deletion = json!({"topics": [{"name": NAME}]});
    let acl = json!({"creations": [{"resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*",
        "operation": 3, "permission_type": 3}]});
    let filter = json!({"filters": [{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1,
        "permission_type": 1}]});
    vec![
        probe::<CreateTopicsRequest>(&[&CREATE_TOPICS_CLUSTER, &CREATE_TOPICS_TOPIC], 7, deletion.clone()),
        probe::<DeleteTopicsRequest>(&[&DELETE_TOPICS_CLUSTER, &DELETE_TOPICS_TOPIC], 6, deletion.clone()),
        probe::<DeleteTopicsRequest>(&[&DELETE_TOPICS_CLUSTER, &DELETE_TOPICS_DESCRIBE], 6, deletion),
        probe::<CreatePartitionsRequest>(&[&CREATE_PARTITIONS_TOPIC], 3, json!({"topics": [{"name": NAME}]})),
        probe::<DescribeConfigsRequest>(&[&DESCRIBE_CONFIGS_TOPIC], 4, resource(2, NAME)),
        probe::<DescribeConfigsRequest>(&[&DESCRIBE_CONFIGS_CLUSTER], 4, resource(4, "1")),
        probe::<DescribeConfigsRequest>(&[&DESCRIBE_CONFIGS_GROUP], 4, resource(32, NAME)),
        probe::<AlterConfigsRequest>(&[&ALTER_CONFIGS_TOPIC], 2, resource(2, NAME)),
        probe::<AlterConfigsRequest>(&[&ALTER_CONFIGS_CLUSTER], 2, resource(4, "1")),
        probe::<AlterConfigsRequest>(&[&ALTER_CONFIGS_GROUP], 2, resource(32, NAME)),
        probe::<IncrementalAlterConfigsRequest>(&[&INCREMENTAL_ALTER_CONFIGS_TOPIC], 1, resource(2, NAME)),
        probe::<IncrementalAlterConfigsRequest>(&[&INCREMENTAL_ALTER_CONFIGS_CLUSTER], 1, resource(4, "1")),
        probe::<IncrementalAlterConfigsRequest>(&[&INCREMENTAL_ALTER_CONFIGS_CLUSTER], 1, resource(8, "1")),
        probe::<IncrementalAlterConfigsRequest>(&[&INCREMENTAL_ALTER_CONFIGS_GROUP], 1, resource(32, NAME)),
        probe::<ListConfigResourcesRequest>(&[&LIST_CONFIG_RESOURCES_CLUSTER], 1, json!({})),
        probe::<ElectLeadersRequest>(&[&ELECT_LEADERS_CLUSTER], 2, json!({})),
        probe::<AlterPartitionReassignmentsRequest>(&[&ALTER_PARTITION_REASSIGNMENTS_CLUSTER], 0, json!({})),
        probe::<ListPartitionReassignmentsRequest>(&[&LIST_PARTITION_REASSIGNMENTS_CLUSTER], 0, json!({})),
        probe::<AlterReplicaLogDirsRequest>(
            &[&ALTER_REPLICA_LOG_DIRS_CLUSTER],
            2,
            json!({"dirs": [
            {"path": "/nowhere", "topics": [{"name": NAME, "partitions": [0]}]}]}),
        ),
        probe::<DescribeLogDirsRequest>(&[&DESCRIBE_LOG_DIRS_CLUSTER], 4, json!({"topics": null})),
        probe::<UpdateFeaturesRequest>(&[&UPDATE_FEATURES_CLUSTER], 1, json!({})),
        probe::<UnregisterBrokerRequest>(&[&UNREGISTER_BROKER_CLUSTER], 0, json!({"broker_id": 9})),
        probe::<DescribeAclsRequest>(
            &[&DESCRIBE_ACLS_CLUSTER],
            3,
            json!({"resource_type_filter": 1,
            "pattern_type_filter": 1, "operation": 1, "permission_type": 1}),
        ),
        probe::<CreateAclsRequest>(&[&CREATE_ACLS_CLUSTER], 3, acl),
        probe::<DescribeClientQuotasRequest>(&[&DESCRIBE_CLIENT_QUOTAS_CLUSTER], 1, json!({})),
        probe::<AlterClientQuotasRequest>(&[&ALTER_CLIENT_QUOTAS_CLUSTER], 1, json!({"entries": [{}]})),
        probe::<DescribeUserScramCredentialsRequest>(
            &[&DESCRIBE_USER_SCRAM_CREDENTIALS_CLUSTER],
            0,
            json!({}),
        ),
        probe::<AlterUserScramCredentialsRequest>(
            &[&ALTER_USER_SCRAM_CREDENTIALS_CLUSTER],
            0,
            json!({
            "deletions": [{"name": NAME, "mechanism": 1}]}),
        ),
        probe::<DeleteAclsRequest>(&[&DELETE_ACLS_CLUSTER], 3, filter),
    ]
}

/// Changes of settings of topics that name something else, which the control plane decides once they are allowed.
fn of_naming_settings() -> Vec<Probe> {
    use table::*;
    let naming = |setting: &str| json!([{"name": setting, "value": NAME}]);
    let altering = |setting: &str| {
        json!({"resources": [
        {"resource_type": 2, "resource_name": "t", "configs": naming(setting)}]})
    };
    let creating = |setting: &str| json!({"topics": [{"name": "t", "configs": naming(setting)}]});
    let (letters, groups) = ("schema.validation.dead.letter.topic", "retention.until.checkpointed");
    vec![
        probe::<CreateTopicsRequest>(&[&CREATE_TOPICS_DEAD_LETTERS], 7, creating(letters)),
        probe::<CreateTopicsRequest>(&[&CREATE_TOPICS_KEPT_FOR], 7, creating(groups)),
        probe::<AlterConfigsRequest>(&[&ALTER_CONFIGS_DEAD_LETTERS], 2, altering(letters)),
        probe::<AlterConfigsRequest>(&[&ALTER_CONFIGS_KEPT_FOR], 2, altering(groups)),
        probe::<IncrementalAlterConfigsRequest>(
            &[&INCREMENTAL_ALTER_CONFIGS_DEAD_LETTERS],
            1,
            altering(letters),
        ),
        probe::<IncrementalAlterConfigsRequest>(&[&INCREMENTAL_ALTER_CONFIGS_KEPT_FOR], 1, altering(groups)),
    ]
}

/// Rights whose want no answer shows as an error; tests of their own are in `authorization` and `naming`.
const SHOWN_ELSEWHERE: [&Right; 6] = [
    &table::PRODUCE_DEAD_LETTERS,
    &table::PRODUCE_INTERNAL,
    &table::METADATA_OPERATIONS,
    &table::DESCRIBE_CLUSTER_OPERATIONS,
    &table::CONSUMER_GROUP_DESCRIBE_TOPIC,
    &table::SHARE_GROUP_DESCRIBE_TOPIC,
];

fn probes(id: Uuid) -> Vec<Probe> {
    let all = [
        of_records(id),
        of_metadata(id),
        of_groups(),
        of_share_groups(id),
        of_transactions(),
        of_administrators(),
        of_naming_settings(),
    ];
    all.into_iter().flatten().collect()
}

#[test]
fn every_right_that_refuses_has_a_request_here() {
    let probed: Vec<_> =
        probes(Uuid::nil()).into_iter().filter_map(|probe| probe.rights.last().copied()).collect();
    for right in RIGHTS.iter().filter(|right| SERVED.contains(&right.api) && right.is_logged) {
        assert!(probed.contains(right) || SHOWN_ELSEWHERE.contains(right), "{}", right.name);
    }
}

#[test]
fn who_wants_one_right_is_refused_with_its_error_and_who_wants_none_is_not() {
    let broker = guarded();
    let spec = topic(NAME, 1);
    let id = spec.topic_id;
    broker.server.apply_topics(vec![spec]).unwrap();
    for internal in ["__consumer_offsets", "__transaction_state", "__share_group_state"] {
        let spec = pylog_server::cluster::spec::TopicSpec { internal: true, ..topic(internal, 1) };
        broker.server.apply_topics(vec![spec]).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // What is asked of the control plane is refused, so that nothing waits.
        let asked = scope.spawn(|| {
            let mut asked = Vec::new();
            while !done.load(Ordering::SeqCst) {
                let questions = std::mem::take(&mut *broker.decisions.kept.lock().unwrap());
                asked.extend(questions.into_iter().map(|question| question.kind));
                std::thread::yield_now();
            }
            asked
        });
        let probing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for probe in probes(id) {
                ask_twice(&broker, &probe);
            }
        }));
        done.store(true, Ordering::SeqCst);
        let asked = asked.join().unwrap();
        probing.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
        // Once for who may, and never for who may not: of the list of administrators' requests all but the native ones.
        let native = 4;
        let decided = of_administrators().len() + of_naming_settings().len() - native;
        assert_eq!(asked.len(), decided, "{asked:?}");
    });
}

fn ask_twice(broker: &crate::server::support::Broker, probe: &Probe) {
    let last = probe.rights.last().unwrap();
    let code = i64::from(probe.error.code());
    let denied: Vec<_> = probe
        .rights
        .iter()
        .map(|right| {
            let is_cluster = right.resource_type == ResourceType::Cluster;
            (right.resource_type, if is_cluster { CLUSTER_NAME } else { "*" }, right.operation)
        })
        .collect();
    broker.server.apply_acls(all_but(&denied));
    let answer = (probe.ask)(&mut broker.client());
    assert!(errors(&answer).contains(&code), "{}: {answer}", last.name);
    broker.server.apply_acls(all_but(&[]));
    let answer = (probe.ask)(&mut broker.client());
    let is_refused = errors(&answer).contains(&code);
    assert!(!is_refused || !probe.is_allowed_otherwise, "{} of who may: {answer}", last.name);
}
