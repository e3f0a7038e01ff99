//! Readers in a cluster: long polls and other leaders, followers' sessions, the closest replica, offsets of a new leader.
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsTopic};
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic, PartitionData};
use pylog_wire::messages::list_offsets::{
    EARLIEST, LATEST, ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic,
};
use pylog_wire::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, DescribeTopicPartitionsRequest, FetchRequest, FetchResponse,
    ListOffsetsRequest,
};

use crate::server::cluster_bed::{Bed, Follower, spec, until};
use crate::server::support::{Client, batch, fetch_request, only, produce_request, values};

/// Longer than any test may take.
const FOREVER_MS: i32 = 60_000;
const RACK_AWARE: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

fn produce(bed: &Bed) {
    let answer = bed.brokers[&1].client().call(&produce_request("t", 0, batch(&["x"]), 1), 11);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn a_followers_long_poll_wakes_for_what_is_appended_and_a_consumers_for_what_is_committed() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut follower = Follower::of(&bed, 1, 2, id);
    let request = follower.request(0, -1, FOREVER_MS);
    follower.client.send(&request, 17, 1);
    let mut consumer = bed.brokers[&1].client();
    consumer.send(&fetch_request("t", 0, FOREVER_MS, 1), 12, 1);
    bed.brokers[&1].wait_for("long_polls", 2);
    produce(&bed);
    assert_eq!(values(&only(follower.client.receive(17).1)), [(0, "x".into())]);
    follower.fetch(1);
    let read = only(consumer.receive(12).1);
    assert_eq!((values(&read), read.high_watermark), (vec![(0, "x".into())], 1));
}

#[test]
fn another_leader_ends_long_polls_and_is_told() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut follower = Follower::of(&bed, 1, 2, id);
    let request = follower.request(0, -1, FOREVER_MS);
    follower.client.send(&request, 17, 1);
    let mut old = bed.brokers[&1].client();
    old.send(&fetch_request("t", 0, FOREVER_MS, 1), 10, 1);
    bed.brokers[&1].wait_for("long_polls", 2);
    bed.elect("t", 2);
    let partition = only(follower.client.receive(17).1);
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower.code());
    assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (2, 4));
    assert_eq!(only(old.receive(10).1).error_code, ErrorCode::NotLeaderOrFollower.code());
}

#[test]
fn a_follower_keeps_a_session_and_names_only_what_moved() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut follower = Follower::of(&bed, 1, 2, id);
    let mut request = follower.request(0, -1, 0);
    request.session_epoch = 0;
    let begun: FetchResponse = follower.client.call(&request, 17);
    assert!(begun.session_id > 0);
    produce(&bed);
    let silent = FetchRequest {
        session_id: begun.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        ..request.clone()
    };
    let read: FetchResponse = follower.client.call(&silent, 17);
    assert_eq!(values(&only(read)), [(0, "x".into())]);
    let moved = follower.request(1, 3, 0);
    let moved = FetchRequest { session_id: begun.session_id, session_epoch: 2, ..moved };
    let read = only(follower.client.call(&moved, 17));
    assert_eq!(read.high_watermark, 1, "the fetch itself committed it");
    let silent = FetchRequest { session_epoch: 3, ..silent };
    let read: FetchResponse = follower.client.call(&silent, 17);
    assert_eq!(read.responses, [], "nothing is new");
    let shared = bed.brokers[&1].server.shared();
    assert_eq!((shared.replica_sessions.counts().0, shared.fetch_sessions.counts().0), (1, 0));
}

/// What a consumer in `rack` gets from partition 0.
fn read(client: &mut Client, version: i16, offset: i64, rack: &str) -> PartitionData {
    let request = FetchRequest { rack_id: rack.into(), ..fetch_request("t", offset, 0, 1) };
    only(client.call(&request, version))
}

#[test]
fn a_consumer_is_sent_to_the_follower_of_its_rack() {
    let bed =
        Bed::with(&[1], &[1, 2, 3], |settings| settings.replica_selector_class = Some(RACK_AWARE.into()));
    let id = bed.serve(spec("t", &[1, 2, 3], &[1, 2], 1));
    produce(&bed);
    Follower::of(&bed, 1, 2, id).fetch(1);
    let mut client = bed.brokers[&1].client();
    let partition = read(&mut client, 12, 0, "rack-2");
    assert_eq!((partition.preferred_read_replica, partition.records.unwrap().len()), (2, 0));
    assert_eq!(partition.high_watermark, 1);
    for (rack, why) in [("rack-1", "the leader's"), ("rack-3", "not in sync"), ("", "none")] {
        let partition = read(&mut client, 12, 0, rack);
        assert_eq!((partition.preferred_read_replica, values(&partition).len()), (-1, 1), "{why}");
    }
    bed.announce(&[1, 3]);
    assert_eq!(read(&mut client, 12, 0, "rack-2").preferred_read_replica, -1, "not alive");
}

#[test]
fn without_the_selector_everybody_reads_from_the_leader() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    produce(&bed);
    Follower::of(&bed, 1, 2, id).fetch(1);
    assert_eq!(values(&read(&mut bed.brokers[&1].client(), 12, 0, "rack-2")), [(0, "x".into())]);
}

#[test]
fn a_follower_serves_consumers_what_is_committed() {
    let bed = Bed::start(&[2], &[1, 2]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let partition = bed.partition(2, "t");
    let log = partition.log.as_ref().unwrap();
    for offset in 0..2i64 {
        let mut copied = batch(&["x"]);
        copied[..8].copy_from_slice(&offset.to_be_bytes());
        copied[12..16].copy_from_slice(&3i32.to_be_bytes());
        log.append_replica(&copied).unwrap();
    }
    log.move_high_watermark(1);
    let mut client = bed.brokers[&2].client();
    assert_eq!(values(&read(&mut client, 11, 0, "")), [(0, "x".into())]);
    assert_eq!(values(&read(&mut client, 11, 1, "")), [], "not committed yet");
    let not_leader = ErrorCode::NotLeaderOrFollower.code();
    assert_eq!(read(&mut client, 10, 0, "").error_code, not_leader, "older consumers read from leaders only");
    assert_eq!(read(&mut client, 11, 3, "").error_code, ErrorCode::OffsetOutOfRange.code());
    assert_eq!(offset_at(&mut client, LATEST, 7, -1).error_code, not_leader);
}

fn offset_at(
    client: &mut Client,
    timestamp: i64,
    version: i16,
    replica_id: i32,
) -> ListOffsetsPartitionResponse {
    let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: "t".into(), partitions }];
    let request = ListOffsetsRequest { replica_id, topics, ..Default::default() };
    client.call(&request, version).topics.remove(0).partitions.remove(0)
}

#[test]
fn a_new_leader_does_not_tell_the_end_before_it_knows_what_is_committed() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    produce(&bed);
    bed.elect("t", 1);
    let mut client = bed.brokers[&1].client();
    assert_eq!(offset_at(&mut client, LATEST, 5, -1).error_code, ErrorCode::OffsetNotAvailable.code());
    assert_eq!(offset_at(&mut client, LATEST, 4, -1).error_code, ErrorCode::LeaderNotAvailable.code());
    assert_eq!(offset_at(&mut client, 1, 5, -1).error_code, ErrorCode::OffsetNotAvailable.code());
    assert_eq!(offset_at(&mut client, EARLIEST, 5, -1).offset, 0);
    assert_eq!(offset_at(&mut client, LATEST, 5, 2).offset, 1, "a follower gets the log's end");
    assert_eq!(offset_at(&mut client, LATEST, 5, 9).error_code, ErrorCode::ClusterAuthorizationFailed.code());
    Follower { leader_epoch: 4, ..Follower::of(&bed, 1, 2, id) }.fetch_from(1, 3);
    assert_eq!(offset_at(&mut client, LATEST, 5, -1).offset, 1);
}

#[test]
fn deleted_records_are_gone_when_all_live_replicas_say_so() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    let id = bed.serve(spec("t", &[1, 2, 3], &[1, 2], 1));
    produce(&bed);
    bed.announce(&[1, 2]);
    let mut follower = Follower::of(&bed, 1, 2, id);
    follower.fetch(1);
    until("it is committed", || bed.partition(1, "t").log.as_ref().unwrap().offsets().high_watermark == 1);
    let before = |timeout_ms| {
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }];
        let topics = vec![DeleteRecordsTopic { name: "t".into(), partitions }];
        DeleteRecordsRequest { topics, timeout_ms }
    };
    let mut client = bed.brokers[&1].client();
    let late = client.call(&before(50), 2);
    assert_eq!(late.topics[0].partitions[0].error_code, ErrorCode::RequestTimedOut.code());
    client.send(&before(FOREVER_MS), 2, 1);
    let mut request = follower.request(1, 3, 0);
    request.topics[0].partitions[0].log_start_offset = 1;
    let partition = only(follower.client.call(&request, 17));
    assert_eq!(partition.log_start_offset, 1);
    let (_, done) = client.receive::<DeleteRecordsResponse>(2);
    assert_eq!((done.topics[0].partitions[0].error_code, done.topics[0].partitions[0].low_watermark), (0, 1));
}

#[test]
fn replicas_that_may_be_elected_and_those_that_are_away_are_described() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1, 2, 3], &[1, 2], 1));
    bed.change("t", |partition| partition.elr = vec![3]);
    let request = DescribeTopicPartitionsRequest { response_partition_limit: 9, ..Default::default() };
    let answer = bed.brokers[&1].client().call(&request, 0);
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(
        (partition.isr_nodes.as_slice(), partition.offline_replicas.as_slice()),
        (&[1, 2][..], &[3][..])
    );
    assert_eq!(partition.eligible_leader_replicas, Some(vec![3]));
}

#[test]
fn a_fetch_that_names_thousands_of_partitions_is_one_session() {
    let bed = Bed::start(&[1], &[1, 2]);
    let mut many = spec("many", &[1, 2], &[1, 2], 1);
    let first = many.partitions.remove(0);
    many.partitions = (0..200)
        .map(|partition| pylog_server::cluster::spec::PartitionSpec { partition, ..first.clone() })
        .collect();
    let id = bed.serve(many);
    let mut follower = Follower::of(&bed, 1, 2, id);
    let asked = follower.request(0, -1, 0).topics[0].partitions[0].clone();
    let partitions = (0..200).map(|partition| FetchPartition { partition, ..asked.clone() }).collect();
    let topics = vec![FetchTopic { topic_id: id, partitions, ..Default::default() }];
    let request = FetchRequest { session_epoch: 0, topics, ..follower.request(0, -1, 0) };
    let answer: FetchResponse = follower.client.call(&request, 17);
    assert_eq!(answer.responses[0].partitions.len(), 200);
    let shared = bed.brokers[&1].server.shared();
    assert_eq!(shared.replica_sessions.counts(), (1, 200, 0));
    let topics = shared.topics.now();
    let forwarded = topics
        .named("many")
        .unwrap()
        .partitions
        .iter()
        .filter(|partition| partition.leader_state.as_ref().unwrap().ends()[&2] == 0);
    assert_eq!(forwarded.count(), 200);
}
