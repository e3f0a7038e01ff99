//! ListOffsets, DeleteRecords, OffsetForLeaderEpoch, DescribeCluster.
use pylog_record::{BatchBuilder, Codec};
use pylog_storage::{Clock, SystemClock};
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsTopic};
use pylog_wire::messages::list_offsets::{
    EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, ListOffsetsPartition, ListOffsetsPartitionResponse,
    ListOffsetsTopic, MAX_TIMESTAMP,
};
use pylog_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use pylog_wire::messages::{
    DeleteRecordsRequest, DescribeClusterRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest,
};

use crate::server::support::{Broker, Client, produce_request, topic, values};

fn at(client: &mut Client, timestamp: i64, version: i16) -> ListOffsetsPartitionResponse {
    let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: "numbers".into(), partitions }];
    let mut answer =
        client.call(&ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }, version);
    answer.topics.remove(0).partitions.remove(0)
}

/// One batch with these timestamps.
fn produce_at(client: &mut Client, timestamps_ms: &[i64]) {
    let mut builder = BatchBuilder::new();
    for &timestamp_ms in timestamps_ms {
        builder.append(timestamp_ms, None, Some(b"x"), &[]).unwrap();
    }
    let batch = builder.finish(Codec::None).unwrap();
    let answer = client.call(&produce_request("numbers", 0, batch, 1), 9);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn offsets_are_found_by_end_and_by_time_in_every_version() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let t = SystemClock.now_ms() - 10_000;
    produce_at(&mut client, &[t, t + 50, t + 20]);
    produce_at(&mut client, &[t + 30]);
    let cases = [
        (LATEST, 1, 4, -1),
        (EARLIEST, 1, 0, -1),
        (MAX_TIMESTAMP, 7, 1, t + 50),
        (EARLIEST_LOCAL, 8, 0, -1),
        (LATEST_TIERED, 9, -1, -1),
        (t, 1, 0, t),
        (t + 1, 1, 1, t + 50),
        (t + 51, 1, -1, -1),
    ];
    for (timestamp, from, offset, found) in cases {
        for version in from..=11 {
            let answer = at(&mut client, timestamp, version);
            let seen = (answer.error_code, answer.offset, answer.timestamp);
            assert_eq!(seen, (0, offset, found), "timestamp {timestamp} in version {version}");
        }
    }
}

#[test]
fn an_empty_log_has_ends_but_no_time() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    assert_eq!(at(&mut client, LATEST, 7).offset, 0);
    assert_eq!(at(&mut client, EARLIEST, 7).offset, 0);
    assert_eq!(at(&mut client, MAX_TIMESTAMP, 7).offset, -1);
    assert_eq!(at(&mut client, 0, 7).offset, -1);
}

#[test]
fn deleted_records_are_gone_for_readers_and_the_low_watermark_is_told() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    for value in ["a", "b", "c"] {
        client.produce("numbers", &[value]);
    }
    let before = |offset| {
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset }];
        let topics = vec![DeleteRecordsTopic { name: "numbers".into(), partitions }];
        DeleteRecordsRequest { topics, timeout_ms: 1000 }
    };
    for (version, offset, error, low) in
        [(0, 2, 0, 2), (1, 9, ErrorCode::OffsetOutOfRange.code(), -1), (2, 1, 0, 2), (2, -1, 0, 3)]
    {
        let answer = client.call(&before(offset), version);
        let partition = &answer.topics[0].partitions[0];
        assert_eq!((partition.error_code, partition.low_watermark), (error, low), "before {offset}");
        if low == 2 {
            assert_eq!(values(&client.fetch("numbers", 2)), [(2, "c".into())]);
        }
    }
    assert_eq!(client.fetch("numbers", 0).error_code, ErrorCode::OffsetOutOfRange.code());
    assert_eq!(at(&mut client, EARLIEST, 7).offset, 3);
}

#[test]
fn the_end_of_a_leader_epoch_is_told_and_an_unknown_one_is_fenced() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.produce("numbers", &["a", "b"]);
    let mut ask = |current_leader_epoch, leader_epoch| -> EpochEndOffset {
        let partitions = vec![OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch }];
        let topics = vec![OffsetForLeaderTopic { topic: "numbers".into(), partitions }];
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics };
        client.call(&request, 4).topics.remove(0).partitions.remove(0)
    };
    let known = ask(3, 3);
    assert_eq!((known.error_code, known.leader_epoch, known.end_offset), (0, 3, 2));
    assert_eq!(ask(2, 3).error_code, ErrorCode::FencedLeaderEpoch.code());
    assert_eq!(ask(4, 3).error_code, ErrorCode::UnknownLeaderEpoch.code());
}

#[test]
fn the_cluster_is_this_broker() {
    let broker = Broker::start();
    for version in 0..=2 {
        let answer = broker.client().call(&DescribeClusterRequest::default(), version);
        assert_eq!((answer.error_code, answer.controller_id, answer.brokers.len()), (0, 1, 1));
        assert_eq!(answer.brokers[0].port, i32::from(broker.port));
    }
    let controllers = DescribeClusterRequest { endpoint_type: 2, ..Default::default() };
    let answer = broker.client().call(&controllers, 2);
    assert_eq!(answer.error_code, ErrorCode::MismatchedEndpointType.code());
}
