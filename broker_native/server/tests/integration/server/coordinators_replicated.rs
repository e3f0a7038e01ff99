//! Coordinators whose partition other brokers copy: the test moves the high watermark, in place of followers.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pylog_server::cluster::spec::TopicSpec;
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTopic;
use pylog_wire::messages::{
    AddPartitionsToTxnRequest, DescribeTransactionsRequest, EndTxnRequest, InitProducerIdRequest,
    InitProducerIdResponse,
};

use crate::server::cluster_bed::{Bed, led_by};
use crate::server::support::{Client, TIMEOUT};

const TRANSACTIONS: &str = "__transaction_state";

/// One broker; brokers 8 and 9, which are not there, copy its transactions.
struct Copied {
    bed: Bed,
    spec: TopicSpec,
}

impl Copied {
    fn start() -> Self {
        let bed = Bed::all(1);
        let mut spec = led_by(TRANSACTIONS, &[1]);
        spec.partitions[0].replicas = vec![1, 8, 9];
        spec.partitions[0].isr = vec![1, 8, 9];
        bed.serve(led_by("x", &[1]));
        bed.serve(spec.clone());
        Self { bed, spec }
    }

    fn client(&self) -> Client {
        self.bed.broker(1).client()
    }

    fn log(&self) -> Arc<PartitionLog> {
        self.bed.broker(1).server.shared().logs.partition(TRANSACTIONS, 0).unwrap()
    }

    /// The partition is led by `leader` from now on.
    fn lead(&mut self, leader: i32) {
        self.spec.partitions[0].leader = leader;
        self.spec.partitions[0].leader_epoch += 1;
        self.bed.serve(self.spec.clone());
    }

    /// Waits until the log ends at `end`, without that the answer comes.
    fn wait_for_end(&self, end: i64) {
        let deadline = Instant::now() + TIMEOUT;
        while self.log().offsets().log_end_offset < end {
            assert!(Instant::now() < deadline, "nothing is appended");
            std::thread::yield_now();
        }
    }

    /// All followers have everything.
    fn commit(&self) {
        let log = self.log();
        log.move_high_watermark(log.offsets().log_end_offset);
    }
}

/// Asks in another thread, until producer ids have come.
fn init(copied: &Copied, id: &str) -> JoinHandle<InitProducerIdResponse> {
    let mut client = copied.client();
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    std::thread::spawn(move || {
        loop {
            let answer = client.call(&request, 5);
            if answer.error_code != ErrorCode::CoordinatorLoadInProgress.code() {
                return answer;
            }
        }
    })
}

/// A producer that is there, as all followers know.
fn producer(copied: &Copied, id: &str) -> InitProducerIdResponse {
    let asked = init(copied, id);
    copied.wait_for_end(copied.log().offsets().high_watermark + 1);
    copied.commit();
    let answer = asked.join().unwrap();
    assert_eq!(answer.error_code, 0);
    answer
}

#[test]
fn an_answer_leaves_when_the_followers_have_what_it_says() {
    let copied = Copied::start();
    let asked = init(&copied, "mine");
    copied.wait_for_end(1);
    assert!(!asked.is_finished());
    copied.commit();
    assert_eq!(asked.join().unwrap().error_code, 0);
}

#[test]
fn who_waits_when_the_coordinator_moves_is_told_so() {
    let mut copied = Copied::start();
    let asked = init(&copied, "mine");
    copied.wait_for_end(1);
    copied.lead(9);
    assert_eq!(asked.join().unwrap().error_code, ErrorCode::NotCoordinator.code());
    assert_eq!(
        init(&copied, "mine").join().unwrap().error_code,
        ErrorCode::NotCoordinator.code(),
        "another broker leads"
    );
}

#[test]
fn who_waits_too_long_for_followers_is_told_to_try_again() {
    let copied = Copied::start();
    let began = Instant::now();
    let answer = init(&copied, "mine").join().unwrap();
    assert_eq!(answer.error_code, ErrorCode::CoordinatorNotAvailable.code());
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn without_a_lease_nobody_is_answered() {
    let copied = Copied::start();
    producer(&copied, "mine");
    copied.bed.broker(1).server.lease_until(Duration::ZERO);
    assert_eq!(init(&copied, "mine").join().unwrap().error_code, ErrorCode::NotCoordinator.code());
}

#[test]
fn a_new_leader_shows_what_it_found_in_the_log_when_that_is_committed() {
    let mut copied = Copied::start();
    let asked = init(&copied, "mine");
    copied.wait_for_end(1);
    copied.lead(9);
    asked.join().unwrap();
    copied.lead(1);
    let mut client = copied.client();
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let request = DescribeTransactionsRequest { transactional_ids: vec!["mine".into()] };
        loop {
            let answer = client.call(&request, 0).transaction_states.remove(0);
            if answer.error_code != ErrorCode::CoordinatorLoadInProgress.code() {
                return sender.send(answer).unwrap();
            }
        }
    });
    assert!(answer.recv_timeout(Duration::from_millis(100)).is_err(), "it may still be lost");
    copied.commit();
    let found = answer.recv_timeout(TIMEOUT).unwrap();
    assert_eq!((found.error_code, found.transaction_state.as_str()), (0, "Empty"));
}

#[test]
fn an_append_that_moves_the_high_watermark_itself_starts_markers_without_waiting_for_itself() {
    let copied = Copied::start();
    let made = producer(&copied, "mine");
    let topics = vec![AddPartitionsToTxnTopic { name: "x".into(), partitions: vec![0] }];
    let add = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: "mine".into(),
        v3_and_below_producer_id: made.producer_id,
        v3_and_below_producer_epoch: made.producer_epoch,
        v3_and_below_topics: topics,
        ..Default::default()
    };
    let end = EndTxnRequest {
        transactional_id: "mine".into(),
        producer_id: made.producer_id,
        producer_epoch: made.producer_epoch,
        committed: true,
    };
    let mut client = copied.client();
    client.send(&add, 3, 1);
    client.send(&end, 4, 2);
    copied.wait_for_end(3);
    // As where nobody else is in sync any more: the next append, under the machine's lock, commits what waits.
    let (log, until) = (copied.log(), AtomicI64::new(0));
    let log_again = Arc::downgrade(&log);
    log.on_append(Arc::new(move |replicated_end| {
        if until.swap(replicated_end, Ordering::SeqCst) < replicated_end
            && let Some(log) = log_again.upgrade()
        {
            log.move_high_watermark(replicated_end);
        }
    }));
    assert_eq!(init(&copied, "other").join().unwrap().error_code, 0);
    let x = copied.bed.broker(1).server.shared().logs.partition("x", 0).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while x.offsets().log_end_offset < 1 {
        assert!(Instant::now() < deadline, "no marker is written");
        std::thread::yield_now();
    }
}

#[test]
fn with_too_few_replicas_in_sync_nothing_is_taken_that_would_be_written() {
    let mut copied = Copied::start();
    producer(&copied, "mine");
    copied.spec.config.min_insync_replicas = 2;
    copied.spec.partitions[0].isr = vec![1];
    copied.spec.partitions[0].partition_epoch += 1;
    copied.bed.serve(copied.spec.clone());
    let end = copied.log().offsets().log_end_offset;
    assert_eq!(init(&copied, "mine").join().unwrap().error_code, ErrorCode::CoordinatorNotAvailable.code());
    assert_eq!(copied.log().offsets().log_end_offset, end, "nothing was written");
    let request = DescribeTransactionsRequest { transactional_ids: vec!["mine".into()] };
    assert_eq!(copied.client().call(&request, 0).transaction_states[0].error_code, 0, "reading goes on");
}
