//! The coordinators' shell over real logs: loading, durability, reloading, unknown keys.
use pylog_coordinator::Caller;
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest, Settings as GroupSettings};
use pylog_record::control::Marker;
use pylog_server::settings::Settings;
use pylog_storage::config::{CleanupPolicy, Durability};
use pylog_storage::{LogConfig, TxnMarker};
use pylog_wire::ErrorCode;
use pylog_wire::messages::join_group::JoinGroupRequestProtocol;
use pylog_wire::messages::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use pylog_wire::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use pylog_wire::messages::txn_offset_commit::{TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic};
use pylog_wire::messages::{
    JoinGroupRequest, JoinGroupResponse, ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest,
    TxnOffsetCommitRequest,
};

use crate::server::support::{Broker, Client, topic};

const OFFSETS: &str = "__consumer_offsets";

fn internal(partitions: i32, durability: Durability) -> pylog_server::cluster::spec::TopicSpec {
    let cleanup_policy = CleanupPolicy { delete: false, compact: true };
    let config = LogConfig { durability, cleanup_policy, ..LogConfig::default() };
    pylog_server::cluster::spec::TopicSpec { internal: true, config, ..topic(OFFSETS, partitions) }
}

fn serving(partitions: i32, durability: Durability) -> Broker {
    let broker = Broker::with(Settings::default());
    broker.server.apply_topics(vec![topic("t", 4), internal(partitions, durability)]).unwrap();
    broker
}

fn commit(client: &mut Client, group: &str, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic =
        OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest { group_id: group.into(), topics: vec![topic], ..Default::default() };
    client.call(&request, 9).topics[0].partitions[0].error_code
}

/// As the handler does once the transaction's coordinator has agreed.
fn commit_in_transaction(broker: &Broker, epoch: i16, offset: i64) -> Result<i16, ErrorCode> {
    let partition = TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic =
        TxnOffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = TxnOffsetCommitRequest {
        transactional_id: "mine".into(),
        group_id: "g".into(),
        producer_id: 5,
        producer_epoch: epoch,
        topics: vec![topic],
        ..Default::default()
    };
    let request = GroupRequest::TxnOffsetCommit(request);
    let caller = Caller::default();
    let groups = &broker.server.shared().coordinators.groups;
    let mut waiting = groups.call("g", |ticket| GroupEvent { ticket, caller, request });
    match waiting.take().unwrap()? {
        GroupReply::TxnOffsetCommit(response) => Ok(response.topics[0].partitions[0].error_code),
        other => panic!("{other:?}"),
    }
}

/// Offset and error of partition 0 of `t`; the error of the group when it has one.
fn fetch(client: &mut Client, group: &str) -> Result<i64, i16> {
    let topic =
        OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let group =
        OffsetFetchRequestGroup { group_id: group.into(), topics: Some(vec![topic]), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
    let mut answer = client.call(&request, 8);
    let group = answer.groups.remove(0);
    match (group.error_code, group.topics.first().map(|topic| &topic.partitions[0])) {
        (0, Some(partition)) if partition.error_code == 0 => Ok(partition.committed_offset),
        (0, Some(partition)) => Err(partition.error_code),
        (error, _) => Err(error),
    }
}

/// Fetches until the coordinator is loaded.
fn fetch_loaded(client: &mut Client, group: &str) -> i64 {
    loop {
        match fetch(client, group) {
            Ok(offset) => return offset,
            Err(code) => assert_eq!(code, ErrorCode::CoordinatorLoadInProgress.code()),
        }
    }
}

#[test]
fn a_request_about_a_group_that_is_kept_nowhere_is_told_to_look_for_the_coordinator() {
    let broker = Broker::start();
    broker.server.apply_topics(vec![topic("t", 4)]).unwrap();
    let mut client = broker.client();
    assert_eq!(commit(&mut client, "g", 1), ErrorCode::NotCoordinator.code());
    assert_eq!(fetch(&mut client, "g"), Err(ErrorCode::NotCoordinator.code()));
    assert_eq!(client.call(&ListGroupsRequest::default(), 4).groups, []);
}

#[test]
fn a_new_epoch_of_the_leader_loads_the_offsets_again_from_the_log() {
    let broker = serving(3, Durability::PageCache);
    let mut client = broker.client();
    for number in 0..30 {
        assert_eq!(commit(&mut client, &format!("group-{number}"), number), 0);
    }
    let before = broker.server.shared().topics.now().named(OFFSETS).unwrap().id;
    let mut spec = internal(3, Durability::PageCache);
    spec.topic_id = before;
    spec.partitions.iter_mut().for_each(|partition| partition.leader_epoch += 1);
    broker.server.apply_topics(vec![spec]).unwrap();
    for number in 0..30 {
        assert_eq!(fetch_loaded(&mut client, &format!("group-{number}")), number);
    }
    let listed = client.call(&ListGroupsRequest::default(), 5).groups;
    assert_eq!(listed.len(), 30);
    assert!(listed.iter().all(|group| group.group_state == "Empty" && group.group_type == "classic"));
}

#[test]
fn an_append_that_fails_is_told_and_the_offsets_are_again_those_of_the_log() {
    let broker = Broker::start();
    let mut spec = internal(1, Durability::PageCache);
    spec.config.max_message_bytes = 300;
    broker.server.apply_topics(vec![topic("t", 4), spec]).unwrap();
    let mut client = broker.client();
    assert_eq!(commit(&mut client, "g", 1), 0);
    let long = "g".repeat(300);
    assert_eq!(commit(&mut client, &long, 2), ErrorCode::UnknownServerError.code());
    assert_eq!(fetch_loaded(&mut client, "g"), 1);
    assert_eq!(fetch_loaded(&mut client, &long), -1);
    assert_eq!(commit(&mut client, "g", 3), 0);
    assert_eq!(fetch(&mut client, "g"), Ok(3));
}

#[test]
fn a_partition_that_is_led_by_nobody_here_keeps_no_group() {
    let broker = serving(1, Durability::PageCache);
    let mut client = broker.client();
    assert_eq!(commit(&mut client, "g", 1), 0);
    let mut spec = internal(1, Durability::PageCache);
    spec.topic_id = broker.server.shared().topics.now().named(OFFSETS).unwrap().id;
    spec.partitions[0].leader = -1;
    broker.server.apply_topics(vec![spec]).unwrap();
    assert_eq!(fetch(&mut client, "g"), Err(ErrorCode::NotCoordinator.code()));
}

#[test]
fn with_durability_flushed_a_commit_is_answered_when_it_is_on_the_device() {
    let broker = serving(1, Durability::Flushed);
    let mut client = broker.client();
    for offset in 0..20 {
        assert_eq!(commit(&mut client, "g", offset), 0);
        let log =
            broker.server.shared().topics.now().named(OFFSETS).unwrap().partitions[0].log.clone().unwrap();
        let offsets = log.offsets();
        assert_eq!(offsets.high_watermark, offset + 1, "acknowledged and visible");
        assert_eq!(fetch(&mut client, "g"), Ok(offset));
    }
}

#[test]
fn a_fenced_producers_offsets_change_nothing_and_the_others_stay_loaded() {
    let broker = serving(1, Durability::PageCache);
    let mut client = broker.client();
    assert_eq!(commit(&mut client, "g", 1), 0);
    assert_eq!(commit_in_transaction(&broker, 2, 7), Ok(0));
    assert_eq!(fetch(&mut client, "g"), Err(ErrorCode::UnstableOffsetCommit.code()));
    assert_eq!(commit_in_transaction(&broker, 1, 9), Err(ErrorCode::InvalidProducerEpoch));
    let marker = TxnMarker {
        producer_id: 5,
        producer_epoch: 2,
        marker: Marker::Commit,
        coordinator_epoch: 0,
        transaction_version: 1,
    };
    broker.server.shared().coordinators.groups.append_marker(0, marker).unwrap();
    assert_eq!(fetch(&mut client, "g"), Ok(7), "not loading, and the fenced offset is not there");
}

#[test]
fn a_join_waits_no_longer_when_the_clock_is_set_back() {
    let settings = GroupSettings { group_initial_rebalance_delay_ms: 500, ..GroupSettings::default() };
    let broker = Broker::with(Settings { groups: settings, ..Settings::default() });
    broker.server.apply_topics(vec![internal(1, Durability::PageCache)]).unwrap();
    let mut client = broker.client();
    let protocols = vec![JoinGroupRequestProtocol { name: "range".into(), ..Default::default() }];
    let request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols,
        ..Default::default()
    };
    client.send(&request, 3, 1);
    broker.wait_for("requests", 1);
    broker.clock.set_by_ms(-3_600_000);
    let (_, joined) = client.receive::<JoinGroupResponse>(3);
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
}
