//! What answers say about transactions that lie in a log.
use pylog_record::control::Marker;
use pylog_record::{BatchBuilder, Codec};
use pylog_server::cluster::spec::TopicSpec;
use pylog_storage::{AppendOptions, Clock, PartitionLog, SystemClock, TxnMarker};
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTopic;
use pylog_wire::messages::describe_producers::{PartitionResponse, TopicRequest};
use pylog_wire::messages::fetch::AbortedTransaction;
use pylog_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsTopic};
use pylog_wire::messages::{
    AddPartitionsToTxnRequest, DescribeProducersRequest, DescribeTransactionsRequest, FetchRequest,
    InitProducerIdRequest, ListOffsetsRequest, ProduceRequest,
};

use crate::server::support::{Broker, Client, fetch_request, only, produce_request, topic, values};

const READ_COMMITTED: i8 = 1;
const LATEST: i64 = -1;

fn now_ms() -> i64 {
    Clock::now_ms(&SystemClock)
}

fn write(log: &PartitionLog, producer_id: i64, values: &[&str]) {
    let mut builder = BatchBuilder::new();
    builder.set_producer(producer_id, 4, 0);
    builder.set_transactional(true);
    values.iter().for_each(|value| builder.append(now_ms(), None, Some(value.as_bytes()), &[]).unwrap());
    let verified = log.begin_verification(producer_id, 4, 0, true).unwrap();
    let how = AppendOptions { verified, ..AppendOptions::client(3) };
    log.append(&mut builder.finish(Codec::None).unwrap(), how).unwrap();
}

fn end(log: &PartitionLog, producer_id: i64, marker: Marker) {
    let end =
        TxnMarker { producer_id, producer_epoch: 5, marker, coordinator_epoch: 7, transaction_version: 2 };
    log.append_marker(end, AppendOptions::coordinator(3)).unwrap();
}

/// Offsets: 0-1 aborted, 2 committed, 3 and 4 the markers, 5 open, 6 plain.
fn broker_with_transactions() -> (Broker, Client) {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let log = broker.server.shared().logs.partition("numbers", 0).unwrap();
    write(&log, 1, &["no", "no"]);
    write(&log, 2, &["yes"]);
    end(&log, 1, Marker::Abort);
    end(&log, 2, Marker::Commit);
    write(&log, 3, &["maybe"]);
    let mut client = broker.client();
    client.produce("numbers", &["plain"]);
    (broker, client)
}

#[test]
fn a_committed_fetch_ends_at_the_last_stable_offset_and_names_the_aborted() {
    let (_broker, mut client) = broker_with_transactions();
    for version in [4, 11, 12] {
        let committed = FetchRequest { isolation_level: READ_COMMITTED, ..fetch_request("numbers", 0, 0, 1) };
        let seen = only(client.call(&committed, version));
        assert_eq!((seen.high_watermark, seen.last_stable_offset), (7, 5), "version {version}");
        let aborted = AbortedTransaction { producer_id: 1, first_offset: 0 };
        assert_eq!(seen.aborted_transactions, Some(vec![aborted]));
        assert_eq!(values(&seen).last().unwrap().0, 4, "the last marker");
        let all = only(client.call(&fetch_request("numbers", 0, 0, 1), version));
        assert_eq!((values(&all).last().unwrap().0, all.aborted_transactions), (6, None));
    }
    let behind = FetchRequest { isolation_level: READ_COMMITTED, ..fetch_request("numbers", 4, 0, 1) };
    assert_eq!(only(client.call(&behind, 12)).aborted_transactions, Some(Vec::new()));
}

#[test]
fn the_end_of_a_log_is_the_last_stable_offset_for_a_committed_reader() {
    let (_broker, mut client) = broker_with_transactions();
    for (isolation_level, end) in [(0, 7), (READ_COMMITTED, 5)] {
        let partitions = vec![ListOffsetsPartition { timestamp: LATEST, ..Default::default() }];
        let topics = vec![ListOffsetsTopic { name: "numbers".into(), partitions }];
        let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics, ..Default::default() };
        assert_eq!(client.call(&request, 7).topics[0].partitions[0].offset, end);
    }
}

fn producers(client: &mut Client, name: &str, partition: i32) -> PartitionResponse {
    let topics = vec![TopicRequest { name: name.into(), partition_indexes: vec![partition] }];
    client.call(&DescribeProducersRequest { topics }, 0).topics.remove(0).partitions.remove(0)
}

#[test]
fn producers_are_described_with_their_open_transactions() {
    let began_ms = now_ms();
    let (_broker, mut client) = broker_with_transactions();
    let seen = producers(&mut client, "numbers", 0);
    assert_eq!(seen.error_code, ErrorCode::None.code());
    let producers = seen.active_producers.iter().map(|producer| {
        assert!((began_ms..=now_ms()).contains(&producer.last_timestamp), "{producer:?}");
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.coordinator_epoch,
            producer.current_txn_start_offset,
        )
    });
    assert_eq!(producers.collect::<Vec<_>>(), [(1, 5, -1, 7, -1), (2, 5, -1, 7, -1), (3, 4, 0, -1, 5)]);
}

#[test]
fn producers_of_a_partition_that_is_not_there_are_an_error() {
    let (_broker, mut client) = broker_with_transactions();
    let cases = [
        ("numbers", 1, ErrorCode::UnknownTopicOrPartition),
        ("nobody", 0, ErrorCode::UnknownTopicOrPartition),
        ("no/body", 0, ErrorCode::InvalidTopicException),
    ];
    for (name, partition, expected) in cases {
        let seen = producers(&mut client, name, partition);
        assert_eq!(seen.error_code, expected.code(), "{name}");
        assert!(seen.error_message.is_some() && seen.active_producers.is_empty());
    }
}

#[test]
fn an_internal_topic_enters_no_transaction_of_a_client() {
    let broker = Broker::start();
    let internal = |name| TopicSpec { internal: true, ..topic(name, 1) };
    broker
        .server
        .apply_topics(vec![internal("__consumer_offsets"), internal("__transaction_state"), topic("t", 1)])
        .unwrap();
    let mut client = broker.client();
    let init = InitProducerIdRequest {
        transactional_id: Some("x".into()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let producer = loop {
        let answer = client.call(&init, 4);
        if answer.error_code == 0 {
            break answer;
        }
        assert_eq!(answer.error_code, ErrorCode::CoordinatorLoadInProgress.code());
    };
    let added = |name: &str| AddPartitionsToTxnTopic { name: name.into(), partitions: vec![0] };
    let add = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: "x".into(),
        v3_and_below_producer_id: producer.producer_id,
        v3_and_below_producer_epoch: producer.producer_epoch,
        v3_and_below_topics: vec![added("t"), added("__consumer_offsets"), added("__share_group_state")],
        ..Default::default()
    };
    let answer = client.call(&add, 3);
    let topics = answer.results_by_topic_v3_and_below.iter();
    let errors: Vec<_> = topics.map(|topic| topic.results_by_partition[0].partition_error_code).collect();
    let (refused, left) =
        (ErrorCode::TopicAuthorizationFailed.code(), ErrorCode::OperationNotAttempted.code());
    assert_eq!(errors, [left, refused, refused]);
    let mut builder = BatchBuilder::new();
    builder.set_producer(producer.producer_id, producer.producer_epoch, 0);
    builder.set_transactional(true);
    builder.append(now_ms(), Some(b"k"), Some(b"v"), &[]).unwrap();
    let batch = builder.finish(Codec::None).unwrap();
    let write = ProduceRequest {
        transactional_id: Some("x".into()),
        ..produce_request("__consumer_offsets", 0, batch, -1)
    };
    let answer = client.call(&write, 12);
    let error = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(error, ErrorCode::InvalidTopicException.code());
    let describe = DescribeTransactionsRequest { transactional_ids: vec!["x".into()] };
    let state = client.call(&describe, 0).transaction_states.remove(0);
    assert_eq!((state.transaction_state.as_str(), state.topics.len()), ("Empty", 0));
}
