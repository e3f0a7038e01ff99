//! What is produced is fetched; what may not be appended is refused with Kafka's code.
use pylog_record::{BatchBuilder, Codec};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{FetchRequest, ProduceRequest, ProduceResponse};

use crate::server::support::{Broker, batch, fetch_request, only, produce_request, topic, values};

fn error_of(answer: ProduceResponse) -> ErrorCode {
    ErrorCode::from_code(answer.responses[0].partition_responses[0].error_code).unwrap()
}

#[test]
fn what_is_produced_is_fetched_in_every_version_with_its_offsets() {
    let (broker, id) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut expected = Vec::new();
    for (offset, version) in (3..=13).enumerate() {
        let value = format!("sent in version {version}");
        let mut request = produce_request("numbers", 0, batch(&[&value]), -1);
        request.topic_data[0].topic_id = id;
        let answer = client.call(&request, version);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, offset as i64);
        expected.push((offset as i64, value));
    }
    for version in 4..=18 {
        let mut request = fetch_request("numbers", 0, 0, 1);
        request.topics[0].topic_id = id;
        let fetched = only(client.call(&request, version));
        assert_eq!(fetched.high_watermark, 11, "version {version}");
        assert_eq!(values(&fetched), expected, "version {version}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order_even_when_an_early_one_waits() {
    let (broker, _) = Broker::serving(topic("numbers", 2));
    let mut client = broker.client();
    // The first waits for data in partition 0, which only the last one brings.
    client.send(&fetch_request("numbers", 0, 9_000, 1), 12, 1);
    for correlation_id in 2..40 {
        client.send(&produce_request("numbers", 1, batch(&["x"]), 1), 9, correlation_id);
    }
    client.send(&produce_request("numbers", 0, batch(&["wakes it"]), 1), 9, 40);
    let (first, fetched) = client.receive(12);
    assert_eq!(first, 1);
    assert_eq!(values(&only(fetched)), [(0, "wakes it".into())]);
    for expected in 2..=40 {
        let (correlation_id, answer) = client.receive::<ProduceResponse>(9);
        assert_eq!(correlation_id, expected);
        assert_eq!(error_of(answer), ErrorCode::None);
    }
}

#[test]
fn acks_0_sends_nothing_and_the_records_are_there() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.send(&produce_request("numbers", 0, batch(&["silent"]), 0), 9, 1);
    let fetched = client.fetch("numbers", 0);
    assert_eq!(values(&fetched), [(0, "silent".into())]);
}

#[test]
fn acks_0_with_an_error_closes_the_connection() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.send(&produce_request("nobody", 0, batch(&["lost"]), 0), 9, 1);
    assert_eq!(client.frame(), None);
}

#[test]
fn a_refused_batch_says_why_and_appends_nothing() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut flipped = batch(&["a value"]);
    *flipped.last_mut().unwrap() ^= 1;
    let too_large = batch(&["x".repeat(1_100_000).as_str()]);
    let mut transactional = BatchBuilder::new();
    transactional.set_producer(7, 0, 0);
    transactional.set_transactional(true);
    transactional.append(0, None, Some(b"x"), &[]).unwrap();
    let transactional = transactional.finish(Codec::None).unwrap();
    let mut twice = batch(&["one"]);
    twice.extend(batch(&["two"]));
    let cases = [
        (produce_request("numbers", 0, flipped, 1), ErrorCode::CorruptMessage),
        (produce_request("numbers", 0, too_large, 1), ErrorCode::MessageTooLarge),
        (produce_request("numbers", 0, transactional, 1), ErrorCode::TransactionalIdAuthorizationFailed),
        (produce_request("numbers", 0, twice, 1), ErrorCode::InvalidRecord),
        (produce_request("numbers", 0, Vec::new(), 1), ErrorCode::InvalidRecord),
        (produce_request("numbers", 1, batch(&["x"]), 1), ErrorCode::UnknownTopicOrPartition),
        (produce_request("nobody", 0, batch(&["x"]), 1), ErrorCode::UnknownTopicOrPartition),
        (produce_request("numbers", 0, batch(&["x"]), 2), ErrorCode::InvalidRequiredAcks),
    ];
    for (request, expected) in cases {
        let answer: ProduceResponse = client.call(&request, 9);
        assert!(answer.responses[0].partition_responses[0].error_message.is_some(), "{expected}");
        assert_eq!(error_of(answer), expected);
    }
    assert_eq!(client.fetch("numbers", 0).high_watermark, 0);
}

#[test]
fn one_partitions_error_does_not_touch_the_others_of_a_request() {
    let (broker, _) = Broker::serving(topic("numbers", 2));
    let mut client = broker.client();
    let mut request: ProduceRequest = produce_request("numbers", 0, batch(&["good"]), 1);
    for (index, bytes) in [(9, batch(&["nowhere"])), (1, batch(&["good", "too"]))] {
        let more = produce_request("numbers", index, bytes, 1).topic_data.remove(0).partition_data.remove(0);
        request.topic_data[0].partition_data.push(more);
    }
    let answer = client.call(&request, 9);
    let codes: Vec<_> =
        answer.responses[0].partition_responses.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::UnknownTopicOrPartition.code(), 0]);
    assert_eq!(values(&client.fetch("numbers", 0)), [(0, "good".into())]);
}

#[test]
fn zstd_needs_produce_version_7() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut builder = BatchBuilder::new();
    builder.append(0, None, Some(b"x"), &[]).unwrap();
    let zstd = builder.finish(Codec::Zstd).unwrap();
    for (version, expected) in [(6, ErrorCode::UnsupportedCompressionType), (7, ErrorCode::None)] {
        let answer = client.call(&produce_request("numbers", 0, zstd.clone(), 1), version);
        assert_eq!(error_of(answer), expected, "version {version}");
    }
}

#[test]
fn an_unknown_topic_id_is_told_apart_from_an_unknown_name() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let produced = client.call(&produce_request("", 0, batch(&["x"]), 1), 13);
    assert_eq!(error_of(produced), ErrorCode::UnknownTopicId);
    let fetched = only(client.call(&fetch_request("", 0, 0, 1), 13));
    assert_eq!(fetched.error_code, ErrorCode::UnknownTopicId.code());
}

#[test]
fn the_first_batch_comes_whole_even_when_it_is_larger_than_every_limit() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let value = "x".repeat(500_000);
    client.produce("numbers", &[&value]);
    client.produce("numbers", &["second"]);
    let mut request = fetch_request("numbers", 0, 0, 1);
    request.max_bytes = 10;
    request.topics[0].partitions[0].partition_max_bytes = 10;
    assert_eq!(values(&only(client.call(&request, 12))), [(0, value)]);
}

#[test]
fn a_fetch_outside_the_log_or_from_another_epoch_is_told_so() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.produce("numbers", &["only"]);
    let cases = [
        (2, -1, ErrorCode::OffsetOutOfRange),
        (-5, -1, ErrorCode::OffsetOutOfRange),
        (0, 2, ErrorCode::FencedLeaderEpoch),
        (0, 4, ErrorCode::UnknownLeaderEpoch),
        (0, 3, ErrorCode::None),
        (1, 3, ErrorCode::None),
    ];
    for (offset, epoch, expected) in cases {
        let mut request = fetch_request("numbers", offset, 0, 1);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let fetched = only(client.call(&request, 12));
        assert_eq!(fetched.error_code, expected.code(), "offset {offset}, epoch {epoch}");
    }
}

#[test]
fn a_client_that_poses_as_a_follower_is_refused() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.produce("numbers", &["only"]);
    let refused = |answer: pylog_wire::messages::FetchResponse| {
        assert_eq!(answer.error_code, ErrorCode::ClusterAuthorizationFailed.code());
        assert_eq!(
            answer.responses[0].partitions[0].error_code,
            ErrorCode::ClusterAuthorizationFailed.code()
        );
    };
    refused(client.call(&FetchRequest { replica_id: 0, ..fetch_request("numbers", 0, 0, 1) }, 12));
    let mut young = fetch_request("numbers", 0, 0, 1);
    young.replica_state.replica_id = 2;
    refused(client.call(&young, 16));
}

#[test]
fn the_first_record_of_a_partition_has_offset_0() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    assert_eq!(broker.client().produce("numbers", &["first"]).base_offset, 0);
}

#[test]
fn large_runs_arrive_byte_for_byte() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let sent: Vec<_> = (0..40).map(|n| format!("{n}").repeat(20_000)).collect();
    for value in &sent {
        client.produce("numbers", &[value]);
    }
    let mut request = fetch_request("numbers", 0, 0, 1);
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let found: Vec<_> =
        values(&only(client.call(&request, 12))).into_iter().map(|(_, value)| value).collect();
    assert_eq!(found, sent);
}
