//! Acknowledgements: after the sync with `durability=flushed`; once each for idempotent producers.
use std::time::Duration;

use pylog_record::{BatchBuilder, Codec};
use pylog_storage::{Durability, TimestampType};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceResponse;
use pylog_wire::messages::produce::PartitionProduceResponse;

use crate::server::support::{Broker, batch, fetch_request, only, produce_request, topic, values};

fn first(mut answer: ProduceResponse) -> PartitionProduceResponse {
    answer.responses.remove(0).partition_responses.remove(0)
}

fn flushed(name: &str) -> pylog_server::cluster::spec::TopicSpec {
    let mut spec = topic(name, 1);
    spec.config.durability = Durability::Flushed;
    spec
}

#[test]
fn pipelined_appends_of_a_flushed_topic_are_all_acknowledged_in_order() {
    let (broker, _) = Broker::serving(flushed("numbers"));
    let mut client = broker.client();
    for correlation_id in 0..100 {
        client.send(&produce_request("numbers", 0, batch(&["x"]), -1), 9, correlation_id);
    }
    for expected in 0..100 {
        let (correlation_id, answer) = client.receive(9);
        let answer = first(answer);
        assert_eq!((correlation_id, answer.error_code), (expected, 0));
        assert_eq!(answer.base_offset, i64::from(expected));
        let seen = broker.server.shared().topics.now();
        let log = seen.named("numbers").unwrap().partition(0).unwrap().log.as_ref().unwrap().offsets();
        assert!(log.high_watermark > answer.base_offset, "acknowledged is visible");
    }
}

#[test]
fn a_long_poll_on_a_flushed_topic_wakes_after_the_sync() {
    let (broker, _) = Broker::serving(flushed("numbers"));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, 60_000, 1), 12, 1);
    broker.wait_for("long_polls", 1);
    broker.client().produce("numbers", &["durable"]);
    assert_eq!(values(&only(waiting.receive(12).1)), [(0, "durable".into())]);
}

#[test]
fn a_stop_answers_appends_that_wait_for_their_sync() {
    let (broker, _) = Broker::serving(flushed("numbers"));
    let mut client = broker.client();
    for correlation_id in 0..20 {
        client.send(&produce_request("numbers", 0, batch(&["x"]), -1), 9, correlation_id);
    }
    broker.wait_for("records_in", 20);
    broker.server.close(Duration::from_secs(10)).unwrap();
    for _ in 0..20 {
        assert_eq!(first(client.receive(9).1).error_code, 0);
    }
}

#[test]
fn a_batch_sent_twice_is_there_once_and_a_gap_is_refused() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut send = |epoch: i16, sequence: i32, value: &str| {
        let mut builder = BatchBuilder::new();
        builder.set_producer(5, epoch, sequence);
        let now_ms = pylog_storage::Clock::now_ms(&pylog_storage::SystemClock);
        builder.append(now_ms, None, Some(value.as_bytes()), &[]).unwrap();
        let answer =
            first(client.call(&produce_request("numbers", 0, builder.finish(Codec::None).unwrap(), -1), 9));
        (answer.error_code, answer.base_offset)
    };
    assert_eq!(send(1, 0, "a"), (0, 0));
    assert_eq!(send(1, 1, "b"), (0, 1));
    assert_eq!(send(1, 0, "a"), (0, 0), "the offset of the first time");
    assert_eq!(send(1, 5, "gap"), (ErrorCode::OutOfOrderSequenceNumber.code(), -1));
    assert_eq!(send(0, 2, "old epoch"), (ErrorCode::InvalidProducerEpoch.code(), -1));
    let found = values(&broker.client().fetch("numbers", 0));
    assert_eq!(found, [(0, "a".into()), (1, "b".into())]);
}

#[test]
fn log_append_time_is_told_to_the_producer_and_timestamps_out_of_bounds_are_refused() {
    let mut spec = topic("numbers", 1);
    spec.config.message_timestamp_type = TimestampType::LogAppendTime;
    let (broker, _) = Broker::serving(spec);
    let answer = broker.client().produce("numbers", &["x"]);
    assert!(answer.log_append_time_ms > 0);
    let mut strict = topic("strict", 1);
    strict.config.message_timestamp_before_max_ms = 1000;
    broker.server.apply_topics(vec![strict]).unwrap();
    let mut builder = BatchBuilder::new();
    builder.append(1, None, Some(b"1970"), &[]).unwrap();
    let old = builder.finish(Codec::None).unwrap();
    let answer = first(broker.client().call(&produce_request("strict", 0, old, 1), 9));
    assert_eq!(answer.error_code, ErrorCode::InvalidTimestamp.code());
    assert_eq!(answer.log_append_time_ms, -1);
}
