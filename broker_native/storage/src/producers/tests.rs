//! The rules, each against what Kafka 4.4 answers.
use super::verification::Verifications;
use super::*;

const CONTROL: i16 = 0x30;
const TRANSACTIONAL: i16 = 0x10;

fn batch(id: i64, epoch: i16, base_sequence: i32, records: i32, base_offset: i64) -> BatchHeader {
    BatchHeader {
        base_offset,
        batch_length: 100,
        partition_leader_epoch: 0,
        crc: 0,
        attributes: 0,
        last_offset_delta: records - 1,
        base_timestamp: 0,
        max_timestamp: 7,
        producer_id: id,
        producer_epoch: epoch,
        base_sequence,
        records_count: records,
    }
}

fn in_txn(id: i64, epoch: i16, base_sequence: i32, base_offset: i64) -> BatchHeader {
    BatchHeader { attributes: TRANSACTIONAL, ..batch(id, epoch, base_sequence, 1, base_offset) }
}

fn at() -> TopicPartition {
    TopicPartition::new("t", 0)
}

fn check_sequence(producers: &Producers, header: BatchHeader) -> Result<SequenceCheck, StorageError> {
    producers.check_sequence(
        &header,
        Origin::Client,
        VerifiedBatch { verified: true, ..VerifiedBatch::default() },
        &at(),
    )
}

fn end(producers: &mut Producers, id: i64, epoch: i16, marker: Marker, offset: i64) -> Option<EndedTxn> {
    let header = BatchHeader { attributes: CONTROL, max_timestamp: 99, ..batch(id, epoch, -1, 1, offset) };
    producers.note(&header, Some(EndTxn { marker, coordinator_epoch: 3 }), 0)
}

fn marker(epoch: i16, coordinator_epoch: i32, transaction_version: i16) -> TxnMarker {
    TxnMarker {
        producer_id: 1,
        producer_epoch: epoch,
        marker: Marker::Abort,
        coordinator_epoch,
        transaction_version,
    }
}

#[test]
fn each_of_the_last_five_batches_is_answered_with_its_first_offsets() {
    let mut producers = Producers::default();
    (0..7).for_each(|i| _ = producers.note(&batch(9, 0, i * 10, 10, i64::from(i) * 10 + 100), None, 0));
    for i in 2..7 {
        let first = i64::from(i) * 10 + 100;
        let found = check_sequence(&producers, batch(9, 0, i * 10, 10, 0)).unwrap();
        assert!(
            matches!(found, SequenceCheck::Duplicate { base_offset, last_offset, .. } if (base_offset, last_offset) == (first, first + 9)),
            "{found:?}"
        );
    }
    let older = check_sequence(&producers, batch(9, 0, 10, 10, 0));
    assert!(matches!(older, Err(StorageError::OutOfOrderSequence { expected: 70, .. })), "{older:?}");
    assert_eq!(check_sequence(&producers, batch(9, 0, 70, 3, 0)).unwrap(), SequenceCheck::New);
}

#[test]
fn sequences_of_a_transaction_that_has_ended_are_not_taken_for_a_retry() {
    let mut producers = Producers::default();
    producers.note(&in_txn(1, 0, 0, 0), None, 0);
    let retry = check_sequence(&producers, in_txn(1, 0, 0, 9)).unwrap();
    assert!(matches!(retry, SequenceCheck::Duplicate { base_offset: 0, .. }), "while it is open: {retry:?}");
    end(&mut producers, 1, 0, Marker::Abort, 1);
    let ended = check_sequence(&producers, in_txn(1, 0, 0, 9));
    assert!(matches!(ended, Err(StorageError::SequencesOfEndedTxn { found: 0, .. })), "{ended:?}");
    producers.note(&in_txn(1, 0, 1, 2), None, 0);
    let older = check_sequence(&producers, in_txn(1, 0, 0, 9));
    assert!(matches!(older, Err(StorageError::SequencesOfEndedTxn { .. })), "beside an open one: {older:?}");
    let open = check_sequence(&producers, in_txn(1, 0, 1, 9)).unwrap();
    assert!(matches!(open, SequenceCheck::Duplicate { base_offset: 2, .. }), "{open:?}");
    let restored = Producers::from_snapshot(&producers.to_snapshot(), 0).unwrap();
    assert!(check_sequence(&restored, in_txn(1, 0, 0, 9)).is_err(), "after a restart");
}

#[test]
fn a_gap_an_old_epoch_and_a_new_epoch_not_at_zero_are_refused() {
    let mut producers = Producers::default();
    assert_eq!(
        check_sequence(&producers, batch(1, 0, 55, 1, 0)).unwrap(),
        SequenceCheck::New,
        "an unknown producer"
    );
    producers.note(&batch(1, 3, 0, 4, 0), None, 0);
    let gap = check_sequence(&producers, batch(1, 3, 5, 1, 0));
    assert!(matches!(gap, Err(StorageError::OutOfOrderSequence { expected: 4, found: 5, .. })), "{gap:?}");
    let old = check_sequence(&producers, batch(1, 2, 4, 1, 0));
    assert!(matches!(old, Err(StorageError::InvalidProducerEpoch { found: 2, current: 3, .. })), "{old:?}");
    let late = check_sequence(&producers, batch(1, 4, 4, 1, 0));
    assert!(matches!(late, Err(StorageError::OutOfOrderSequence { expected: 0, .. })), "{late:?}");
    assert_eq!(check_sequence(&producers, batch(1, 4, 0, 1, 0)).unwrap(), SequenceCheck::New);
}

#[test]
fn sequences_continue_at_zero_behind_the_largest() {
    let mut producers = Producers::default();
    producers.note(&batch(1, 0, i32::MAX - 1, 3, 0), None, 0);
    assert_eq!(check_sequence(&producers, batch(1, 0, 1, 1, 0)).unwrap(), SequenceCheck::New);
    assert!(check_sequence(&producers, batch(1, 0, 2, 1, 0)).is_err());
    producers.note(&batch(2, 0, i32::MAX, 1, 5), None, 0);
    assert_eq!(check_sequence(&producers, batch(2, 0, 0, 1, 0)).unwrap(), SequenceCheck::New);
}

#[test]
fn a_marker_of_a_new_epoch_lets_sequences_begin_again_and_one_of_the_same_does_not() {
    let mut producers = Producers::default();
    producers.note(&in_txn(1, 0, 0, 0), None, 0);
    end(&mut producers, 1, 0, Marker::Commit, 1);
    assert_eq!(
        check_sequence(&producers, in_txn(1, 0, 1, 2)).unwrap(),
        SequenceCheck::New,
        "the next transaction goes on"
    );
    assert!(check_sequence(&producers, in_txn(1, 0, 2, 2)).is_err());
    producers.note(&in_txn(1, 0, 1, 2), None, 0);
    end(&mut producers, 1, 1, Marker::Commit, 3);
    let late = check_sequence(&producers, in_txn(1, 0, 2, 4));
    assert!(matches!(late, Err(StorageError::InvalidProducerEpoch { .. })), "a late batch: {late:?}");
    let gap = check_sequence(&producers, in_txn(1, 1, 2, 4));
    assert!(matches!(gap, Err(StorageError::OutOfOrderSequence { expected: 0, .. })), "{gap:?}");
    assert_eq!(check_sequence(&producers, in_txn(1, 1, 0, 4)).unwrap(), SequenceCheck::New);
}

#[test]
fn a_marker_of_an_old_epoch_or_of_an_old_coordinator_is_refused() {
    let mut producers = Producers::default();
    assert!(producers.check_marker(&marker(0, 0, 1), &at()).is_ok(), "an unknown producer");
    producers.note(&in_txn(1, 5, 0, 0), None, 0);
    let old = producers.check_marker(&marker(4, 9, 1), &at());
    assert!(matches!(old, Err(StorageError::InvalidProducerEpoch { found: 4, current: 5, .. })), "{old:?}");
    end(&mut producers, 1, 5, Marker::Commit, 1);
    let fenced = producers.check_marker(&marker(5, 2, 1), &at());
    assert!(
        matches!(fenced, Err(StorageError::TransactionCoordinatorFenced { found: 2, current: 3, .. })),
        "{fenced:?}"
    );
    assert!(producers.check_marker(&marker(5, 3, 1), &at()).is_ok());
}

#[test]
fn kip_1228_a_marker_of_transaction_version_two_must_have_a_larger_epoch() {
    let mut producers = Producers::default();
    producers.note(&in_txn(1, 5, 0, 0), None, 0);
    let same = producers.check_marker(&marker(5, 3, 2), &at());
    assert!(matches!(same, Err(StorageError::InvalidProducerEpoch { found: 5, current: 5, .. })), "{same:?}");
    assert!(producers.check_marker(&marker(5, 3, 1), &at()).is_ok(), "the older protocol does not bump");
    assert!(producers.check_marker(&marker(6, 3, 2), &at()).is_ok());
    end(&mut producers, 1, 6, Marker::Abort, 1);
    assert!(producers.check_marker(&marker(6, 3, 2), &at()).is_ok(), "the same marker again");
    assert!(producers.check_marker(&marker(5, 3, 2), &at()).is_err());
    producers.note(&in_txn(1, i16::MAX, 0, 2), None, 0);
    assert!(producers.check_marker(&marker(i16::MAX, 3, 2), &at()).is_ok(), "no epoch is larger");
}

#[test]
fn a_batch_outside_the_open_transaction_and_a_first_batch_without_verification_are_refused() {
    let mut producers = Producers::default();
    let unverified = |producers: &Producers, header: BatchHeader, origin| {
        producers.check_sequence(&header, origin, VerifiedBatch::default(), &at())
    };
    let first = unverified(&producers, in_txn(1, 0, 0, 0), Origin::Client);
    assert!(matches!(first, Err(StorageError::Unverified { .. })), "{first:?}");
    assert!(unverified(&producers, in_txn(1, 0, -1, 0), Origin::Coordinator).is_ok());
    producers.note(&in_txn(1, 0, 0, 0), None, 0);
    assert!(unverified(&producers, in_txn(1, 0, 1, 1), Origin::Client).is_ok(), "the second batch");
    let plain = check_sequence(&producers, batch(1, 0, 1, 1, 1));
    assert!(matches!(plain, Err(StorageError::InvalidTxnState { .. })), "{plain:?}");
    let next = unverified(&producers, in_txn(1, 1, 0, 1), Origin::Client);
    assert!(matches!(next, Err(StorageError::Unverified { .. })), "another epoch: {next:?}");
}

#[test]
fn a_verification_counts_until_a_marker_or_a_batch_and_not_for_the_next_transaction() {
    let mut verifications = Verifications::default();
    let header = in_txn(1, 0, 4, 0);
    let first = verifications.begin(1, 0, 4, false, 0);
    assert!(verifications.claim(&header, Some(first)).verified);
    assert!(!verifications.claim(&header, None).verified);
    verifications.end(1);
    assert!(!verifications.claim(&header, Some(first)).verified, "the transaction ended meanwhile");
    let second = verifications.begin(1, 0, 4, false, 0);
    assert!(!verifications.claim(&header, Some(first)).verified, "an answer about the transaction before");
    assert_eq!(verifications.begin(1, 0, 5, false, 0), second, "batches that wait together share the number");
    verifications.expire(1);
    assert!(!verifications.claim(&header, Some(second)).verified, "nobody came back");
}

#[test]
fn of_the_batches_that_wait_for_verification_the_smallest_sequence_goes_first() {
    let mut verifications = Verifications::default();
    let known = verifications.begin(1, 0, 4, false, 0);
    verifications.begin(1, 0, 2, false, 0);
    let producers = Producers::default();
    let check_sequence = |sequence| {
        let header = in_txn(1, 0, sequence, 0);
        producers.check_sequence(&header, Origin::Client, verifications.claim(&header, Some(known)), &at())
    };
    assert!(matches!(check_sequence(4), Err(StorageError::OutOfOrderSequence { expected: 2, .. })));
    assert_eq!(check_sequence(2).unwrap(), SequenceCheck::New);
}

#[test]
fn an_unknown_producer_whose_epoch_is_bumped_at_each_end_begins_at_zero() {
    let claim = VerifiedBatch { verified: true, epoch_bumps: true, ..VerifiedBatch::default() };
    let producers = Producers::default();
    let check_sequence =
        |sequence| producers.check_sequence(&in_txn(1, 0, sequence, 0), Origin::Client, claim, &at());
    assert!(matches!(check_sequence(3), Err(StorageError::OutOfOrderSequence { expected: 0, .. })));
    assert_eq!(check_sequence(0).unwrap(), SequenceCheck::New);
}

#[test]
fn an_aborted_transaction_tells_what_stays_open_behind_it() {
    let mut producers = Producers::default();
    producers.note(&in_txn(1, 0, 0, 10), None, 0);
    producers.note(&in_txn(2, 0, 0, 11), None, 0);
    producers.note(&in_txn(1, 0, 1, 12), None, 0);
    assert_eq!(producers.first_open_offset(), Some(10));
    let first = end(&mut producers, 1, 0, Marker::Abort, 13).unwrap();
    let entry = AbortedTxn { producer_id: 1, first_offset: 10, last_offset: 13, last_stable_offset: 11 };
    assert_eq!(first.aborted(), Some(entry));
    assert_eq!(end(&mut producers, 1, 0, Marker::Abort, 14), None, "nothing is open any more");
    let second = end(&mut producers, 2, 0, Marker::Commit, 15).unwrap();
    assert_eq!((second.aborted(), second.txn.last_stable_offset), (None, 16));
    assert_eq!(producers.first_open_offset(), None);
}

#[test]
fn a_snapshot_keeps_five_batches_of_each_producer() {
    let mut producers = Producers::default();
    (0..9).for_each(|i| _ = producers.note(&batch(i64::from(i % 2), 0, i / 2, 1, i.into()), None, 5));
    let bytes = producers.to_snapshot();
    assert_eq!(Producers::from_snapshot(&bytes, 5), Some(producers));
}

#[test]
fn a_snapshot_keeps_open_transactions_and_what_markers_said() {
    let mut producers = Producers::default();
    producers.note(&in_txn(1, 0, 0, 10), None, 0);
    producers.note(&in_txn(2, 0, 0, 11), None, 0);
    end(&mut producers, 2, 1, Marker::Commit, 12);
    let kept = Producers::from_snapshot(&producers.to_snapshot(), 0).unwrap();
    assert_eq!(kept.infos(), producers.infos());
    assert_eq!(kept.first_open_offset(), Some(10));
    let info = kept.infos()[1];
    assert_eq!((info.producer_epoch, info.coordinator_epoch, info.last_sequence), (1, 3, -1));
    assert_eq!((info.last_timestamp, info.txn_first_offset), (99, None));
}

#[test]
fn a_damaged_snapshot_is_refused_at_every_byte() {
    let mut producers = Producers::default();
    producers.note(&batch(1, 0, 0, 1, 0), None, 0);
    let bytes = producers.to_snapshot();
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x10;
        assert_eq!(Producers::from_snapshot(&damaged, 0), None, "byte {i}");
        assert_eq!(Producers::from_snapshot(&bytes[..i], 0), None, "cut at {i}");
    }
}

#[test]
fn an_idle_producer_expires_but_not_with_an_open_transaction() {
    let mut producers = Producers::default();
    producers.note(&batch(1, 0, 0, 1, 0), None, 10);
    producers.note(&in_txn(2, 0, 0, 1), None, 10);
    assert_eq!(producers.first_open_offset(), Some(1));
    producers.expire(11, 0);
    assert_eq!(producers.infos().iter().map(|info| info.producer_id).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_producer_whose_epoch_was_raised_by_the_end_of_its_transaction_expires_after_ten_minutes() {
    let mut producers = Producers::default();
    let (ids, day_ms) = ([1, 2, 3, 4], 86_400_000);
    ids.iter().for_each(|id| _ = producers.note(&in_txn(*id, 0, 0, *id), None, 0));
    end(&mut producers, 1, 1, Marker::Commit, 10);
    end(&mut producers, 2, 1, Marker::Abort, 11);
    end(&mut producers, 3, 0, Marker::Commit, 12);
    let known = |producers: &Producers| -> Vec<i64> {
        producers.infos().iter().map(|info| info.producer_id).collect()
    };
    producers.expire(600_000, day_ms);
    assert_eq!(known(&producers), ids);
    let mut kept = Producers::from_snapshot(&producers.to_snapshot(), 0).unwrap();
    for producers in [&mut producers, &mut kept] {
        producers.expire(600_001, day_ms);
        assert_eq!(known(producers), [3, 4], "sequences go on, and the other is open");
    }
    producers.expire(day_ms + 1, day_ms);
    assert_eq!(known(&producers), [4]);
    let late = check_sequence(&producers, in_txn(1, 0, 1, 20));
    assert!(late.is_ok(), "whoever was verified by the coordinator may write");
    let unverified =
        producers.check_sequence(&in_txn(1, 0, 1, 20), Origin::Client, VerifiedBatch::default(), &at());
    assert!(matches!(unverified, Err(StorageError::Unverified { .. })));
}

#[test]
fn of_too_many_producers_those_that_wrote_longest_ago_are_forgotten_but_for_open_transactions() {
    let mut producers = Producers::default();
    for id in 0..110 {
        let header = if id < 5 { in_txn(id, 0, 0, id) } else { batch(id, 0, 0, 1, id) };
        producers.note(&header, None, id);
    }
    assert_eq!(producers.bound(110), 0);
    assert_eq!(producers.bound(100), 20);
    let left: Vec<i64> = producers.infos().iter().map(|info| info.producer_id).collect();
    assert_eq!(left, (0..5).chain(25..110).collect::<Vec<_>>());
    assert_eq!(producers.bound(3), 85, "those with an open transaction stay");
}

#[test]
fn what_compaction_has_left_of_an_ended_transaction_opens_none_and_keeps_the_sequences() {
    let mut producers = Producers::default();
    producers.note(&BatchHeader { records_count: 0, ..in_txn(1, 0, 4, 10) }, None, 0);
    assert_eq!((producers.first_open_offset(), producers.epoch(1)), (None, Some(0)));
    assert!(matches!(
        check_sequence(&producers, in_txn(1, 0, 9, 20)),
        Err(StorageError::OutOfOrderSequence { expected: 5, .. })
    ));
    assert_eq!(end(&mut producers, 1, 0, Marker::Commit, 11), None, "its marker may be there or not");
    producers.note(&in_txn(1, 0, 5, 20), None, 0);
    assert_eq!(producers.first_open_offset(), Some(20));
}
