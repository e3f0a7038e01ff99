//! Who is the producer: ids, epochs, fencing.
use super::bench::{Bench, ID, TIMEOUT_MS, V1, V2, producer};
use crate::transaction::metadata::{LAST_EPOCH, ProducerIdentity};
use crate::transaction::{Settings, TxnState};
use pylog_wire::ErrorCode;
use pylog_wire::messages::InitProducerIdRequest;

#[test]
fn a_new_transactional_id_gets_an_id_and_epoch_0() {
    let mut bench = Bench::new();
    assert_eq!(bench.init(), Ok(ProducerIdentity { id: 1000, epoch: 0 }));
    assert_eq!(bench.metadata().state, TxnState::Empty);
    assert_eq!(bench.log.len(), 1);
}

#[test]
fn a_second_producer_fences_the_first() {
    let mut bench = Bench::new();
    let first = bench.init().unwrap();
    let second = bench.init().unwrap();
    assert_eq!(second, ProducerIdentity { id: first.id, epoch: 1 });
    assert_eq!(bench.add(first, &[0]), ErrorCode::ProducerFenced);
    assert_eq!(bench.end(V2, first, true), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.end(V1, first, true), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.resume(first), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.verify(first, 0), ErrorCode::ProducerFenced);
    assert_eq!(bench.add(second, &[0]), ErrorCode::None);
}

#[test]
fn a_second_producer_has_the_open_transaction_aborted_before_it_gets_an_epoch() {
    let mut bench = Bench::new();
    let first = bench.init().unwrap();
    assert_eq!(bench.add(first, &[0, 1]), ErrorCode::None);
    assert_eq!(bench.init(), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(bench.metadata().state, TxnState::PrepareAbort);
    assert_eq!(bench.init(), Err(ErrorCode::ConcurrentTransactions), "the markers are not written yet");
    assert_eq!(bench.end(V2, first, true), Err(ErrorCode::ConcurrentTransactions));
    let markers = bench.write_markers();
    assert_eq!((markers.len(), markers[0].producer_epoch), (1, first.epoch + 1));
    assert_eq!(bench.end(V2, first, true), Err(ErrorCode::InvalidTxnState));
    let second = bench.init().unwrap();
    assert_eq!(second, ProducerIdentity { id: first.id, epoch: first.epoch + 2 });
    assert_eq!(bench.end(V2, first, true), Err(ErrorCode::ProducerFenced));
}

#[test]
fn a_producer_that_names_its_epoch_gets_the_next_one_and_the_same_again_when_the_answer_was_lost() {
    let mut bench = Bench::new();
    let first = bench.init().unwrap();
    let next = bench.resume(first).unwrap();
    assert_eq!(next, ProducerIdentity { id: first.id, epoch: first.epoch + 1 });
    assert_eq!(bench.resume(first), Ok(next));
    assert_eq!(bench.init().unwrap().epoch, next.epoch + 1);
    assert_eq!(bench.resume(first), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.resume(next), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.resume(ProducerIdentity { id: 77, epoch: 0 }), Err(ErrorCode::ProducerFenced));
}

#[test]
fn half_an_identity_is_an_invalid_request() {
    let mut bench = Bench::new();
    for (producer_id, producer_epoch) in [(5, -1), (-1, 5)] {
        let answer =
            bench.init_with(InitProducerIdRequest { producer_id, producer_epoch, ..Bench::request() });
        assert_eq!(producer(&answer), Err(ErrorCode::InvalidRequest));
    }
    let answer =
        bench.init_with(InitProducerIdRequest { transactional_id: Some(String::new()), ..Bench::request() });
    assert_eq!(producer(&answer), Err(ErrorCode::InvalidRequest));
    assert_eq!(bench.log, []);
}

#[test]
fn a_time_out_is_positive_and_at_most_the_brokers() {
    let mut bench = Bench::new();
    for (transaction_timeout_ms, allowed) in
        [(0, false), (-1, false), (1, true), (900_000, true), (900_001, false)]
    {
        let answer = bench.init_with(InitProducerIdRequest { transaction_timeout_ms, ..Bench::request() });
        let wanted = if allowed { ErrorCode::None } else { ErrorCode::InvalidTransactionTimeout };
        assert_eq!(answer.error_code, wanted.code(), "{transaction_timeout_ms}");
    }
}

/// Brings the producer to its last epoch.
fn exhausted(bench: &mut Bench) -> ProducerIdentity {
    let mut who = bench.init().unwrap();
    while who.epoch < LAST_EPOCH {
        who = bench.init().unwrap();
    }
    who
}

#[test]
fn a_producer_without_epochs_gets_a_new_id() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    let fresh = bench.resume(last).unwrap();
    assert_eq!(fresh, ProducerIdentity { id: last.id + 1, epoch: 0 });
    assert_eq!(bench.resume(last), Ok(fresh), "the answer was lost");
    assert_eq!(bench.init(), Ok(ProducerIdentity { id: fresh.id, epoch: 1 }));
    assert_eq!(bench.resume(last), Err(ErrorCode::ProducerFenced));
}

#[test]
fn a_fenced_producer_without_epochs_gets_a_new_id_when_its_transaction_is_aborted() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    assert_eq!(bench.add(last, &[0]), ErrorCode::None);
    bench.pass(i64::from(TIMEOUT_MS));
    assert_eq!(bench.write_markers()[0].producer_epoch, i16::MAX);
    let fresh = bench.resume(last).unwrap();
    assert_eq!(fresh, ProducerIdentity { id: last.id + 1, epoch: 0 });
    assert_eq!(bench.end(V2, last, true), Err(ErrorCode::InvalidProducerIdMapping));
}

#[test]
fn an_end_in_the_last_epoch_hands_over_a_new_id_and_can_be_repeated() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    assert_eq!(bench.add(last, &[0]), ErrorCode::None);
    let fresh = bench.end(V2, last, true).unwrap();
    assert_eq!(fresh, ProducerIdentity { id: last.id + 1, epoch: 0 });
    assert_eq!(bench.end(V2, last, true), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(bench.add(fresh, &[1]), ErrorCode::ConcurrentTransactions, "not a wrong mapping");
    let marker = &bench.write_markers()[0];
    assert_eq!((marker.producer_id, marker.producer_epoch), (last.id, i16::MAX));
    assert_eq!(bench.end(V2, last, true), Ok(fresh));
    bench.restart();
    assert_eq!(bench.end(V2, last, true), Ok(fresh), "also after a restart");
    assert_eq!(bench.add(fresh, &[1]), ErrorCode::None);
}

#[test]
fn a_forgotten_id_starts_again() {
    let mut bench = Bench::new();
    let first = bench.init().unwrap();
    bench.pass(bench.settings.transactional_id_expiration_ms - 1);
    assert!(bench.machine.transaction(ID).is_some());
    bench.pass(1);
    assert!(bench.machine.transaction(ID).is_none());
    assert_eq!(bench.log.last().unwrap().value, None, "a tombstone");
    assert!(bench.replayed().transaction(ID).is_none());
    assert_eq!(bench.add(first, &[0]), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(bench.init(), Ok(ProducerIdentity { id: first.id + 1, epoch: 0 }));
}

#[test]
fn an_id_with_an_open_transaction_is_not_forgotten() {
    let mut bench = Bench::new();
    let answer = bench.init_with(InitProducerIdRequest { enable_2_pc: true, ..Bench::request() });
    assert_eq!(bench.add(producer(&answer).unwrap(), &[0]), ErrorCode::None);
    bench.pass(2 * bench.settings.transactional_id_expiration_ms);
    assert_eq!(bench.metadata().state, TxnState::Ongoing);
}

#[test]
fn an_id_without_room_is_refused_and_a_known_one_goes_on() {
    let settings = Settings { transaction_coordinator_max_bytes: 1_000, ..Settings::default() };
    let mut bench = Bench::with(settings);
    let who = bench.init().unwrap();
    let named = |name: &str| InitProducerIdRequest {
        transactional_id: Some(name.to_owned()),
        transaction_timeout_ms: TIMEOUT_MS,
        ..Default::default()
    };
    let refused = bench.init_with(named("another"));
    assert_eq!(refused.error_code, ErrorCode::PolicyViolation.code());
    assert!(bench.machine.transaction("another").is_none());
    assert!(bench.init().unwrap().epoch > who.epoch);
}
