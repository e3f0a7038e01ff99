//! Transactions that stay open for long get lines in the log, not too often.
use super::bench::{Bench, ID, V2, producer};
use crate::transaction::TxnState;
use crate::transaction::metadata::ProducerIdentity;
use pylog_record::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::InitProducerIdRequest;

/// `transaction.max.timeout.ms` of the bench.
const LONG_MS: i64 = 900_000;

fn prepared(bench: &mut Bench, partitions: &[i32]) -> ProducerIdentity {
    let request = InitProducerIdRequest { enable_2_pc: true, ..Bench::request() };
    let who = producer(&bench.init_with(request)).unwrap();
    assert_eq!(bench.add(who, partitions), ErrorCode::None);
    who
}

#[test]
fn a_prepared_transaction_is_told_of_when_any_other_would_have_timed_out_and_then_ever_more_rarely() {
    let mut bench = Bench::new();
    prepared(&mut bench, &[0, 1, 2, 3, 4]);
    bench.pass(LONG_MS - 1);
    assert_eq!(bench.lines(), [""; 0]);
    bench.pass(1);
    let lines = bench.lines();
    assert_eq!(lines.len(), 1);
    for part in [
        "\"payments\" is open for 15 min and prepared",
        "orders-0, orders-1, orders-2 and 2 more",
        "pylog transaction abort \"payments\" --execute",
    ] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    bench.pass(LONG_MS - 1);
    assert_eq!(bench.lines(), [""; 0]);
    bench.pass(1);
    assert!(bench.lines()[0].contains("for 30 min"));
    for _ in 0..450 {
        bench.pass(60_000);
    }
    assert_eq!(bench.lines().len(), 4, "after 1, 2, 4 and 8 hours");
}

#[test]
fn what_ends_in_time_is_not_told_of_and_neither_is_the_next_one_too_early() {
    let mut bench = Bench::new();
    let who = prepared(&mut bench, &[0]);
    bench.pass(LONG_MS - 1);
    let who = bench.end(V2, who, true).unwrap();
    bench.write_markers();
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    bench.pass(LONG_MS - 1);
    assert_eq!(bench.lines(), [""; 0]);
    bench.pass(1);
    assert_eq!(bench.lines().len(), 1);
}

#[test]
fn a_transaction_with_a_time_out_is_ended_and_not_told_of() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    bench.pass(3 * LONG_MS);
    bench.write_markers();
    assert_eq!(bench.metadata().state, TxnState::CompleteAbort);
    assert_eq!(bench.lines(), [""; 0]);
}

#[test]
fn a_coordinator_that_has_loaded_it_tells_of_it_at_once_when_it_is_open_for_long() {
    let mut bench = Bench::new();
    prepared(&mut bench, &[0]);
    bench.now_ms += 4 * LONG_MS;
    bench.restart();
    bench.pass(0);
    assert!(bench.lines()[0].contains("open for 60 min"));
    bench.pass(4 * LONG_MS);
    assert!(bench.lines()[0].contains("open for 2 h"));
}

#[test]
fn a_decided_end_that_a_partition_cannot_be_told_is_told_of_with_that_partition() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[0, 1]), ErrorCode::None);
    bench.end(V2, who, true).unwrap();
    for _ in 0..=LONG_MS / 100 {
        let action = bench.markers.remove(0);
        bench.written(&action, vec![TopicPartition::new("orders", 1)]);
        bench.pass(100);
    }
    let lines = bench.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("was ended 15 min ago") && lines[0].contains("into orders-1,"), "{}", lines[0]);
    bench.write_markers();
    bench.pass(10 * LONG_MS);
    assert_eq!(bench.lines(), [""; 0]);
}

#[test]
fn a_write_of_spark_is_ended_by_its_own_commands() {
    let mut bench = Bench::new();
    let id = "pylog-once.q.1.0.0000000000000000";
    bench.prepare_as(id);
    bench.pass(LONG_MS);
    let lines = bench.lines();
    assert!(lines[0].contains(id) && lines[0].contains("pylog sink abort KEY"), "{}", lines[0]);
    assert!(!lines[0].contains("pylog transaction abort") && !lines[0].contains(ID), "{}", lines[0]);
}

#[test]
fn an_id_cannot_forge_a_line() {
    let mut bench = Bench::new();
    bench.prepare_as(&format!("a\nb{}", "x".repeat(1_000)));
    bench.pass(LONG_MS);
    let lines = bench.lines();
    assert!(!lines[0].contains('\n') && lines[0].contains(r"a\nb") && lines[0].len() < 1_000, "{}", lines[0]);
}
