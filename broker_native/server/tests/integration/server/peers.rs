//! Requests of one broker to another.
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use pylog_server::cluster::peers::PeerError;
use pylog_server::cluster::view::{Broker as Live, ClusterView};
use pylog_wire::messages::{DescribeClusterRequest, DescribeClusterResponse};

use crate::server::cluster_bed::{Bed, at};
use crate::server::support::{Broker, TIMEOUT};

fn ask(from: &Broker, id: i32) -> Result<DescribeClusterResponse, PeerError> {
    let peers = &from.server.shared().peers;
    let runtime = peers.runtime().unwrap();
    let request = DescribeClusterRequest { endpoint_type: 1, ..Default::default() };
    runtime.block_on(peers.call(id, &request))
}

fn ask_until<T>(
    from: &Broker,
    id: i32,
    mut what: impl FnMut(Result<DescribeClusterResponse, PeerError>) -> Option<T>,
) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = ask(from, id);
        if let Some(found) = what(answer.clone()) {
            return found;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
        std::thread::yield_now();
    }
}

#[test]
fn brokers_ask_each_other_over_one_connection() {
    let bed = Bed::all(2);
    for _ in 0..50 {
        assert_eq!(ask(bed.broker(1), 2).unwrap().brokers.len(), 2);
    }
    assert_eq!(bed.broker(2).count("accepted"), 1);
}

#[test]
fn a_broker_that_is_not_in_the_view_is_not_asked() {
    let bed = Bed::all(2);
    assert_eq!(ask(bed.broker(1), 3).unwrap_err(), PeerError::NotAlive(3));
    assert_eq!(ask(bed.broker(1), 1).unwrap_err(), PeerError::NotAlive(1), "itself");
    ask(bed.broker(1), 2).unwrap();
    bed.announce(&[1]);
    assert_eq!(ask(bed.broker(1), 2).unwrap_err(), PeerError::NotAlive(2));
    bed.announce(&[1, 2]);
    ask(bed.broker(1), 2).unwrap();
}

/// Tells broker 1 of `bed` that broker 9 lives at `port`.
fn announce_port(bed: &Bed, port: u16, epoch: i64) {
    let broker = Live { id: 9, endpoints: at(port), rack: None, epoch };
    bed.broker(1).server.apply_cluster(ClusterView {
        controller_id: 1,
        brokers: vec![broker],
        ..Default::default()
    });
}

#[test]
fn who_waits_for_a_broker_that_leaves_the_view_is_told_at_once() {
    let bed = Bed::all(1);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    announce_port(&bed, silent.local_addr().unwrap().port(), 1);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(bed.broker(1), 9));
        let (mut stream, _) = silent.accept().unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        bed.announce(&[1]);
        assert_eq!(asking.join().unwrap().unwrap_err(), PeerError::NotAlive(9));
    });
}

#[test]
fn a_broker_that_does_not_answer_is_given_up_and_one_that_refuses_is_tried_again_later() {
    let bed = Bed::all_with(2, |settings| settings.replica_socket_timeout_ms = 200);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    announce_port(&bed, silent.local_addr().unwrap().port(), 1);
    let after = Duration::from_millis(200);
    assert_eq!(ask(bed.broker(1), 9).unwrap_err(), PeerError::TimedOut { id: 9, after });
    drop(silent);
    let refused = ask_until(bed.broker(1), 9, |answer| match answer {
        Err(PeerError::Unreachable { cause, .. }) => Some(cause),
        _ => None,
    });
    assert!(refused.contains("refused"), "{refused}");
    // It comes back under a new registration: nobody waits for the back-off of the old one.
    announce_port(&bed, bed.broker(2).port, 2);
    ask(bed.broker(1), 9).unwrap();
}

#[test]
fn after_a_broken_connection_the_next_request_makes_a_new_one() {
    let bed = Bed::all_with(2, |settings| settings.connections_max_idle_ms = 50);
    ask(bed.broker(1), 2).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while bed.broker(2).count("connections") > 0 {
        assert!(Instant::now() < deadline, "an idle connection stays");
        std::thread::yield_now();
    }
    ask_until(bed.broker(1), 2, Result::ok);
    assert_eq!(bed.broker(2).count("accepted"), 2);
}
