//! Share groups whose members, states and records are with different brokers.
use std::collections::HashMap;
use std::time::Instant;

use pylog_server::cluster::spec::{PartitionSpec, TopicSpec};
use pylog_server::share_groups::configs::OwnConfigs;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_share_group_offsets::DescribeShareGroupOffsetsRequestGroup;
use pylog_wire::messages::{
    DeleteGroupsRequest, DescribeShareGroupOffsetsRequest, FindCoordinatorRequest,
    WriteShareGroupStateRequest, write_share_group_state,
};
use uuid::Uuid;

use crate::server::cluster_bed::{Bed, led_by};
use crate::server::share_groups::{ACCEPT, GROUP, Member, Run, heartbeat, only, runs, when_loaded};
use crate::server::support::{TIMEOUT, topic};

/// Three brokers: 1 keeps the states, 2 leads the records, 3 has them, too, and coordinates the group.
fn cluster() -> (Bed, Uuid) {
    let bed = Bed::all(3);
    bed.raise(2);
    bed.announce(&[1, 2, 3]);
    bed.serve(led_by("__share_group_state", &[1]));
    bed.serve(led_by("__consumer_offsets", &[3]));
    let (replicas, isr) = (vec![2, 3], vec![2, 3]);
    let partition = PartitionSpec { leader: 2, leader_epoch: 3, replicas, isr, ..Default::default() };
    let topic_id = bed.serve(TopicSpec { partitions: vec![partition], ..topic("t", 0) });
    let own: OwnConfigs = serde_json::from_str(r#"{"share_auto_offset_reset": "earliest"}"#).unwrap();
    for broker in bed.brokers.values() {
        broker.server.shared().share_groups.configs.apply(HashMap::from([(GROUP.to_owned(), own.clone())]));
    }
    (bed, topic_id)
}

/// A member that reads where the partition is led.
fn joined(bed: &Bed, leader: i32, name: &'static str, topic_id: Uuid) -> Member {
    let mut client = bed.broker(3).client();
    let answer = when_loaded(|| {
        let answer = heartbeat(&mut client, name, 0);
        (ErrorCode::from_code(answer.error_code), answer)
    });
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Member::of(bed.broker(leader).client(), name, topic_id)
}

/// What the member gets, which is something.
fn given(member: &mut Member) -> Vec<Run> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let request = member.request(1_000, &[]);
        let partition = only(member.client.call(&request, 2));
        assert_eq!(partition.error_code, 0);
        if !partition.acquired_records.is_empty() {
            return runs(&partition);
        }
        assert!(Instant::now() < deadline, "nothing comes");
    }
}

fn group_offsets(bed: &Bed) -> Vec<(i64, i64)> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let answer = bed.broker(3).client().call(&request, 1);
    assert_eq!(answer.groups[0].error_code, 0, "{answer:?}");
    let partitions = answer.groups[0].topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| (partition.start_offset, partition.lag)).collect()
}

#[test]
fn what_was_accepted_stays_when_another_broker_leads_and_who_led_says_so() {
    let (bed, topic_id) = cluster();
    bed.broker(2).client().produce("t", &["a", "b", "c"]);
    let mut first = joined(&bed, 2, "m", topic_id);
    assert_eq!(given(&mut first), [(0, 2, 1)]);
    assert_eq!(first.say(&[(0, 0, ACCEPT), (2, 2, ACCEPT)]), (0, 0));
    assert_eq!(group_offsets(&bed), [(1, 1)]);
    bed.elect("t", 3);
    let late = first.request(0, &[(1, 1, ACCEPT)]);
    let answer = first.client.call(&late, 2);
    assert_eq!(answer.node_endpoints.iter().map(|node| node.node_id).collect::<Vec<_>>(), [3]);
    let partition = only(answer);
    let not_leader = ErrorCode::NotLeaderOrFollower.code();
    assert_eq!((partition.error_code, partition.acknowledge_error_code), (not_leader, not_leader));
    assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (3, 4));
    let mut second = joined(&bed, 3, "n", topic_id);
    assert_eq!(given(&mut second), [(1, 1, 1)]);
    assert_eq!(second.say(&[(1, 1, ACCEPT)]), (0, 0));
    assert_eq!(group_offsets(&bed), [(3, 0)]);
}

#[test]
fn a_late_write_of_who_led_before_is_refused_by_who_keeps_the_state() {
    let (bed, topic_id) = cluster();
    bed.broker(2).client().produce("t", &["a", "b"]);
    given(&mut joined(&bed, 2, "m", topic_id));
    bed.elect("t", 3);
    given(&mut joined(&bed, 3, "n", topic_id));
    let written = |leader_epoch| {
        let partition =
            write_share_group_state::PartitionData { leader_epoch, start_offset: 2, ..Default::default() };
        let partitions = vec![partition];
        let topics = vec![write_share_group_state::WriteStateData { topic_id, partitions }];
        WriteShareGroupStateRequest { group_id: GROUP.into(), topics }
    };
    let outcome = |broker: i32, leader_epoch| {
        let mut answer = bed.broker(broker).client().call(&written(leader_epoch), 1);
        ErrorCode::from_code(answer.results.remove(0).partitions.remove(0).error_code).unwrap()
    };
    assert_eq!(outcome(1, 3), ErrorCode::FencedLeaderEpoch);
    assert_eq!(outcome(2, 4), ErrorCode::NotCoordinator);
    assert_eq!(group_offsets(&bed), [(0, 2)]);
    assert_eq!(outcome(1, 4), ErrorCode::None);
    assert_eq!(group_offsets(&bed), [(2, 0)]);
}

#[test]
fn each_broker_does_its_own_part_and_names_the_others() {
    let (bed, topic_id) = cluster();
    assert_eq!(heartbeat(&mut bed.broker(2).client(), "m", 0).error_code, ErrorCode::NotCoordinator.code());
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let answer = bed.broker(1).client().call(&request, 1);
    assert_eq!(answer.groups[0].error_code, ErrorCode::NotCoordinator.code());
    let coordinator_keys = vec![format!("{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0")];
    let asked = FindCoordinatorRequest { key_type: 2, coordinator_keys, ..Default::default() };
    let found = bed.broker(2).client().call(&asked, 6).coordinators.remove(0);
    assert_eq!((found.error_code, found.node_id), (0, 1));
    bed.broker(2).client().produce("t", &["a"]);
    let mut stranger = Member::of(bed.broker(2).client(), "nobody", topic_id);
    let request = stranger.request(0, &[]);
    let partition = only(stranger.client.call(&request, 2));
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert!([0, unknown].contains(&partition.error_code) && partition.acquired_records.is_empty());
    assert_eq!(group_offsets(&bed), [], "a client that is no member begins nothing");
}

#[test]
fn a_group_that_is_deleted_leaves_nothing_at_the_other_brokers() {
    let (bed, topic_id) = cluster();
    bed.broker(2).client().produce("t", &["a", "b"]);
    let mut member = joined(&bed, 2, "m", topic_id);
    assert_eq!(given(&mut member), [(0, 1, 1)]);
    assert_eq!(member.say(&[(0, 1, ACCEPT)]), (0, 0));
    assert_eq!(member.acknowledge(/* closes */ -1, &[]), (0, 0));
    assert_eq!(heartbeat(&mut bed.broker(3).client(), "m", -1).error_code, 0);
    let request = DeleteGroupsRequest { groups_names: vec![GROUP.into()] };
    let answer = bed.broker(3).client().call(&request, 2);
    assert_eq!(answer.results[0].error_code, 0);
    let mut again = joined(&bed, 2, "m", topic_id);
    assert_eq!(given(&mut again), [(0, 1, 1)]);
}
