//! How transactions end, and that an end can be repeated.
use super::bench::{Bench, ID, TIMEOUT_MS, V1, V2};
use crate::transaction::metadata::ProducerIdentity;
use crate::transaction::{TransactionVersion, TxnFilter, TxnState};
use pylog_record::TopicPartition;
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;

fn ongoing() -> (Bench, ProducerIdentity) {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    assert_eq!(bench.add(who, &[0, 3]), ErrorCode::None);
    (bench, who)
}

#[test]
fn a_commit_is_decided_in_the_log_before_any_marker_and_complete_after_all() {
    let (mut bench, who) = ongoing();
    bench.end(V2, who, true).unwrap();
    assert_eq!(bench.metadata().state, TxnState::PrepareCommit);
    assert_eq!(bench.replayed().transaction(super::bench::ID).unwrap().state, TxnState::PrepareCommit);
    let action = bench.markers[0].clone();
    assert_eq!(action.marker, Marker::Commit);
    assert_eq!(action.partitions, [TopicPartition::new("orders", 0), TopicPartition::new("orders", 3)]);
    bench.written(&action, vec![TopicPartition::new("orders", 3)]);
    assert_eq!(bench.metadata().state, TxnState::PrepareCommit, "one partition is left");
    bench.markers.clear();
    bench.pass(100);
    assert_eq!(bench.markers[0].partitions, [TopicPartition::new("orders", 3)], "tried again, only there");
    bench.write_markers();
    assert_eq!(bench.metadata().state, TxnState::CompleteCommit);
    assert!(bench.metadata().partitions.is_empty());
}

#[test]
fn an_outcome_of_an_earlier_transaction_completes_nothing() {
    let (mut bench, who) = ongoing();
    let next = bench.end(V2, who, true).unwrap();
    let early = bench.write_markers().remove(0);
    assert_eq!(bench.add(next, &[0]), ErrorCode::None);
    bench.end(V2, next, true).unwrap();
    bench.written(&early, Vec::new());
    assert_eq!(bench.metadata().state, TxnState::PrepareCommit);
}

#[test]
fn version_2_raises_the_epoch_at_every_end_and_marks_with_it() {
    let (mut bench, who) = ongoing();
    let next = bench.end(V2, who, true).unwrap();
    assert_eq!(next, ProducerIdentity { id: who.id, epoch: who.epoch + 1 });
    let marker = bench.write_markers().remove(0);
    assert_eq!((marker.producer_epoch, marker.transaction_version), (next.epoch, TransactionVersion::V2));
    assert_eq!(bench.add(who, &[1]), ErrorCode::ProducerFenced, "a late request of the transaction before");
    assert_eq!(bench.add(next, &[1]), ErrorCode::None);
    assert_eq!(bench.end(V2, next, false).unwrap().epoch, who.epoch + 2);
}

#[test]
fn older_versions_keep_the_epoch() {
    let (mut bench, who) = ongoing();
    assert_eq!(bench.end(V1, who, true), Ok(who));
    assert_eq!(bench.markers[0].producer_epoch, who.epoch);
    assert_eq!(bench.end(V1, who, true), Err(ErrorCode::ConcurrentTransactions));
    bench.write_markers();
    assert_eq!(bench.end(V1, who, true), Ok(who), "said again");
    assert_eq!(bench.end(V1, who, false), Err(ErrorCode::InvalidTxnState));
    assert_eq!(bench.add(who, &[1]), ErrorCode::None);
    assert_eq!(bench.end(V1, who, false), Ok(who));
    bench.write_markers();
    assert_eq!(bench.end(V1, who, false), Ok(who));
    assert_eq!(bench.end(V1, who, true), Err(ErrorCode::InvalidTxnState));
}

#[test]
fn a_repeated_end_is_answered_as_the_first_and_writes_nothing() {
    for committed in [true, false] {
        let (mut bench, who) = ongoing();
        let next = bench.end(V2, who, committed).unwrap();
        assert_eq!(bench.end(V2, who, committed), Err(ErrorCode::ConcurrentTransactions));
        bench.write_markers();
        let written = bench.log.len();
        assert_eq!(bench.end(V2, who, committed), Ok(next));
        assert_eq!(bench.end(V2, who, !committed), Err(ErrorCode::InvalidTxnState));
        assert_eq!(bench.log.len(), written);
    }
}

#[test]
fn an_end_that_is_asked_for_before_its_transaction_has_begun_is_to_be_asked_for_again() {
    for committed in [true, false] {
        let (mut bench, who) = ongoing();
        let next = bench.end(V2, who, committed).unwrap();
        assert_eq!(bench.end(V2, next, true), Err(ErrorCode::ConcurrentTransactions));
        let ahead = ProducerIdentity { epoch: next.epoch + 1, ..next };
        assert_eq!(bench.end(V2, ahead, true), Err(ErrorCode::ProducerFenced));
        bench.write_markers();
        assert_eq!(
            bench.end(V2, next, true),
            Err(ErrorCode::ConcurrentTransactions),
            "nor has it begun then"
        );
        assert_eq!(bench.add(next, &[0]), ErrorCode::None);
        assert_eq!(bench.end(V2, next, true).unwrap().epoch, next.epoch + 1);
    }
}

#[test]
fn nothing_can_be_committed_that_did_not_begin() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.end(V2, ProducerIdentity { id: 1, epoch: 0 }, true),
        Err(ErrorCode::InvalidProducerIdMapping)
    );
    let who = bench.init().unwrap();
    assert_eq!(
        bench.end(V2, who, true),
        Err(ErrorCode::ConcurrentTransactions),
        "its batches may be on their way"
    );
    assert_eq!(bench.end(V1, who, true), Err(ErrorCode::InvalidTxnState));
    assert_eq!(bench.end(V1, who, false), Err(ErrorCode::InvalidTxnState));
    let other = ProducerIdentity { id: who.id + 1, ..who };
    assert_eq!(bench.end(V2, other, true), Err(ErrorCode::InvalidProducerIdMapping));
    let ahead = ProducerIdentity { epoch: who.epoch + 1, ..who };
    assert_eq!(bench.end(V2, ahead, true), Err(ErrorCode::ProducerFenced));
}

#[test]
fn version_2_may_abort_what_did_not_begin_because_its_batches_may_be_on_their_way() {
    let mut bench = Bench::new();
    let who = bench.init().unwrap();
    let next = bench.end(V2, who, false).unwrap();
    assert_eq!(next.epoch, who.epoch + 1);
    assert_eq!(bench.metadata().state, TxnState::CompleteAbort, "no leader is asked to write a marker");
    assert_eq!(bench.markers, []);
    assert_eq!(bench.end(V2, who, false), Ok(next), "said again");
    assert_eq!(bench.end(V2, next, false).unwrap().epoch, next.epoch + 1);
    assert_eq!(bench.add(who, &[0]), ErrorCode::ProducerFenced);
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced() {
    let (mut bench, who) = ongoing();
    bench.pass(i64::from(TIMEOUT_MS) - 1);
    assert_eq!(bench.metadata().state, TxnState::Ongoing);
    bench.pass(1);
    assert_eq!(bench.metadata().state, TxnState::PrepareAbort);
    assert_eq!(bench.write_markers()[0].marker, Marker::Abort);
    assert_eq!(bench.end(V1, who, true), Err(ErrorCode::ProducerFenced));
    assert_eq!(bench.add(who, &[0]), ErrorCode::ProducerFenced);
    assert_eq!(bench.resume(who).unwrap().epoch, who.epoch + 1, "it may go on, nobody else came");
}

#[test]
fn adding_a_partition_does_not_prolong_a_transaction() {
    let (mut bench, who) = ongoing();
    bench.pass(i64::from(TIMEOUT_MS) - 1);
    assert_eq!(bench.add(who, &[9]), ErrorCode::None);
    bench.pass(1);
    assert_eq!(bench.metadata().state, TxnState::PrepareAbort);
}

#[test]
fn a_partition_that_is_part_already_is_not_written_again() {
    let (mut bench, who) = ongoing();
    let written = bench.log.len();
    assert_eq!(bench.add(who, &[3]), ErrorCode::None);
    assert_eq!(bench.log.len(), written);
    assert_eq!(bench.add(who, &[3, 4]), ErrorCode::None);
    assert_eq!(bench.log.len(), written + 1);
}

#[test]
fn a_batch_is_verified_only_for_a_partition_of_its_open_transaction() {
    let (mut bench, who) = ongoing();
    assert_eq!(bench.verify(who, 3), ErrorCode::None);
    assert_eq!(bench.verify(who, 4), ErrorCode::TransactionAbortable);
    assert_eq!(bench.verify(ProducerIdentity { id: 5, ..who }, 3), ErrorCode::InvalidProducerIdMapping);
    bench.end(V1, who, true).unwrap();
    assert_eq!(bench.verify(who, 3), ErrorCode::ConcurrentTransactions);
    bench.write_markers();
    assert_eq!(bench.verify(who, 3), ErrorCode::TransactionAbortable, "that transaction is over");
}

#[test]
fn a_batch_that_begins_a_transaction_waits_for_the_end_of_the_one_before() {
    let (mut bench, who) = ongoing();
    let next = bench.end(V2, who, true).unwrap();
    assert_eq!(bench.add_patiently(next, 7), None);
    assert_eq!(bench.add(next, &[7]), ErrorCode::ConcurrentTransactions, "who is not patient comes again");
    bench.write_markers();
    assert_eq!(bench.late.len(), 1, "answered when the markers are written");
    assert_eq!(bench.metadata().state, TxnState::Ongoing);
    assert!(bench.metadata().partitions["orders"].contains(&7));
}

#[test]
fn a_batch_that_waits_for_too_long_is_told_to_come_again() {
    let (mut bench, who) = ongoing();
    let next = bench.end(V2, who, true).unwrap();
    assert_eq!(bench.add_patiently(next, 7), None);
    bench.pass(60);
    assert_eq!(bench.add_patiently(next, 8), None);
    bench.pass(40);
    assert_eq!(bench.late.len(), 1);
    bench.pass(60);
    assert_eq!(bench.late.len(), 2);
    assert!(bench.late.iter().all(|(_, reply)| format!("{reply:?}").contains("ConcurrentTransactions")));
    bench.write_markers();
    assert_eq!((bench.late.len(), bench.metadata().state), (2, TxnState::CompleteCommit));
}

#[test]
fn a_coordinator_whose_wall_clock_is_behind_waits_no_longer_than_the_time_out() {
    let (mut bench, _) = ongoing();
    bench.set_ms = -3_600_000;
    bench.restart();
    bench.pass(i64::from(TIMEOUT_MS));
    assert_eq!(bench.metadata().state, TxnState::PrepareAbort);
}

#[test]
fn the_age_of_an_open_transaction_is_the_same_whatever_the_wall_clock_is_set_to() {
    let (mut bench, _) = ongoing();
    let open_for = |bench: &Bench, ms: i64| {
        let filter = TxnFilter { duration_ms: ms, ..TxnFilter::default() };
        !bench.machine.list(&filter, |_| true, bench.now()).is_empty()
    };
    bench.pass(20);
    for set_ms in [0, -3_600_000, 3_600_000] {
        bench.set_ms = set_ms;
        assert!(open_for(&bench, 19) && !open_for(&bench, 20), "the clock was set by {set_ms} ms");
    }
}

#[test]
fn a_wall_clock_that_is_set_moves_no_time_out() {
    for set_ms in [-3_600_000, 3_600_000] {
        let mut bench = Bench::new();
        let who = bench.init().unwrap();
        assert_eq!(bench.add(who, &[0]), ErrorCode::None);
        bench.pass(1);
        bench.set_ms = set_ms;
        assert_eq!(bench.add(who, &[1]), ErrorCode::None);
        bench.pass(i64::from(TIMEOUT_MS) - 2);
        assert_eq!(bench.metadata().state, TxnState::Ongoing, "the clock was set by {set_ms} ms");
        bench.pass(1);
        assert_eq!(bench.metadata().state, TxnState::PrepareAbort, "the clock was set by {set_ms} ms");
        bench.write_markers();
        let expiration_ms = bench.settings.transactional_id_expiration_ms;
        bench.set_ms = 0;
        bench.pass(expiration_ms - 1);
        assert!(bench.machine.transaction(ID).is_some());
        bench.pass(1);
        assert!(bench.machine.transaction(ID).is_none());
    }
}
