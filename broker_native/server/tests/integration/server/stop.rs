//! A stop answers what is in flight and takes nothing new.
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pylog_server::listeners::ListenerSpec;
use pylog_wire::messages::ProduceResponse;

use crate::server::support::{Broker, batch, fetch_request, frame, only, produce_request, topic, values};

#[test]
fn a_stop_releases_long_polls_with_what_there_is() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut waiting = broker.client();
    waiting.send(&fetch_request("numbers", 0, 60_000, 1), 12, 1);
    broker.wait_for("long_polls", 1);
    let began = Instant::now();
    broker.server.close(Duration::from_secs(10)).unwrap();
    let (_, answer) = waiting.receive(12);
    assert_eq!(values(&only(answer)), []);
    assert_eq!(waiting.frame(), None);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn every_request_whose_answer_came_before_or_during_a_stop_was_carried_out() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let server = Arc::clone(&broker.server);
    let mut client = broker.client();
    let mut bytes = Vec::new();
    for correlation_id in 0..500 {
        bytes.extend(frame(&produce_request("numbers", 0, batch(&["x"]), 1), 9, correlation_id));
    }
    client.stream.write_all(&bytes).unwrap();
    broker.wait_for("records_in", 1);
    server.close(Duration::from_secs(10)).unwrap();
    let mut answered = 0;
    while let Some(frame) = client.frame() {
        let (header, answer) = pylog_wire::message::decode_response::<ProduceResponse>(frame, 9).unwrap();
        assert_eq!(header.correlation_id, answered);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, i64::from(answered));
        answered += 1;
    }
    assert!(answered > 0);
    assert_eq!(broker.count("records_in"), answered as u64);
}

#[test]
fn a_stopped_broker_does_not_listen_and_does_not_start_again() {
    let broker = Broker::start();
    let mut idle = broker.client();
    broker.wait_for("connections", 1);
    broker.server.close(Duration::from_secs(10)).unwrap();
    assert_eq!(idle.frame(), None);
    assert!(TcpStream::connect(("127.0.0.1", broker.port)).is_err());
    assert!(broker.server.listen(vec![ListenerSpec::plaintext("127.0.0.1", 0)]).is_err());
    broker.server.close(Duration::from_secs(10)).unwrap();
}
