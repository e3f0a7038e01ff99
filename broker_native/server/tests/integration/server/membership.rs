//! What a broker of a bed answers about the others: Metadata, DescribeCluster, FindCoordinator.
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_topics::CreatableTopic;
use pylog_wire::messages::describe_configs::{RESOURCE_BROKER_LOGGER, RESOURCE_TOPIC};
use pylog_wire::messages::describe_quorum::{AskedPartition as QuorumAsked, AskedTopic, ReplicaState};
use pylog_wire::messages::incremental_alter_configs::AlterConfigsResource;
use pylog_wire::messages::{
    CreateTopicsRequest, DescribeClusterRequest, DescribeQuorumRequest, FindCoordinatorRequest,
    FindCoordinatorResponse, IncrementalAlterConfigsRequest, MetadataRequest, MetadataResponse,
};

use std::time::Duration;

use crate::server::cluster_bed::{Bed, at, led_by};
use crate::server::support::Broker;
use pylog_server::cluster::view::{Broker as Live, ClusterView};
use pylog_server::decide::Kind;

fn metadata(broker: &Broker) -> MetadataResponse {
    broker.client().call(&MetadataRequest { topics: None, ..Default::default() }, 12)
}

fn find(broker: &Broker, key_type: i8, key: &str) -> FindCoordinatorResponse {
    let request =
        FindCoordinatorRequest { key_type, coordinator_keys: vec![key.into()], ..Default::default() };
    broker.client().call(&request, 4)
}

#[test]
fn every_broker_tells_the_same_brokers_racks_and_controller() {
    let bed = Bed::all(3);
    bed.announce_with_controller(&[1, 2, 3], 2);
    for broker in bed.brokers.values() {
        let answer = metadata(broker);
        let listed: Vec<_> =
            answer.brokers.iter().map(|broker| (broker.node_id, broker.port, broker.rack.clone())).collect();
        let expected: Vec<_> =
            (1..=3).map(|id| (id, i32::from(bed.broker(id).port), Some(format!("rack-{id}")))).collect();
        assert_eq!(listed, expected);
        assert_eq!(answer.controller_id, 2);
        let described =
            broker.client().call(&DescribeClusterRequest { endpoint_type: 1, ..Default::default() }, 1);
        let listed: Vec<_> = described
            .brokers
            .iter()
            .map(|broker| (broker.broker_id, broker.port, broker.rack.clone()))
            .collect();
        assert_eq!((listed, described.controller_id), (expected, 2));
    }
}

#[test]
fn a_partition_of_a_dead_leader_has_no_leader_and_its_replica_is_offline() {
    let bed = Bed::all(2);
    let mut spec = led_by("t", &[1, 2]);
    spec.partitions[1].replicas = vec![2, 3];
    bed.serve(spec.clone());
    bed.announce(&[1]);
    let answer = metadata(bed.broker(1));
    assert_eq!(answer.brokers.len(), 1);
    let listed: Vec<_> = answer.topics[0]
        .partitions
        .iter()
        .map(|partition| {
            (
                partition.error_code,
                partition.leader_id,
                partition.isr_nodes.clone(),
                partition.offline_replicas.clone(),
            )
        })
        .collect();
    let none = ErrorCode::LeaderNotAvailable.code();
    assert_eq!(listed, [(0, 1, vec![1], vec![]), (none, -1, vec![2], vec![2, 3])]);
}

#[test]
fn the_coordinator_is_the_leader_of_the_keys_partition_wherever_it_is() {
    let bed = Bed::all(3);
    // "a" hashes to 97, "b" to 98, "c" to 99: partitions 1, 2 and 0 of three.
    bed.serve(led_by("__consumer_offsets", &[3, 1, 2]));
    bed.serve(led_by("__transaction_state", &[1, 2, 3]));
    for broker in bed.brokers.values() {
        for (key_type, key, leader) in [(0, "a", 1), (0, "b", 2), (0, "c", 3), (1, "a", 2), (1, "c", 1)] {
            let found = find(broker, key_type, key).coordinators.remove(0);
            let expected = (0, leader, "127.0.0.1".to_owned(), i32::from(bed.broker(leader).port));
            assert_eq!((found.error_code, found.node_id, found.host, found.port), expected, "{key}");
        }
    }
    bed.announce(&[1, 3]);
    let gone = find(bed.broker(1), 0, "b").coordinators.remove(0);
    assert_eq!((gone.error_code, gone.node_id), (ErrorCode::CoordinatorNotAvailable.code(), -1));
}

/// Of partition 0 of topic "t": the error, the leader and its epoch.
fn leader(broker: &Broker) -> (i16, i32, i32) {
    let answer = metadata(broker);
    let topic = answer.topics.iter().find(|topic| topic.name.as_deref() == Some("t")).unwrap();
    let partition = &topic.partitions[0];
    (partition.error_code, partition.leader_id, partition.leader_epoch)
}

#[test]
fn a_broker_without_a_lease_tells_what_the_others_know() {
    let bed = Bed::all(3);
    bed.serve(led_by("t", &[1]));
    bed.serve(led_by("__consumer_offsets", &[1]));
    bed.broker(1).server.lease_until(Duration::ZERO);
    let mut elected = led_by("t", &[2]);
    elected.partitions[0].leader_epoch = 4;
    for id in [2, 3] {
        bed.broker(id).server.apply_topics(vec![elected.clone()]).unwrap();
        let mut coordinator = led_by("__consumer_offsets", &[3]);
        coordinator.partitions[0].leader_epoch = 4;
        bed.broker(id).server.apply_topics(vec![coordinator]).unwrap();
    }
    assert_eq!(leader(bed.broker(1)), (0, 2, 4));
    assert_eq!(find(bed.broker(1), 0, "a").coordinators[0].node_id, 3);
    // One of them knows: that is enough.
    bed.broker(2).server.lease_until(Duration::ZERO);
    assert_eq!(leader(bed.broker(1)), (0, 2, 4));
    assert_eq!(find(bed.broker(1), 0, "a").coordinators[0].node_id, 3);
}

#[test]
fn a_broker_without_a_lease_decides_nothing_that_it_cannot_store() {
    let bed = Bed::all(2);
    let broker = bed.broker(1);
    broker.server.lease_until(Duration::ZERO);
    let topics = vec![CreatableTopic { name: "new".into(), ..Default::default() }];
    let request = CreateTopicsRequest { topics, timeout_ms: 60_000, ..Default::default() };
    let refused = broker.client().call(&request, 7).topics.remove(0);
    assert_eq!(refused.error_code, ErrorCode::NotController.code());
    assert!(refused.error_message.unwrap().contains("try again"));
    assert!(broker.decisions.kept.lock().unwrap().is_empty(), "nothing waits for ZooKeeper");

    let asked = |resource_type| {
        let resource =
            AlterConfigsResource { resource_type, resource_name: "1".into(), ..Default::default() };
        IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() }
    };
    let refused = broker.client().call(&asked(RESOURCE_TOPIC), 1).responses.remove(0);
    assert_eq!(refused.error_code, ErrorCode::NotController.code());
    // Its loggers are its own.
    broker.client().send(&asked(RESOURCE_BROKER_LOGGER), 1, 1);
    let kinds = || -> Vec<Kind> {
        broker.decisions.kept.lock().unwrap().iter().map(|question| question.kind).collect()
    };
    while kinds().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(kinds(), [Kind::IncrementalAlterConfigs]);
}

#[test]
fn dead_brokers_are_told_only_to_who_asks_for_them() {
    let bed = Bed::all(2);
    let known = |id| Live { id, endpoints: at(1), rack: None, epoch: 0 };
    let (brokers, dead) = (vec![known(1), known(2)], vec![known(3)]);
    bed.broker(1).server.apply_cluster(ClusterView { controller_id: 1, brokers, dead, ..Default::default() });
    let mut client = bed.broker(1).client();
    let mut listed = |include_fenced_brokers, version| {
        let asked = DescribeClusterRequest { include_fenced_brokers, ..Default::default() };
        let brokers = client.call(&asked, version).brokers;
        brokers.into_iter().map(|broker| (broker.broker_id, broker.is_fenced)).collect::<Vec<_>>()
    };
    assert_eq!(listed(false, 2), [(1, false), (2, false)]);
    assert_eq!(listed(true, 2), [(1, false), (2, false), (3, true)]);
    let all = bed.broker(1).client().call(&MetadataRequest { topics: None, ..Default::default() }, 12);
    assert_eq!(all.brokers.iter().map(|broker| broker.node_id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn the_controller_votes_alone_and_the_others_observe() {
    let bed = Bed::all(3);
    bed.announce_with_controller(&[1, 2, 3], 2);
    let partition = QuorumAsked { partition_index: 0 };
    let topic = AskedTopic { topic_name: "__cluster_metadata".into(), partitions: vec![partition] };
    let asked = DescribeQuorumRequest { topics: vec![topic] };
    let ask = || bed.broker(1).client().call(&asked, 2);
    let ids = |some: &[ReplicaState]| some.iter().map(|replica| replica.replica_id).collect::<Vec<_>>();
    let listed = ask();
    let partition = &listed.topics[0].partitions[0];
    assert_eq!((listed.error_code, partition.error_code, partition.leader_id), (0, 0, 2));
    assert_eq!((ids(&partition.current_voters), ids(&partition.observers)), (vec![2], vec![1, 3]));
    assert_eq!((listed.nodes.len(), listed.nodes[0].node_id), (1, 2));
    assert_eq!(listed.nodes[0].listeners[0].port, bed.broker(2).port);
    bed.announce_with_controller(&[1, 2, 3], -1);
    assert_eq!(ask().error_code, ErrorCode::NotLeaderOrFollower.code());
}

#[test]
fn where_nobody_has_a_lease_a_broker_knows_no_leader() {
    let bed = Bed::all(2);
    bed.serve(led_by("t", &[1]));
    bed.serve(led_by("__consumer_offsets", &[1]));
    for id in [1, 2] {
        bed.broker(id).server.lease_until(Duration::ZERO);
    }
    assert_eq!(leader(bed.broker(1)), (ErrorCode::LeaderNotAvailable.code(), -1, 3));
    let none = find(bed.broker(1), 0, "a").coordinators.remove(0);
    assert_eq!((none.error_code, none.node_id), (ErrorCode::CoordinatorNotAvailable.code(), -1));
}

#[test]
fn a_broker_without_a_lease_that_reaches_no_other_sends_its_clients_away() {
    let bed = Bed::all(1);
    bed.serve(led_by("t", &[1]));
    // Nobody listens there.
    let gone = Live { id: 2, endpoints: at(1), rack: None, epoch: 102 };
    bed.broker(1).server.apply_cluster(ClusterView {
        controller_id: 2,
        brokers: vec![gone],
        ..Default::default()
    });
    bed.broker(1).server.lease_until(Duration::ZERO);
    let mut client = bed.broker(1).client();
    client.send(&MetadataRequest { topics: None, ..Default::default() }, 12, 1);
    assert!(client.frame().is_none(), "the connection ends");
}
