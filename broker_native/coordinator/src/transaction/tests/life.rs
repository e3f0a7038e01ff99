//! Restarts, and what tools see.
use super::bench::{Bench, ID, TIMEOUT_MS, V2};
use crate::transaction::{TxnFilter, TxnReply, TxnRequest, TxnState};
use crate::{LogEntry, Machine, Now, Record};
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;

#[test]
fn loading_finishes_what_was_decided() {
    for committed in [true, false] {
        let mut bench = Bench::new();
        let who = bench.init().unwrap();
        assert_eq!(bench.add(who, &[0, 1]), ErrorCode::None);
        let next = bench.end(V2, who, committed).unwrap();
        bench.restart();
        let again = bench.markers[0].clone();
        assert_eq!(again.marker, if committed { Marker::Commit } else { Marker::Abort });
        assert_eq!((again.producer_epoch, again.partitions.len()), (next.epoch, 2));
        bench.write_markers();
        let end = if committed { TxnState::CompleteCommit } else { TxnState::CompleteAbort };
        assert_eq!(bench.metadata().state, end);
        assert_eq!(bench.end(V2, who, committed), Ok(next), "the answer that was lost");
    }
}

#[test]
fn an_overdue_transaction_is_aborted_a_while_after_the_start() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    bench.now_ms += 2 * i64::from(TIMEOUT_MS);
    bench.restart();
    bench.pass(9_999);
    assert_eq!(bench.metadata().state, TxnState::Ongoing);
    bench.pass(1);
    assert_eq!(bench.metadata().state, TxnState::PrepareAbort);
}

#[test]
fn a_record_that_makes_no_sense_is_a_sentence_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.init().unwrap();
    let good = bench.log[0].clone();
    let value = good.value.clone().unwrap();
    let bad = [
        Record { key: value.clone(), value: None },
        Record { value: Some(value.slice(..5)), ..good.clone() },
        Record { value: Some(vec![0, 9].into()), ..good },
    ];
    for record in bad {
        let entry = LogEntry::Record { offset: 0, timestamp_ms: 0, transaction: None, record };
        assert!(bench.machine.replay(&entry).is_err());
    }
    assert_eq!(bench.metadata().state, TxnState::Empty);
}

#[test]
fn records_are_kafkas_bytes() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[3]), ErrorCode::None);
    let record = bench.log.last().unwrap();
    assert_eq!(&record.key[..], b"\x00\x00\x00\x08payments");
    let now = 1_000_000i64.to_be_bytes();
    let mut wanted = vec![0, 1];
    wanted.extend(1000i64.to_be_bytes());
    wanted.extend([0, 0]);
    wanted.extend(TIMEOUT_MS.to_be_bytes());
    // Ongoing; one topic of one partition, each with an empty tagged section after it.
    wanted.extend(b"\x01\x02\x07orders\x02\x00\x00\x00\x03\x00");
    wanted.extend(now);
    wanted.extend(now);
    // Tagged: the previous producer id, unless it is the default -1, and the client's transaction version.
    wanted.extend(b"\x01\x02\x02\x00\x02");
    assert_eq!(&record.value.as_ref().unwrap()[..], &wanted[..]);
}

#[test]
fn tools_see_the_open_transaction() {
    let mut bench = Bench::new();
    let Some(TxnReply::Describe(unknown)) = bench.ask(0, TxnRequest::Describe(ID.into())) else {
        unreachable!()
    };
    assert_eq!(unknown.error_code, ErrorCode::TransactionalIdNotFound.code());
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[2, 1]), ErrorCode::None);
    let Some(TxnReply::Describe(state)) = bench.ask(0, TxnRequest::Describe(ID.into())) else {
        unreachable!()
    };
    assert_eq!(
        (state.transaction_state.as_str(), state.transaction_start_time_ms),
        ("Ongoing", bench.now_ms)
    );
    assert_eq!((state.producer_id, state.producer_epoch), (who.id, who.epoch));
    assert_eq!((state.topics[0].topic.as_str(), &state.topics[0].partitions[..]), ("orders", &[1, 2][..]));
}

#[test]
fn lists_are_filtered_by_state_producer_duration_and_name() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    let all = TxnFilter { duration_ms: -1, ..TxnFilter::default() };
    let count = |filter: &TxnFilter, later_ms: i64| {
        bench.machine.list(filter, |name| name.starts_with("pay"), Now::same(bench.now_ms + later_ms)).len()
    };
    assert_eq!(count(&all, 0), 1);
    assert_eq!(count(&TxnFilter { states: vec![TxnState::Ongoing], ..all.clone() }, 0), 1);
    assert_eq!(count(&TxnFilter { states: vec![TxnState::Empty], ..all.clone() }, 0), 0);
    assert_eq!(count(&TxnFilter { producer_ids: vec![who.id], ..all.clone() }, 0), 1);
    assert_eq!(count(&TxnFilter { producer_ids: vec![who.id + 1], ..all.clone() }, 0), 0);
    assert_eq!(count(&TxnFilter { duration_ms: 10, ..all.clone() }, 10), 0);
    assert_eq!(count(&TxnFilter { duration_ms: 10, ..all.clone() }, 11), 1);
    assert_eq!(bench.machine.list(&all, |_| false, Now::same(bench.now_ms)).len(), 0);
}
