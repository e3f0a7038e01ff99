//! What a client cannot make the broker do.
use std::io::{Read, Write};

use pylog_server::handlers::common::large::TIMES;
use pylog_server::settings::Settings;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::FetchPartition;
use pylog_wire::messages::metadata::MetadataRequestTopic;
use pylog_wire::messages::produce::PartitionProduceData;
use pylog_wire::messages::{
    ApiVersionsRequest, DeleteTopicsRequest, DeleteTopicsResponse, FetchRequest, FetchResponse,
    MetadataRequest, ProduceRequest, ProduceResponse,
};

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
fn a_request_that_does_not_arrive_in_time_gives_its_share_of_the_budget_back_though_bytes_come() {
    let settings = Settings {
        queued_max_request_bytes: 300_000,
        socket_request_receive_timeout_ms: 500,
        ..Default::default()
    };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let request = frame(&produce_request("numbers", 0, batch(&["x".repeat(250_000).as_str()]), 1), 9, 1);
    // One goes on without asking, the others hold all that an address may have.
    let mut stalled: Vec<Client> = (0..3).map(|_| broker.client()).collect();
    for stalled in &mut stalled {
        stalled.stream.write_all(&request[..200_000]).unwrap();
    }
    broker.wait_for("bytes_in", 300_000);
    let mut slow = broker.client();
    let trickle = std::thread::spawn(move || {
        request
            .iter()
            .take_while(|byte| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                slow.stream.write_all(&[**byte]).is_ok()
            })
            .count()
    });
    // Who waits for longer than the time for a request comes again, as clients do.
    let honest = frame(&produce_request("numbers", 0, batch(&["x".repeat(250_000).as_str()]), 1), 9, 1);
    let served = (0..20).any(|_| {
        let mut client = broker.client();
        client.stream.write_all(&honest).is_ok() && client.frame().is_some()
    });
    assert!(served);
    for stalled in &mut stalled {
        assert_eq!(stalled.frame(), None);
    }
    assert!(trickle.join().unwrap() < 100, "each byte gave it more time");
}

#[test]
fn requests_that_claim_all_of_the_budget_and_hardly_arrive_hold_nobody_up() {
    let settings = Settings { queued_max_request_bytes: 300_000, ..Default::default() };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let mut claims: Vec<Client> = (0..8).map(|_| broker.client()).collect();
    for claim in &mut claims {
        claim.stream.write_all(&(100_i32 << 20).to_be_bytes()).unwrap();
        claim.stream.write_all(&[0; 1000]).unwrap();
    }
    broker.wait_for("bytes_in", 8_000);
    assert_eq!(broker.client().produce("numbers", &["x".repeat(120_000).as_str()]).error_code, 0);
}

/// A fetch of so many partitions, of which the first is there.
fn large_fetch(partitions: i32) -> FetchRequest {
    let mut request = fetch_request("numbers", 0, 0, 1);
    let asked = request.topics[0].partitions[0].clone();
    let numbered = |partition| FetchPartition { partition, ..asked.clone() };
    request.topics[0].partitions = (0..partitions).map(numbered).collect();
    request
}

#[test]
fn large_fetches_wait_until_the_answers_of_others_are_read_and_small_ones_do_not() {
    let large = large_fetch(200_000);
    // One address may hold half of it: what one such request takes, and not the answer of another.
    let room = 2 * (frame(&large, 12, 1).len() * TIMES + (1 << 20));
    let settings = Settings {
        queued_max_response_bytes: room,
        socket_request_receive_timeout_ms: 5_000,
        ..Default::default()
    };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    broker.client().produce("numbers", &["a"]);
    let mut deaf = broker.client();
    // Its answer is larger than what sockets hold.
    deaf.send(&large, 12, 1);
    deaf.stream.read_exact(&mut [0; 4]).unwrap();
    let mut late = broker.client();
    late.send(&large, 12, 1);
    assert_eq!(values(&broker.client().fetch("numbers", 0)), [(0, "a".into())]);
    assert_eq!(late.frame(), None);
    assert_eq!(broker.count("refused"), 1);
    drop(deaf);
    let answer: FetchResponse = broker.client().call(&large, 12);
    assert_eq!(answer.responses[0].partitions.len(), 200_000);
    assert_eq!(broker.client().call(&large, 12).error_code, 0, "what it held was given back");
}

#[test]
fn a_fetch_that_takes_more_than_an_address_may_hold_is_refused() {
    let broker = Broker::with(Settings { queued_max_response_bytes: 1 << 20, ..Default::default() });
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let mut client = broker.client();
    client.send(&large_fetch(5_000), 12, 1);
    assert_eq!(client.frame(), None);
    assert_eq!(broker.count("refused"), 1);
    assert_eq!(broker.client().call(&large_fetch(1_000), 12).error_code, 0, "a small one needs no room");
}

/// The default of queued.max.response.bytes.
const ROOM_BYTES: usize = 512 << 20;

/// A small request with a large answer: so many partitions of a topic that is not there, without a batch.
fn empty_produce(partitions: i32) -> ProduceRequest {
    let mut request = produce_request("nowhere", 0, Vec::new(), 1);
    let numbered = |index| PartitionProduceData { index, ..Default::default() };
    request.topic_data[0].partition_data = (0..partitions).map(numbered).collect();
    request
}

#[test]
fn answers_that_nobody_reads_count_until_their_connection_ends() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let request = empty_produce(9_000);
    let answer = broker.client().call(&request, 9);
    let partitions = &answer.responses[0].partition_responses;
    assert_eq!(
        (partitions.len(), partitions.iter().filter(|partition| partition.error_message.is_some()).count()),
        (9_000, 1_000)
    );
    let room = || broker.server.shared().room.free_bytes();
    while room() < ROOM_BYTES {
        std::thread::yield_now();
    }
    let mut deaf = broker.client();
    // Together more than sockets hold.
    for correlation_id in 0..40 {
        deaf.send(&request, 9, correlation_id);
    }
    while room() == ROOM_BYTES {
        std::thread::yield_now();
    }
    assert_eq!(broker.client().produce("numbers", &["small"]).error_code, 0);
    drop(deaf);
    while room() < ROOM_BYTES {
        std::thread::yield_now();
    }
}

#[test]
fn an_answer_that_finds_no_room_waits_for_it_and_what_waits_has_a_bound() {
    let settings = Settings { queued_max_response_bytes: 4 << 20, ..Default::default() };
    let broker = Broker::with(settings);
    broker.server.apply_topics(vec![topic("numbers", 1)]).unwrap();
    let (request, room) = (empty_produce(9_000), &broker.server.shared().room);
    let others = room.take_now("127.0.0.1".parse().unwrap(), 2 << 20).unwrap();
    let mut waits = broker.client();
    waits.send(&request, 9, 7);
    // Not handled while the answer before it waits.
    waits.send(&request, 9, 8);
    while room.waiting_bytes() == 0 {
        std::thread::yield_now();
    }
    let mut beyond = broker.client();
    beyond.send(&request, 9, 1);
    assert_eq!(beyond.frame(), None);
    assert_eq!(broker.client().produce("numbers", &["small"]).error_code, 0);
    assert_eq!(broker.count("requests"), 3, "one that waits, one that is dropped, the small one");
    drop(others);
    assert_eq!([7, 8], [(); 2].map(|()| waits.receive::<ProduceResponse>(9).0));
    assert_eq!(room.waiting_bytes(), 0);
}

#[test]
fn a_request_of_any_kind_whose_answer_grows_with_it_has_at_most_half_of_the_room() {
    let broker = Broker::with(Settings { queued_max_response_bytes: 1 << 20, ..Default::default() });
    let named = |number| MetadataRequestTopic { name: Some(format!("topic-{number}")), ..Default::default() };
    let asking = |count| MetadataRequest {
        topics: Some((0..count).map(named).collect()),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let mut client = broker.client();
    client.send(&asking(10_000), 9, 1);
    assert_eq!(client.frame(), None);
    assert_eq!(broker.count("refused"), 1);
    assert_eq!(broker.client().call(&asking(1_000), 9).topics.len(), 1_000, "a small one needs no room");
}

#[test]
fn what_waits_for_a_decision_keeps_its_bytes_counted_and_what_finds_no_room_may_be_sent_again() {
    let settings = Settings {
        queued_max_request_bytes: 4 << 20,
        queued_max_response_bytes: 16 << 20,
        ..Default::default()
    };
    let broker = Broker::with(settings);
    let deleting = |count| DeleteTopicsRequest {
        topic_names: (0..count).map(|number| format!("topic-{number:05}")).collect(),
        timeout_ms: 60_000,
        ..Default::default()
    };
    let code = |answer: DeleteTopicsResponse| answer.responses[0].error_code;
    let (budget, room) =
        (|| broker.server.shared().budget.free_bytes(), || broker.server.shared().room.free_bytes());
    let before = (budget(), room());
    let mut first = broker.client();
    first.send(&deleting(25_000), 5, 1);
    while broker.decisions.kept.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert!(before.0 - budget() > 100_000, "the request counts until it is answered");
    assert!(before.1 - room() > 2_000_000, "what it is decided with counts");
    assert_eq!(code(broker.client().call(&deleting(25_000), 5)), ErrorCode::NotController.code());
    assert_eq!(code(broker.client().call(&deleting(40_000), 5)), ErrorCode::PolicyViolation.code());
    broker.decisions.kept.lock().unwrap().clear();
    assert_eq!(code(first.receive::<DeleteTopicsResponse>(5).1), ErrorCode::NotController.code());
    while (budget(), room()) != before {
        std::thread::yield_now();
    }
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
    let name = "server::limits::two_thousand_idle_connections_cost_less_than_16_mib_and_new_ones_are_served";
    if !in_a_process_of_its_own(name) {
        return;
    }
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

/// Whether this process has the test `name` alone: the memory of others is none of its own. When it has not, one is started that has,
/// and its outcome is the test's.
fn in_a_process_of_its_own(name: &str) -> bool {
    const ALONE: &str = "PYLOG_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let done = std::process::Command::new(program).args(["--exact", name]).env(ALONE, "1").output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && printed.contains("1 passed"), "{printed}");
    false
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
