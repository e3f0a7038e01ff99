//! Quotas: who uses more than allowed is answered with how long to wait, and is not read until then; nobody else waits.
use std::time::{Duration, Instant};

use pylog_server::quotas::table::EntityQuotas;
use pylog_server::settings::Settings;
use pylog_wire::messages::{ApiVersionsRequest, FetchResponse, ProduceResponse};

use crate::server::support::{Broker, batch, fetch_request, only, produce_request, topic, values};

/// The client id of the tests' clients.
const CLIENT: &str = r#""client-id": "test""#;

/// A broker whose clients called "test" have these limits, measured over one second.
fn limited(limits: &str) -> Broker {
    let broker = Broker::with(Settings { quota_window_num: 2, ..Default::default() });
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let stored = format!(r#"[{{"entity": {{{CLIENT}}}, "values": {{{limits}}}}}]"#);
    let stored: Vec<EntityQuotas> = serde_json::from_str(&stored).unwrap();
    broker.server.shared().quotas.apply(&stored);
    broker
}

fn ms(time_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(time_ms).unwrap())
}

#[test]
fn a_producer_above_its_limit_is_answered_at_once_and_its_next_request_waits() {
    let broker = limited(r#""producer_byte_rate": 5000"#);
    let mut client = broker.client();
    let begun = Instant::now();
    let answer = client.call(&produce_request("numbers", 0, batch(&["x".repeat(6_000).as_str()]), 1), 9);
    assert!((100..=2_000).contains(&answer.throttle_time_ms), "{}", answer.throttle_time_ms);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "the records are appended");
    assert!(begun.elapsed() < ms(answer.throttle_time_ms) + Duration::from_secs(5));
    client.call(&ApiVersionsRequest::default(), 0);
    assert!(begun.elapsed() >= ms(answer.throttle_time_ms), "{:?}", begun.elapsed());
}

#[test]
fn a_producer_without_answers_is_held_back_too() {
    let broker = limited(r#""producer_byte_rate": 5000"#);
    let mut client = broker.client();
    let begun = Instant::now();
    client.send(&produce_request("numbers", 0, batch(&["x".repeat(6_000).as_str()]), 0), 9, 1);
    assert_eq!(client.fetch("numbers", 0).high_watermark, 1);
    assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[test]
fn a_consumer_above_its_limit_gets_nothing_now_and_all_of_it_after_the_pause() {
    let broker = limited(r#""consumer_byte_rate": 5000"#);
    let mut client = broker.client();
    for number in 0..4 {
        client.produce("numbers", &[&format!("{number}").repeat(4_000)]);
    }
    assert_eq!(values(&client.fetch("numbers", 0)).len(), 1, "no more at once than the limit allows");
    let begun = Instant::now();
    let answer: FetchResponse = client.call(&fetch_request("numbers", 1, 0, 1), 12);
    assert_eq!((answer.error_code, answer.responses.len()), (0, 0));
    assert!(answer.throttle_time_ms > 0);
    let mut offset = 1;
    while offset < 4 {
        let answer: FetchResponse = client.call(&fetch_request("numbers", offset, 0, 1), 12);
        if !answer.responses.is_empty() {
            offset += i64::try_from(values(&only(answer)).len()).unwrap();
        }
    }
    assert!(begun.elapsed() >= Duration::from_millis(1_000), "12 kB came in {:?}", begun.elapsed());
}

#[test]
fn nobody_else_waits_for_a_client_above_its_limit() {
    let broker = limited(r#""producer_byte_rate": 1"#);
    let mut greedy = broker.client();
    let answer = greedy.call(&produce_request("numbers", 0, batch(&["much"]), 1), 9);
    assert!(answer.throttle_time_ms > 10_000);
    let begun = Instant::now();
    let mut other = broker.client();
    for offset in 0..100 {
        let answer: FetchResponse = other.call(&fetch_request("numbers", offset % 2, 0, 0), 12);
        assert_eq!(answer.throttle_time_ms, 0);
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn time_of_threads_is_limited_for_every_request() {
    let broker = limited(r#""request_percentage": 0.001"#);
    let mut client = broker.client();
    let mut longest = 0;
    for _ in 0..20 {
        let answer: ProduceResponse = client.call(&produce_request("numbers", 0, batch(&["x"]), 1), 9);
        longest = longest.max(answer.throttle_time_ms);
        if longest > 0 {
            break;
        }
    }
    assert!((1..=1_000).contains(&longest), "{longest} ms");
}

#[test]
fn a_limit_that_is_taken_away_holds_nobody_back() {
    let broker = limited(r#""producer_byte_rate": 1"#);
    broker.server.shared().quotas.apply(&[]);
    let answer = broker.client().call(&produce_request("numbers", 0, batch(&["much"]), 1), 9);
    assert_eq!(answer.throttle_time_ms, 0);
}
