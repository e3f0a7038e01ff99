//! A leader and followers that the test plays: what acks=all means, who counts, who is refused.
use std::time::Duration;

use pylog_server::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::PartitionProduceResponse;
use pylog_wire::messages::{ProduceRequest, ProduceResponse};

use pylog_server::cluster::spec::PartitionSpec;

use crate::server::cluster_bed::{Bed, Follower, Mode, spec, until};
use crate::server::support::{Client, batch, produce_request, values};

const ALL: i16 = -1;

fn send(client: &mut Client, acks: i16, timeout_ms: i32) {
    let request = ProduceRequest { timeout_ms, ..produce_request("t", 0, batch(&["x"]), acks) };
    client.send(&request, 11, 1);
}

fn receive(client: &mut Client) -> (PartitionProduceResponse, ProduceResponse) {
    let (_, mut answer) = client.receive::<ProduceResponse>(11);
    (answer.responses[0].partition_responses.remove(0), answer)
}

fn produce(client: &mut Client, acks: i16, timeout_ms: i32) -> ErrorCode {
    send(client, acks, timeout_ms);
    ErrorCode::from_code(receive(client).0.error_code).unwrap()
}

fn ends(bed: &Bed) -> (i64, i64) {
    let offsets = bed.partition(1, "t").log.as_ref().unwrap().offsets();
    (offsets.high_watermark, offsets.log_end_offset)
}

#[test]
fn a_record_is_committed_when_all_replicas_in_sync_have_it() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    let id = bed.serve(spec("t", &[1, 2, 3], &[1, 2, 3], 2));
    let mut producer = bed.brokers[&1].client();
    send(&mut producer, ALL, 60_000);
    until("it is appended", || ends(&bed) == (0, 1));
    assert_eq!(bed.brokers[&1].client().fetch("t", 0).records.unwrap().len(), 0, "not for consumers yet");
    let mut second = Follower::of(&bed, 1, 2, id);
    assert_eq!(values(&second.fetch(0)), [(0, "x".into())], "followers see it");
    assert_eq!(second.fetch(1).high_watermark, 0);
    assert_eq!(Follower::of(&bed, 1, 3, id).fetch(1).high_watermark, 1);
    assert_eq!(receive(&mut producer).0.error_code, 0);
    assert_eq!(values(&bed.brokers[&1].client().fetch("t", 0)), [(0, "x".into())]);
}

#[test]
fn acks_one_does_not_wait_for_followers() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    bed.serve(spec("t", &[1, 2, 3], &[1, 2, 3], 2));
    assert_eq!(produce(&mut bed.brokers[&1].client(), 1, 60_000), ErrorCode::None);
    assert_eq!(ends(&bed), (0, 1));
}

#[test]
fn a_producer_that_waits_too_long_is_told_so() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    assert_eq!(produce(&mut bed.brokers[&1].client(), ALL, 50), ErrorCode::RequestTimedOut);
    assert_eq!(ends(&bed), (0, 1), "it stays in the log");
}

#[test]
fn a_waiting_producer_is_told_as_soon_as_this_broker_may_lead_no_more() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    send(&mut producer, ALL, 60_000);
    until("it is appended", || ends(&bed) == (0, 1));
    bed.brokers[&1].server.lease_until(Duration::ZERO);
    assert_eq!(receive(&mut producer).0.error_code, ErrorCode::NotLeaderOrFollower.code());
}

#[test]
fn with_too_few_replicas_in_sync_acks_all_is_refused_and_nothing_is_committed() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1], 2));
    bed.mode(Mode::Refuses(ErrorCode::IneligibleReplica));
    let mut producer = bed.brokers[&1].client();
    assert_eq!(produce(&mut producer, ALL, 60_000), ErrorCode::NotEnoughReplicas);
    assert_eq!(ends(&bed), (0, 0), "not even appended");
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    Follower::of(&bed, 1, 2, id).fetch(1);
    assert_eq!(ends(&bed), (0, 1));
    bed.change("t", |partition| partition.isr = vec![1, 2]);
    assert_eq!(ends(&bed), (1, 1));
}

#[test]
fn records_that_too_few_have_by_the_time_of_the_answer_are_told_so_and_without_enough_nothing_is_committed() {
    let bed = Bed::start(&[1], &[1, 2]);
    let mut two = spec("t", &[1, 2], &[1, 2], 2);
    two.partitions.push(PartitionSpec { partition: 1, ..two.partitions[0].clone() });
    let id = bed.serve(two);
    bed.mode(Mode::Refuses(ErrorCode::IneligibleReplica));
    let mut producer = bed.brokers[&1].client();
    let mut request = ProduceRequest { timeout_ms: 60_000, ..produce_request("t", 0, batch(&["x"]), ALL) };
    request.topic_data[0]
        .partition_data
        .extend(produce_request("t", 1, batch(&["x"]), ALL).topic_data.remove(0).partition_data);
    producer.send(&request, 11, 1);
    until("it is appended", || ends(&bed).1 == 1);
    let mut follower = Follower::of(&bed, 1, 2, id);
    let mut both = follower.request(1, 3, 0);
    both.topics[0].partitions[0].partition = 1;
    crate::server::support::only(follower.client.call(&both, 17));
    // The second is committed, and then one of two replicas has left before the first is.
    bed.change_one("t", 1, |partition| partition.isr = vec![1]);
    bed.change("t", |partition| partition.isr = vec![1]);
    follower.fetch(1);
    assert_eq!(ends(&bed), (0, 1), "below the least number nothing is committed");
    bed.change("t", |partition| partition.isr = vec![1, 2]);
    let (_, answer) = producer.receive::<ProduceResponse>(11);
    let codes: Vec<_> =
        answer.responses[0].partition_responses.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::NotEnoughReplicasAfterAppend.code()]);
}

#[test]
fn a_throttled_follower_gets_no_more_than_the_rate_and_one_in_sync_all() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    bed.mode(Mode::Refuses(ErrorCode::IneligibleReplica));
    let mut throttled = spec("t", &[1, 2, 3], &[1, 2], 1);
    throttled.config.leader_replication_throttled_replicas = "0:1".into();
    let id = bed.serve(throttled);
    let mut producer = bed.brokers[&1].client();
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    bed.brokers[&1].server.set_throttles(0, i64::MAX);
    let (mut second, mut third) = (Follower::of(&bed, 1, 2, id), Follower::of(&bed, 1, 3, id));
    assert_eq!(values(&third.fetch(0)).len(), 1, "the rate is passed by one answer");
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    let nothing = third.fetch(1);
    assert_eq!((nothing.error_code, nothing.records.unwrap().len()), (0, 0));
    assert_eq!(values(&second.fetch(1)).len(), 1, "it is in sync");
    bed.brokers[&1].server.set_throttles(i64::MAX, i64::MAX);
    assert_eq!(values(&third.fetch(1)).len(), 1);
}

#[test]
fn a_waiting_producer_learns_who_leads_instead() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    send(&mut producer, ALL, 60_000);
    until("it is appended", || ends(&bed).1 == 1);
    bed.elect("t", 2);
    let (partition, answer) = receive(&mut producer);
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower.code());
    assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (2, 4));
    assert_eq!(
        answer.node_endpoints.iter().map(|node| (node.node_id, node.port)).collect::<Vec<_>>(),
        [(2, 1)]
    );
    send(&mut producer, 1, 60_000);
    let (partition, answer) = receive(&mut producer);
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower.code());
    assert_eq!((partition.current_leader.leader_id, answer.node_endpoints.len()), (2, 1));
}

#[test]
fn without_a_lease_nothing_is_written_committed_or_copied() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    // Told at once, however patient it is.
    send(&mut producer, ALL, 60_000);
    until("it is appended", || ends(&bed).1 == 1);
    bed.brokers[&1].server.lease_until(Duration::ZERO);
    let mut follower = Follower::of(&bed, 1, 2, id);
    assert_eq!(follower.fetch(1).error_code, ErrorCode::NotLeaderOrFollower.code());
    assert_eq!(receive(&mut producer).0.error_code, ErrorCode::NotLeaderOrFollower.code());
    assert_eq!(ends(&bed), (0, 1));
    assert_eq!(produce(&mut producer, 1, 200), ErrorCode::NotLeaderOrFollower);
    bed.announce(&[1, 2]);
    follower.fetch(1);
    assert_eq!(ends(&bed), (1, 1));
}

#[test]
fn a_follower_that_catches_up_joins_and_counts() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    let id = bed.serve(spec("t", &[1, 2, 3], &[1, 2], 1));
    let mut third = Follower::of(&bed, 1, 3, id);
    third.fetch(0);
    until("it is stored", || bed.isr("t") == [1, 2, 3]);
    assert_eq!(bed.control.asked.lock().unwrap()[0]["partitions"][0]["new_isr_epochs"][2], 103);
    assert_eq!(produce(&mut bed.brokers[&1].client(), ALL, 50), ErrorCode::RequestTimedOut);
    Follower::of(&bed, 1, 2, id).fetch(1);
    assert_eq!(ends(&bed), (0, 1), "the third does not have it");
    third.fetch(1);
    assert_eq!(ends(&bed), (1, 1));
}

#[test]
fn a_live_broker_that_becomes_a_replica_joins_when_it_has_caught_up() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    assert_eq!(produce(&mut bed.brokers[&1].client(), 1, 60_000), ErrorCode::None);
    bed.change("t", |partition| (partition.replicas, partition.adding) = (vec![1, 2, 3], vec![3]));
    Follower::of(&bed, 1, 3, id).fetch(1);
    until("it is stored", || bed.isr("t") == [1, 2, 3]);
}

#[test]
fn a_follower_that_does_not_fetch_leaves_and_holds_nothing_up() {
    let bed = Bed::with(&[1], &[1, 2], |settings| settings.replica_lag_time_max_ms = 100);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    assert_eq!(produce(&mut bed.brokers[&1].client(), ALL, 60_000), ErrorCode::None);
    assert_eq!(bed.isr("t"), [1]);
}

#[test]
fn a_proposal_whose_answer_was_lost_takes_effect() {
    let bed = Bed::with(&[1], &[1, 2], |settings| settings.replica_lag_time_max_ms = 100);
    bed.mode(Mode::Forgets);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    assert_eq!(produce(&mut bed.brokers[&1].client(), ALL, 60_000), ErrorCode::None);
    assert_eq!(bed.isr("t"), [1]);
}

#[test]
fn a_refused_proposal_changes_nothing_and_is_made_again() {
    let bed = Bed::with(&[1], &[1, 2], |settings| settings.replica_lag_time_max_ms = 100);
    bed.mode(Mode::Refuses(ErrorCode::IneligibleReplica));
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    send(&mut producer, ALL, 60_000);
    until("it is asked twice", || bed.control.asked.lock().unwrap().len() >= 2);
    assert_eq!((bed.isr("t"), ends(&bed)), (vec![1, 2], (0, 1)));
    bed.mode(Mode::Stores);
    assert_eq!(receive(&mut producer).0.error_code, 0);
}

#[test]
fn only_a_live_replica_of_the_right_epochs_is_one() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    assert_eq!(produce(&mut bed.brokers[&1].client(), 1, 60_000), ErrorCode::None);
    let follower = |id_of| Follower::of(&bed, 1, id_of, id);
    assert_eq!(follower(9).answer(1).error_code, ErrorCode::ClusterAuthorizationFailed.code(), "not alive");
    assert_eq!(follower(1).answer(1).error_code, ErrorCode::ClusterAuthorizationFailed.code(), "itself");
    let mut stale = Follower { epoch: 7, ..follower(2) };
    assert_eq!(stale.answer(1).error_code, ErrorCode::StaleBrokerEpoch.code());
    let cases = [
        (follower(3), ErrorCode::NotLeaderOrFollower, "no replica"),
        (Follower { leader_epoch: 2, ..follower(2) }, ErrorCode::FencedLeaderEpoch, "an old leader's"),
        (Follower { leader_epoch: 4, ..follower(2) }, ErrorCode::UnknownLeaderEpoch, "a next leader's"),
        (Follower { leader_epoch: -1, ..follower(2) }, ErrorCode::FencedLeaderEpoch, "no epoch"),
    ];
    for (mut follower, error, why) in cases {
        let answer = follower.answer(1);
        assert_eq!(answer.responses[0].partitions[0].error_code, error.code(), "{why}");
    }
    assert_eq!(follower(2).fetch(5).diverging_epoch.end_offset, 1, "records that the leader does not have");
    assert_eq!(follower(2).fetch_from(5, -1).error_code, ErrorCode::OffsetOutOfRange.code());
    assert_eq!(ends(&bed), (0, 1), "nobody of them counted");
    follower(2).fetch(1);
    assert_eq!(ends(&bed), (1, 1));
}

#[test]
fn a_follower_whose_log_departs_is_told_where_and_does_not_count() {
    let bed = Bed::start(&[1], &[1, 2]);
    let id = bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    bed.elect("t", 1);
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    let mut follower = Follower { leader_epoch: 4, ..Follower::of(&bed, 1, 2, id) };
    let request = follower.request(2, 3, 0);
    let partition = crate::server::support::only(follower.client.call(&request, 17));
    assert_eq!((partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset), (3, 1));
    assert_eq!(ends(&bed), (0, 2));
}

#[test]
fn a_topic_with_one_replica_asks_nobody() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1], &[1], 3));
    assert!(bed.partition(1, "t").leader_state.is_none());
    assert_eq!(produce(&mut bed.brokers[&1].client(), ALL, 60_000), ErrorCode::None);
    assert_eq!(ends(&bed), (1, 1));
}

#[test]
fn a_leader_that_cannot_write_says_so_when_another_replica_could_lead() {
    let bed = Bed::start(&[1], &[1, 2]);
    let mut two = spec("t", &[1, 2], &[1, 2], 1);
    // Each batch needs a file of its own, and soon there is no folder for it.
    two.config.segment_bytes = 100;
    bed.serve(two);
    let mut producer = bed.brokers[&1].client();
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    std::fs::remove_dir_all(bed.brokers[&1].dir.path().join("t-0")).unwrap();
    for _ in 0..3 {
        assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::KafkaStorageError);
    }
    let kept = &bed.brokers[&1].decisions.kept;
    until("it is reported", || !kept.lock().unwrap().is_empty());
    let question = kept.lock().unwrap().pop().unwrap();
    assert_eq!(question.kind, Kind::StorageFailed);
    assert!(question.json.contains("t-0"), "{}", question.json);
    question.reply.send("{}".into()).unwrap();
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::KafkaStorageError);
    assert!(kept.lock().unwrap().is_empty(), "once is enough");
    assert!(bed.brokers[&1].server.close(Duration::from_secs(5)).is_err(), "the stop says it, too");
}

#[test]
fn a_leader_whose_topic_is_deleted_has_not_failed() {
    let bed = Bed::start(&[1], &[1, 2]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    let mut producer = bed.brokers[&1].client();
    assert_eq!(produce(&mut producer, 1, 60_000), ErrorCode::None);
    bed.brokers[&1].server.remove_topic("t").unwrap();
    assert_eq!(bed.brokers[&1].server.shared().replication.failure.why(), None);
}
