//! A fetch without data waits, and wakes when data arrives.
use std::time::{Duration, Instant};

use pylog_server::settings::Settings;
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchResponse;

use crate::server::support::{Broker, fetch_request, only, topic, values};

/// Longer than any test may take; a long poll that is not woken fails by the clients' timeout.
const FOREVER_MS: i32 = 60_000;

#[test]
fn a_long_poll_wakes_when_data_arrives() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, FOREVER_MS, 1), 12, 1);
    broker.wait_for("long_polls", 1);
    broker.client().produce("numbers", &["news"]);
    let (_, answer) = waiting.receive(12);
    assert_eq!(values(&only(answer)), [(0, "news".into())]);
}

#[test]
fn a_long_poll_waits_for_min_bytes() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, FOREVER_MS, 250), 12, 1);
    broker.wait_for("long_polls", 1);
    let mut producer = broker.client();
    for _ in 0..4 {
        producer.produce("numbers", &["about 75 bytes"]);
    }
    let (_, answer) = waiting.receive(12);
    let fetched = only(answer);
    assert!(fetched.records.as_ref().unwrap().len() >= 250);
    assert!(values(&fetched).len() > 1);
}

#[test]
fn a_long_poll_without_data_ends_after_max_wait() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let began = Instant::now();
    let fetched = only(broker.client().call(&fetch_request("numbers", 0, 50, 1), 12));
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert_eq!(values(&fetched), []);
}

#[test]
fn a_long_poll_ends_when_its_topic_is_removed() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, FOREVER_MS, 1), 12, 1);
    broker.wait_for("long_polls", 1);
    broker.server.remove_topic("numbers").unwrap();
    let (_, answer) = waiting.receive::<FetchResponse>(12);
    assert_eq!(only(answer).error_code, ErrorCode::UnknownTopicOrPartition.code());
}

#[test]
fn a_fetch_that_finds_no_room_to_wait_is_answered_at_once_and_asked_to_wait_by_itself() {
    // One address has half of it.
    let broker = Broker::with(Settings { fetch_wait_max_partitions: 2, ..Default::default() });
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let (mut waiting, mut other) = (broker.client(), broker.client());
    waiting.send(&fetch_request("numbers", 0, FOREVER_MS, 1), 12, 1);
    broker.wait_for("long_polls", 1);
    let answer: FetchResponse = other.call(&fetch_request("numbers", 0, FOREVER_MS, 1), 12);
    assert_eq!((answer.throttle_time_ms, values(&only(answer))), (1_000, Vec::new()));
    broker.client().produce("numbers", &["news"]);
    let (_, answer) = waiting.receive(12);
    assert_eq!(values(&only(answer)), [(0, "news".into())]);
    other.send(&fetch_request("numbers", 1, FOREVER_MS, 1), 12, 2);
    broker.wait_for("long_polls", 2);
}

#[test]
fn requests_behind_a_fetch_of_many_partitions_are_answered_after_it() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    let mut request = fetch_request("numbers", 0, FOREVER_MS, 1);
    let partition = request.topics[0].partitions[0].clone();
    request.topics[0].partitions = vec![partition; 101];
    waiting.send(&request, 12, 1);
    broker.wait_for("long_polls", 1);
    waiting.send(&fetch_request("numbers", 0, 0, 1), 12, 2);
    broker.client().produce("numbers", &["news"]);
    assert_eq!(waiting.receive::<FetchResponse>(12).0, 1);
    assert_eq!(waiting.receive::<FetchResponse>(12).0, 2);
    assert_eq!(broker.count("long_polls"), 1);
}

#[test]
fn a_client_that_sends_no_more_still_gets_its_answers() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, FOREVER_MS, 1), 12, 1);
    waiting.stream.shutdown(std::net::Shutdown::Write).unwrap();
    broker.wait_for("long_polls", 1);
    broker.client().produce("numbers", &["news"]);
    let (_, answer) = waiting.receive(12);
    assert_eq!(values(&only(answer)), [(0, "news".into())]);
    assert_eq!(waiting.frame(), None);
}
