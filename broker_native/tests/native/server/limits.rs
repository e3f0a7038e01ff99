//! What a client cannot make the broker do.
use std::io::{Read, Write};

use broker_native::server::settings::Settings;
use broker_native::wire::messages::{ApiVersionsRequest, ProduceResponse};

use crate::server::support::{Broker, Client, batch, fetch_request, frame, produce_request, topic, values};

#[test]
fn an_impossible_frame_size_closes_the_connection_and_costs_no_memory() {
    let broker = Broker::start();
    for size in [i32::MAX, i32::MAX - 15, (100 << 20) + 1, -1, -2, i32::MIN, 0, 7] {
        let mut client = broker.client();
        client.stream.write_all(&size.to_be_bytes()).unwrap();
        assert_eq!(client.frame(), None, "size {size}");
    }
    assert_eq!(broker.count("refused"), 8);
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    for byte in frame(&produce_request("numbers", 0, batch(&["slow"]), 1), 9, 3) {
        client.stream.write_all(&[byte]).unwrap();
    }
    let (correlation_id, _) = client.receive::<ProduceResponse>(9);
    assert_eq!(correlation_id, 3);
    assert_eq!(values(&client.fetch("numbers", 0)), [(0, "slow".into())]);
}

#[test]
fn garbage_closes_the_connection_and_others_are_served() {
    let broker = Broker::start();
    let mut state = 0x9e37_79b9_u32;
    for _ in 0..200 {
        let mut client = broker.client();
        let mut noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(64)
        .collect();
        noise[..4].copy_from_slice(&60_i32.to_be_bytes());
        noise[4] = 0;
        noise[5] %= 64;
        noise[6] = 0;
        noise[7] %= 14;
        client.stream.write_all(&noise).unwrap();
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        // Whatever comes, it ends.
        client.stream.read_to_end(&mut Vec::new()).ok();
    }
    assert_eq!(broker.client().call(&ApiVersionsRequest::default(), 0).error_code, 0);
    assert_eq!(broker.count("panics"), 0);
}

#[test]
fn a_connection_beyond_the_limit_is_closed_at_once_and_its_place_is_given_on() {
    let broker = Broker::with(Settings { max_connections: 2, ..Default::default() });
    let mut held: Vec<Client> = (0..2).map(|_| broker.client()).collect();
    for client in &mut held {
        assert_eq!(client.call(&ApiVersionsRequest::default(), 0).error_code, 0);
    }
    assert_eq!(broker.client().stream.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(broker.count("turned_away"), 1);
    held.pop();
    while broker.count("connections") > 1 {
        std::thread::yield_now();
    }
    assert_eq!(broker.client().call(&ApiVersionsRequest::default(), 0).error_code, 0);
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let broker = Broker::with(Settings { connections_max_idle_ms: 30, ..Default::default() });
    let mut client = broker.client();
    assert_eq!(client.call(&ApiVersionsRequest::default(), 0).error_code, 0);
    assert_eq!(client.frame(), None);
}

#[test]
fn large_requests_wait_for_the_budget_of_all_connections_and_are_all_served() {
    let settings = Settings { queued_max_request_bytes: 300_000, ..Default::default() };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let value = "x".repeat(250_000);
    // One holds the budget with half a request while three others come.
    let mut holder = broker.client();
    let request = frame(&produce_request("numbers", 0, batch(&[&value]), 1), 9, 1);
    let (half, rest) = request.split_at(request.len() / 2);
    holder.stream.write_all(half).unwrap();
    broker.wait_for("bytes_in", 64);
    let others: Vec<_> = (0..3)
        .map(|_| {
            let (port, value) = (broker.port, value.clone());
            std::thread::spawn(move || Client::connect(port).produce("numbers", &[&value]).error_code)
        })
        .collect();
    holder.stream.write_all(rest).unwrap();
    holder.receive::<ProduceResponse>(9);
    for other in others {
        assert_eq!(other.join().unwrap(), 0);
    }
    assert_eq!(broker.client().fetch("numbers", 0).high_watermark, 4);
    assert!(broker.server.shared().budget.free_bytes() >= 300_000);
}

#[test]
fn a_request_that_stops_arriving_gives_its_share_of_the_budget_back() {
    let settings = Settings { queued_max_request_bytes: 300_000, request_stall_ms: 50, ..Default::default() };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let request = frame(&produce_request("numbers", 0, batch(&["x".repeat(250_000).as_str()]), 1), 9, 1);
    let mut stalled = broker.client();
    stalled.stream.write_all(&request[..1000]).unwrap();
    broker.wait_for("bytes_in", 1000);
    let mut honest = broker.client();
    honest.stream.write_all(&request).unwrap();
    assert_eq!(honest.receive::<ProduceResponse>(9).0, 1);
    assert_eq!(stalled.frame(), None);
}

#[test]
fn a_client_that_reads_nothing_holds_up_nobody_else() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    for _ in 0..20 {
        client.produce("numbers", &["x".repeat(900_000).as_str()]);
    }
    let mut deaf: Vec<Client> = (0..4).map(|_| broker.client()).collect();
    for deaf in &mut deaf {
        for correlation_id in 0..40 {
            let mut request = fetch_request("numbers", 0, 0, 1);
            request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
            deaf.send(&request, 12, correlation_id);
        }
    }
    assert_eq!(client.fetch("numbers", 19).high_watermark, 20);
    assert_eq!(client.produce("numbers", &["on"]).error_code, 0);
}

#[test]
fn two_thousand_idle_connections_cost_less_than_16_mib_and_new_ones_are_served() {
    let broker = Broker::start();
    let before = resident_bytes();
    let mut idle: Vec<Client> = (0..2_000).map(|_| broker.client()).collect();
    for client in &mut idle {
        assert_eq!(client.call(&ApiVersionsRequest::default(), 0).error_code, 0);
    }
    let cost = resident_bytes().saturating_sub(before);
    assert!(cost < 16 << 20, "2,000 idle connections cost {cost} bytes");
    assert_eq!(broker.client().call(&ApiVersionsRequest::default(), 0).error_code, 0);
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
