//! Two-phase commit (KIP-939): a prepared transaction outlives its producer and its broker.
use super::bench::{Bench, TIMEOUT_MS, V1, V2, producer};
use crate::transaction::metadata::{LAST_EPOCH, ProducerIdentity};
use crate::transaction::{Settings, TxnState};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

const YEAR_MS: i64 = 365 * 86_400_000;

fn two_phases() -> InitProducerIdRequest {
    InitProducerIdRequest { enable_2_pc: true, ..Bench::request() }
}

fn keep(bench: &mut Bench) -> InitProducerIdResponse {
    bench.init_with(InitProducerIdRequest { keep_prepared_txn: true, ..two_phases() })
}

fn prepared() -> (Bench, ProducerIdentity) {
    let mut bench = Bench::new();
    let who = producer(&bench.init_with(two_phases())).unwrap();
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    (bench, who)
}

#[test]
fn two_phases_have_to_be_allowed() {
    let mut bench =
        Bench::with(Settings { transaction_two_phase_commit_enable: false, ..Settings::default() });
    let answer = bench.init_with(two_phases());
    assert_eq!(producer(&answer), Err(ErrorCode::TransactionalIdAuthorizationFailed));
    let answer = bench.init_with(InitProducerIdRequest { keep_prepared_txn: true, ..Bench::request() });
    assert_eq!(producer(&answer), Err(ErrorCode::UnsupportedVersion));
    assert_eq!(bench.log, []);
}

#[test]
fn a_prepared_transaction_never_times_out() {
    let (mut bench, who) = prepared();
    bench.pass(YEAR_MS);
    bench.restart();
    bench.pass(YEAR_MS);
    assert_eq!(bench.metadata().state, TxnState::Ongoing);
    assert!(bench.end(V2, who, true).is_ok());
    assert_eq!(bench.metadata().state, TxnState::PrepareCommit);
}

#[test]
fn a_transaction_left_open_must_be_committable_after_broker_restart_from_a_new_connection_with_the_same_id_and_epoch()
 {
    for version in [V1, V2] {
        let mut bench = Bench::new();
        let who = bench.init().unwrap();
        assert_eq!(bench.add(who, &[0]), ErrorCode::None);
        bench.restart();
        // The broker was away for longer than the time-out: the producer still gets its chance.
        bench.now_ms += 2 * i64::from(TIMEOUT_MS);
        bench.restart();
        bench.pass(1_000);
        assert!(bench.end(version, who, true).is_ok());
        bench.write_markers();
        assert_eq!(bench.metadata().state, TxnState::CompleteCommit);
    }
}

#[test]
fn a_restarted_producer_keeps_its_transaction_and_ends_it() {
    for committed in [true, false] {
        let (mut bench, who) = prepared();
        let answer = keep(&mut bench);
        let reborn = producer(&answer).unwrap();
        assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (who.id, who.epoch));
        assert_eq!(reborn, ProducerIdentity { id: who.id, epoch: who.epoch + 1 });
        bench.restart();
        assert_eq!(
            bench.end(V2, who, committed),
            Err(ErrorCode::ProducerFenced),
            "its former life is fenced"
        );
        assert_eq!(bench.add(who, &[1]), ErrorCode::ProducerFenced);
        for partition in [0, 1] {
            assert_eq!(bench.add(reborn, &[partition]), ErrorCode::InvalidTxnState, "prepared is prepared");
            assert_eq!(bench.verify(reborn, partition), ErrorCode::InvalidTxnState);
        }
        let next = bench.end(V2, reborn, committed).unwrap();
        assert_eq!(bench.end(V2, reborn, committed), Err(ErrorCode::ConcurrentTransactions));
        let marker = bench.write_markers().remove(0);
        assert_eq!((marker.producer_id, marker.producer_epoch), (who.id, who.epoch + 1), "over the batches'");
        assert_eq!(next, ProducerIdentity { id: who.id, epoch: reborn.epoch + 1 });
        assert_eq!(bench.end(V2, reborn, committed), Ok(next), "said again");
        assert_eq!(bench.add(next, &[1]), ErrorCode::None);
    }
}

#[test]
fn every_life_of_the_producer_fences_the_one_before_and_the_transaction_stays() {
    let (mut bench, who) = prepared();
    let mut before = who;
    for life in 1..5 {
        bench.restart();
        let answer = keep(&mut bench);
        let now = producer(&answer).unwrap();
        assert_eq!(now.epoch, who.epoch + life);
        assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (who.id, who.epoch));
        assert_eq!(bench.end(V2, before, true), Err(ErrorCode::ProducerFenced));
        before = now;
    }
    assert!(bench.end(V2, before, true).is_ok());
    assert_eq!(bench.write_markers()[0].producer_epoch, who.epoch + 1);
    assert_eq!(bench.metadata().producer.epoch, before.epoch + 1);
}

#[test]
fn a_producer_without_epochs_keeps_its_transaction_under_a_new_id() {
    let mut bench = Bench::new();
    let mut who = producer(&bench.init_with(two_phases())).unwrap();
    while who.epoch < LAST_EPOCH {
        who = producer(&bench.init_with(two_phases())).unwrap();
    }
    assert_eq!(bench.add(who, &[0]), ErrorCode::None);
    let answer = keep(&mut bench);
    let reborn = producer(&answer).unwrap();
    assert_eq!(reborn, ProducerIdentity { id: who.id + 1, epoch: 0 });
    assert_eq!(answer.ongoing_txn_producer_id, who.id);
    let next = bench.end(V2, reborn, true).unwrap();
    let marker = bench.write_markers().remove(0);
    assert_eq!((marker.producer_id, marker.producer_epoch), (who.id, i16::MAX));
    assert_eq!(next, ProducerIdentity { id: reborn.id, epoch: 1 });
    assert_eq!(bench.end(V2, reborn, true), Ok(next));
}

#[test]
fn who_does_not_keep_the_prepared_transaction_aborts_it() {
    let (mut bench, _) = prepared();
    let reborn = producer(&keep(&mut bench)).unwrap();
    assert_eq!(producer(&bench.init_with(two_phases())), Err(ErrorCode::ConcurrentTransactions));
    bench.write_markers();
    assert_eq!(bench.metadata().state, TxnState::CompleteAbort);
    let last = producer(&bench.init_with(two_phases())).unwrap();
    assert!(last.epoch > reborn.epoch);
    assert_eq!(bench.add(reborn, &[0]), ErrorCode::ProducerFenced);
}

#[test]
fn without_a_transaction_there_is_nothing_to_keep() {
    let mut bench = Bench::new();
    let answer = keep(&mut bench);
    assert_eq!(producer(&answer).unwrap().epoch, 0);
    assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (-1, -1));
}
