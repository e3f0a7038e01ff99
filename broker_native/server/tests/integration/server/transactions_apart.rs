//! Transactions whose coordinator and partitions are on different brokers.
use std::time::{Duration, Instant};

use pylog_record::{BatchBuilder, Codec};
use pylog_storage::{Clock, SystemClock};
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTopic;
use pylog_wire::messages::txn_offset_commit::{TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic};
use pylog_wire::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, EndTxnResponse, FetchRequest, InitProducerIdRequest,
    ProduceRequest, TxnOffsetCommitRequest,
};
use pylog_wire::{ApiKey, ErrorCode};

use crate::server::cluster_bed::{Bed, led_by};
use crate::server::middle::Middle;
use crate::server::support::{TIMEOUT, fetch_request, only, produce_request, values};

/// Its hash is 97: partition 1 of three, which broker 1 leads.
const ID: &str = "a";
/// The version of Produce from which on a batch adds its partition.
const ADDS: i16 = 12;
/// The last version whose producers add partitions themselves.
const VERIFIED: i16 = 11;

struct Producer {
    id: i64,
    epoch: i16,
}

/// Three brokers; 1 keeps transactions, 2 leads `x`, 3 leads `y`.
fn cluster() -> Bed {
    let bed = Bed::all(3);
    for spec in [led_by("__transaction_state", &[2, 1, 3]), led_by("x", &[2]), led_by("y", &[3])] {
        bed.serve(spec.clone());
    }
    bed
}

/// Asks until the coordinator can answer.
fn init(bed: &Bed) -> Producer {
    let request = InitProducerIdRequest {
        transactional_id: Some(ID.into()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = bed.broker(1).client().call(&request, 5);
        if answer.error_code == 0 {
            return Producer { id: answer.producer_id, epoch: answer.producer_epoch };
        }
        assert_eq!(answer.error_code, ErrorCode::CoordinatorLoadInProgress.code());
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

fn produce(bed: &Bed, leader: i32, topic: &str, producer: &Producer, version: i16) -> i16 {
    let mut answer = bed.broker(leader).client().call(&transactional(topic, producer), version);
    answer.responses.remove(0).partition_responses.remove(0).error_code
}

/// One record in partition 0.
fn transactional(topic: &str, producer: &Producer) -> ProduceRequest {
    let mut builder = BatchBuilder::new();
    builder.set_producer(producer.id, producer.epoch, 0);
    builder.set_transactional(true);
    builder.append(Clock::now_ms(&SystemClock), None, Some(b"row"), &[]).unwrap();
    let mut request = produce_request(topic, 0, builder.finish(Codec::None).unwrap(), -1);
    request.transactional_id = Some(ID.into());
    request
}

fn end(bed: &Bed, producer: &Producer, version: i16) -> EndTxnResponse {
    let request = EndTxnRequest {
        transactional_id: ID.into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed: true,
    };
    bed.broker(1).client().call(&request, version)
}

/// What a committed reader sees, and the last stable offset.
fn committed(bed: &Bed, leader: i32, topic: &str) -> (usize, i64) {
    let request = FetchRequest { isolation_level: 1, ..fetch_request(topic, 0, 0, 1) };
    let seen = only(bed.broker(leader).client().call(&request, 12));
    (values(&seen).len(), seen.last_stable_offset)
}

fn wait_for(mut what: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !what() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_batch_adds_its_partition_at_the_coordinators_broker_and_markers_come_from_there() {
    let bed = cluster();
    let producer = init(&bed);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), 0);
    assert_eq!(produce(&bed, 3, "y", &producer, ADDS), 0);
    assert_eq!(committed(&bed, 2, "x"), (0, 0));
    let ended = end(&bed, &producer, 5);
    assert_eq!((ended.error_code, ended.producer_epoch), (0, producer.epoch + 1));
    for (leader, topic) in [(2, "x"), (3, "y")] {
        // The record and the marker.
        wait_for(|| committed(&bed, leader, topic) == (2, 2));
    }
}

#[test]
fn a_batch_of_an_older_producer_is_verified_at_the_coordinators_broker() {
    let bed = cluster();
    let producer = init(&bed);
    let refused = produce(&bed, 2, "x", &producer, VERIFIED);
    assert_eq!(refused, ErrorCode::TransactionAbortable.code(), "it was not added");
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: ID.into(),
        v3_and_below_producer_id: producer.id,
        v3_and_below_producer_epoch: producer.epoch,
        v3_and_below_topics: vec![AddPartitionsToTxnTopic { name: "x".into(), partitions: vec![0] }],
        ..Default::default()
    };
    let added = bed.broker(1).client().call(&request, 3);
    assert_eq!(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, 0);
    assert_eq!(produce(&bed, 2, "x", &producer, VERIFIED), 0);
    assert_eq!(end(&bed, &producer, 4).error_code, 0);
    wait_for(|| committed(&bed, 2, "x") == (2, 2));
}

#[test]
fn brokers_of_an_older_version_are_asked_and_told_in_what_both_speak() {
    let bed = cluster();
    let coordinator = Middle::before(bed.broker(1).port, &[(ApiKey::AddPartitionsToTxn, 4)]);
    let leader = Middle::before(bed.broker(2).port, &[(ApiKey::WriteTxnMarkers, 1)]);
    bed.reach(1, coordinator.port);
    bed.reach(2, leader.port);
    bed.announce(&[1, 2, 3]);
    let producer = init(&bed);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), 0);
    assert_eq!(end(&bed, &producer, 5).error_code, 0);
    wait_for(|| committed(&bed, 2, "x") == (2, 2));
    assert_eq!(coordinator.asked(ApiKey::AddPartitionsToTxn), [4]);
    assert_eq!(leader.asked(ApiKey::WriteTxnMarkers), [1]);
}

/// The cluster with go-betweens before brokers 1, who keeps transactions, and `leader`.
fn with_go_betweens(leader: i32) -> (Bed, Middle, Middle) {
    let bed = cluster();
    let before = |id: i32| {
        let middle = Middle::before(bed.broker(id).port, &[]);
        bed.reach(id, middle.port);
        middle
    };
    let (coordinator, leader) = (before(1), before(leader));
    bed.announce(&[1, 2, 3]);
    (bed, coordinator, leader)
}

#[test]
fn a_batch_of_the_next_transaction_that_meets_the_marker_of_the_last_one_is_verified_anew() {
    let (bed, coordinator, leader) = with_go_betweens(2);
    let producer = init(&bed);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), 0);
    leader.hold(ApiKey::WriteTxnMarkers);
    let ended = end(&bed, &producer, 5);
    let next = Producer { id: ended.producer_id, epoch: ended.producer_epoch };
    std::thread::scope(|scope| {
        let next_batch = scope.spawn(|| produce(&bed, 2, "x", &next, ADDS));
        wait_for(|| coordinator.count(ApiKey::AddPartitionsToTxn) == 2);
        leader.release();
        assert_eq!(next_batch.join().unwrap(), 0);
    });
    assert!(coordinator.count(ApiKey::AddPartitionsToTxn) > 2, "the marker ended the first verification");
    assert_eq!(end(&bed, &next, 5).error_code, 0);
    wait_for(|| committed(&bed, 2, "x") == (4, 4));
}

#[test]
fn a_partition_that_moves_while_the_coordinator_is_asked_is_refused_as_moved_and_the_other_is_written() {
    let (bed, coordinator, _leader) = with_go_betweens(2);
    bed.serve(led_by("both", &[2, 2]));
    let producer = init(&bed);
    let mut request = transactional("both", &producer);
    let mut second = request.topic_data[0].partition_data[0].clone();
    second.index = 1;
    request.topic_data[0].partition_data.push(second);
    coordinator.hold(ApiKey::AddPartitionsToTxn);
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| bed.broker(2).client().call(&request, ADDS));
        wait_for(|| coordinator.count(ApiKey::AddPartitionsToTxn) == 1);
        bed.change_one("both", 1, |partition| {
            partition.leader = 3;
            partition.leader_epoch += 1;
            partition.replicas = vec![3];
            partition.isr = vec![3];
        });
        coordinator.release();
        answer.join().unwrap()
    });
    let codes: Vec<i16> =
        answer.responses[0].partition_responses.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::NotLeaderOrFollower.code()]);
}

#[test]
fn without_a_coordinator_that_answers_a_producer_is_told_to_try_again() {
    let bed = cluster();
    let producer = init(&bed);
    bed.announce_with_controller(&[2, 3], 2);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), ErrorCode::NotEnoughReplicas.code());
    bed.announce(&[1, 2, 3]);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), 0);
}

#[test]
fn a_marker_reaches_a_leader_that_was_away_when_the_transaction_ended() {
    let bed = cluster();
    let producer = init(&bed);
    assert_eq!(produce(&bed, 2, "x", &producer, ADDS), 0);
    assert_eq!(produce(&bed, 3, "y", &producer, ADDS), 0);
    bed.announce(&[1, 2]);
    assert_eq!(end(&bed, &producer, 5).error_code, 0);
    wait_for(|| committed(&bed, 2, "x") == (2, 2));
    assert_eq!(committed(&bed, 3, "y"), (0, 0), "nobody sends it to the broker");
    bed.announce(&[1, 2, 3]);
    wait_for(|| committed(&bed, 3, "y") == (2, 2));
}

/// Offset 7 of `x`, for group `g`.
fn offset(producer: &Producer) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitRequestPartition { committed_offset: 7, ..Default::default() };
    TxnOffsetCommitRequest {
        transactional_id: ID.into(),
        group_id: "g".into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        generation_id: -1,
        topics: vec![TxnOffsetCommitRequestTopic {
            name: "x".into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn offsets_of_the_next_transaction_that_meet_the_marker_of_the_last_one_are_verified_anew() {
    let (bed, coordinator, leader) = with_go_betweens(3);
    bed.serve(led_by("__consumer_offsets", &[3]));
    let producer = init(&bed);
    let commit = |producer: &Producer| {
        let answer = bed.broker(3).client().call(&offset(producer), 5);
        answer.topics[0].partitions[0].error_code
    };
    assert_eq!(commit(&producer), 0);
    leader.hold(ApiKey::WriteTxnMarkers);
    let ended = end(&bed, &producer, 5);
    let next = Producer { id: ended.producer_id, epoch: ended.producer_epoch };
    std::thread::scope(|scope| {
        let late = scope.spawn(|| commit(&next));
        wait_for(|| coordinator.count(ApiKey::AddPartitionsToTxn) == 2);
        leader.release();
        assert_eq!(late.join().unwrap(), 0);
    });
    assert!(coordinator.count(ApiKey::AddPartitionsToTxn) > 2, "the marker ended the first verification");
    assert_eq!(end(&bed, &next, 5).error_code, 0);
}

#[test]
fn offsets_are_committed_in_a_transaction_whose_coordinator_is_elsewhere() {
    let bed = cluster();
    bed.serve(led_by("__consumer_offsets", &[3]));
    let producer = init(&bed);
    let answer = bed.broker(3).client().call(&offset(&producer), 5);
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    assert_eq!(end(&bed, &producer, 5).error_code, 0);
    let log = bed.broker(3).server.shared().logs.partition("__consumer_offsets", 0).unwrap();
    wait_for(|| log.open_transaction(producer.id).is_none());
    assert_eq!(log.offsets().log_end_offset, 2, "the offset and the marker");
}
