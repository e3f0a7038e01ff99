//! A broker that follows another one over sockets that fail, a leader that restarts, a leader of another version.
use std::time::Instant;

use pylog_server::settings::Settings;
use pylog_wire::messages::offset_for_leader_epoch::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use pylog_wire::messages::{FetchRequest, OffsetForLeaderEpochRequest};
use pylog_wire::{ApiKey, ErrorCode, Message};

use crate::server::cluster_bed::{Bed, spec, until};
use crate::server::middle::{FAULTS, Fault, Middle};
use crate::server::support::{TIMEOUT, batch, produce_request};

fn quickly(settings: &mut Settings) {
    settings.replica_fetch_wait_max_ms = 20;
    settings.replica_fetch_backoff_ms = 20;
    settings.replica_socket_timeout_ms = 2_000;
}

/// Broker 2 follows broker 1 through the go-between.
fn followed_through(middle: impl Fn(u16) -> Middle) -> (Bed, Middle) {
    let bed = Bed::with(&[1, 2], &[1], quickly);
    let middle = middle(bed.broker(1).port);
    bed.reach(1, middle.port);
    bed.announce(&[1, 2]);
    (bed, middle)
}

fn produce(bed: &Bed, value: &str) {
    let request = produce_request("t", 0, batch(&[&value.repeat(200)]), 1);
    let answer = bed.broker(1).client().call(&request, 11);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

fn end(bed: &Bed, id: i32) -> i64 {
    bed.partition(id, "t").log.as_ref().unwrap().offsets().log_end_offset
}

/// Waits until the follower is where the leader is, and compares their files.
fn await_the_same_bytes(bed: &Bed) {
    until("the follower has all", || end(bed, 2) == end(bed, 1));
    let (leaders, followers) = (bed.broker(1).log_bytes("t"), bed.broker(2).log_bytes("t"));
    assert!(leaders == followers, "{} bytes, of the leader {}", followers.len(), leaders.len());
    until("it is in sync", || bed.isr("t") == [1, 2]);
    // It counts as followed again a moment after its bytes are there.
    until("no partition counts as failed", || {
        bed.broker(2).server.replicas().snapshot()["follower_failed_partitions"] == 0
    });
}

#[test]
fn whatever_becomes_of_answers_the_follower_goes_on_and_ends_with_the_leaders_bytes() {
    let (bed, middle) = followed_through(|port| Middle::before(port, &[]));
    bed.serve(spec("t", &[1, 2], &[1], 1));
    produce(&bed, "first");
    await_the_same_bytes(&bed);
    for fault in FAULTS.iter().chain(&FAULTS).chain(&[Fault::Cut, Fault::Cut, Fault::Half]) {
        let (before, deadline) = (end(&bed, 1), Instant::now() + TIMEOUT);
        middle.plan(*fault);
        while !middle.is_done() {
            produce(&bed, &format!("{fault:?}"));
            assert!(Instant::now() < deadline, "{fault:?} did not happen");
        }
        assert!(end(&bed, 1) >= before);
        await_the_same_bytes(&bed);
    }
    assert!(
        middle.fetch_errors().contains(&ErrorCode::InvalidFetchSessionEpoch.code()),
        "{:?}",
        middle.fetch_errors()
    );
}

#[test]
fn a_leader_that_restarted_and_knows_no_session_is_followed_on() {
    let (mut bed, middle) = followed_through(|port| Middle::before(port, &[]));
    bed.serve(spec("t", &[1, 2], &[1], 1));
    produce(&bed, "before");
    await_the_same_bytes(&bed);
    bed.restart(1, &[1, 2]);
    middle.moved(bed.broker(1).port);
    produce(&bed, "after");
    await_the_same_bytes(&bed);
    assert!(
        middle.fetch_errors().contains(&ErrorCode::FetchSessionIdNotFound.code()),
        "{:?}",
        middle.fetch_errors()
    );
}

#[test]
fn a_leader_of_an_older_or_newer_version_is_asked_in_what_both_speak() {
    let ours = FetchRequest::API.max;
    for (newest, asked) in [(15, 15), (16, 16), (ours + 9, ours)] {
        let (bed, middle) = followed_through(|port| {
            Middle::before(port, &[(ApiKey::Fetch, newest), (ApiKey::OffsetForLeaderEpoch, 3)])
        });
        bed.serve(spec("t", &[1, 2], &[1], 1));
        produce(&bed, "x");
        await_the_same_bytes(&bed);
        assert_eq!(middle.asked(ApiKey::Fetch), [asked]);
    }
}

#[test]
fn a_follower_behind_the_leaders_log_asks_as_a_replica_where_it_begins_and_starts_there() {
    let bed = Bed::with(&[1, 2], &[1], quickly);
    let middle = Middle::before(bed.broker(1).port, &[(ApiKey::OffsetForLeaderEpoch, 3)]);
    bed.reach(1, middle.port);
    bed.serve(spec("t", &[1, 2], &[1], 1));
    for _ in 0..5 {
        produce(&bed, "x");
    }
    bed.partition(1, "t").log.as_ref().unwrap().delete_records_before(3).unwrap();
    bed.announce(&[1, 2]);
    until("the follower has all", || end(&bed, 2) == 5);
    assert_eq!(bed.partition(2, "t").log.as_ref().unwrap().offsets().log_start_offset, 3);
    assert_eq!(middle.asked(ApiKey::OffsetForLeaderEpoch), [3], "in the version that both speak");
    until("it is in sync", || bed.isr("t") == [1, 2]);
}

#[test]
fn where_an_epoch_ends_is_told_to_replicas_and_fenced() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    bed.serve(spec("t", &[1, 2], &[1, 2], 1));
    produce(&bed, "x");
    bed.elect("t", 1);
    produce(&bed, "x");
    let ask = |replica_id, current_leader_epoch, leader_epoch| {
        let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch };
        let topic = OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id, topics: vec![topic] };
        let mut answer = bed.broker(1).client().call(&request, 4);
        let epoch_end = answer.topics.remove(0).partitions.remove(0);
        (ErrorCode::from_code(epoch_end.error_code).unwrap(), epoch_end.leader_epoch, epoch_end.end_offset)
    };
    assert_eq!(ask(2, 4, 3), (ErrorCode::None, 3, 1));
    assert_eq!(ask(2, 4, 4), (ErrorCode::None, 4, 2), "all there is, committed or not");
    assert_eq!(ask(2, 3, 3).0, ErrorCode::FencedLeaderEpoch);
    assert_eq!(ask(2, 5, 4).0, ErrorCode::UnknownLeaderEpoch);
    assert_eq!(ask(3, 4, 3).0, ErrorCode::ClusterAuthorizationFailed, "alive, and no replica");
    assert_eq!(ask(9, 4, 3).0, ErrorCode::ClusterAuthorizationFailed, "nobody");
    bed.elect("t", 2);
    assert_eq!(ask(2, 5, 4).0, ErrorCode::NotLeaderOrFollower);
}
