//! One window, step by step.
use std::sync::Arc;

use crate::share::acknowledge::Terms;
use crate::share::acquire::AcquireLimits;
use crate::share::partition::RecordState;
use crate::share::state_requests::{StoredState, Written};
use crate::share::{Acquired, LogBatch, SharePartition, merge, stored};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

pub const LIMIT: i16 = 3;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const RENEW: i8 = 4;

pub fn batch(first_offset: i64, last_offset: i64) -> LogBatch {
    LogBatch { first_offset, last_offset, is_void: false }
}

pub fn wish(max_records: i64) -> AcquireLimits {
    AcquireLimits {
        max_records,
        exact: false,
        max_in_flight: 100,
        delivery_count_limit: LIMIT,
        until_ms: 1_000,
    }
}

pub fn said(first_offset: i64, last_offset: i64, types: &[i8]) -> AcknowledgementBatch {
    AcknowledgementBatch { first_offset, last_offset, acknowledge_types: types.to_vec() }
}

pub const TERMS: Terms = Terms { delivery_count_limit: LIMIT, until_ms: 2_000 };

/// `(first, last, delivery count)`.
fn runs(acquired: &[Acquired]) -> Vec<(i64, i64, i16)> {
    acquired.iter().map(|run| (run.first_offset, run.last_offset, run.delivery_count)).collect()
}

fn member(name: &str) -> Arc<str> {
    Arc::from(name)
}

/// The state after a crash.
pub fn reloaded(partition: &SharePartition) -> SharePartition {
    let Written { state_epoch, start_offset, batches, .. } =
        stored::written(partition, /* leader epoch */ 3);
    stored::partition_of(&StoredState { state_epoch, start_offset, batches })
}

#[test]
fn two_members_get_different_records_in_whole_batches() {
    let mut window = SharePartition::new(10);
    let log = [batch(8, 12), batch(13, 14), batch(15, 30)];
    assert_eq!(runs(&window.acquire(&member("a"), 10, &log, wish(4))), [(10, 12, 1), (13, 14, 1)]);
    assert_eq!(window.next_offset(100), Some(15));
    assert_eq!(runs(&window.acquire(&member("b"), 10, &log, wish(1))), [(15, 30, 1)]);
    assert_eq!(runs(&window.acquire(&member("b"), 10, &log, wish(1))), []);
    assert_eq!((window.start_offset(), window.end_offset()), (10, 31));
}

#[test]
fn who_wants_no_more_than_a_number_gets_no_more() {
    let mut window = SharePartition::new(0);
    let exact = AcquireLimits { exact: true, ..wish(3) };
    assert_eq!(runs(&window.acquire(&member("a"), 0, &[batch(0, 9)], exact)), [(0, 2, 1)]);
    assert_eq!(runs(&window.acquire(&member("b"), 3, &[batch(0, 9)], exact)), [(3, 5, 1)]);
}

#[test]
fn no_more_records_are_in_flight_than_may_be() {
    let mut window = SharePartition::new(0);
    let few = AcquireLimits { max_in_flight: 4, ..wish(100) };
    assert_eq!(runs(&window.acquire(&member("a"), 0, &[batch(0, 9), batch(10, 12)], few)), [(0, 3, 1)]);
    assert_eq!(window.next_offset(4), None);
    assert_eq!(window.acknowledge("a", &[said(1, 3, &[ACCEPT])], TERMS), Ok(()));
    assert_eq!(window.next_offset(4), None, "the first one holds the window");
    assert_eq!(window.acknowledge("a", &[said(0, 0, &[RELEASE])], TERMS), Ok(()));
    assert_eq!(window.next_offset(4), Some(0));
    assert_eq!(runs(&window.acquire(&member("b"), 0, &[batch(0, 9)], few)), [(0, 0, 2)]);
    assert_eq!(window.acknowledge("b", &[said(0, 0, &[ACCEPT])], TERMS), Ok(()));
    assert_eq!((window.start_offset(), window.next_offset(4)), (4, Some(4)));
}

#[test]
fn each_record_of_a_batch_may_meet_another_fate() {
    let mut window = SharePartition::new(0);
    window.acquire(&member("a"), 0, &[batch(0, 5)], wish(10));
    let fates = [ACCEPT, RELEASE, REJECT, ACCEPT, RENEW, /* gap */ 0];
    assert_eq!(window.acknowledge("a", &[said(0, 5, &fates)], TERMS), Ok(()));
    assert_eq!(window.start_offset(), 1);
    assert_eq!(window.next_offset(100), Some(1));
    assert_eq!(merge::complete_count(&stored::written(&window, 0).batches), 3);
    assert_eq!(window.next_lock_ms(), Some(TERMS.until_ms));
    assert_eq!(runs(&window.acquire(&member("b"), 1, &[batch(0, 5)], wish(10))), [(1, 1, 2)]);
}

#[test]
fn what_a_member_does_not_hold_it_cannot_acknowledge_and_nothing_of_the_request_counts() {
    let mut window = SharePartition::new(0);
    window.acquire(&member("a"), 0, &[batch(0, 4)], wish(10));
    let before = window.clone();
    let both = [said(0, 1, &[ACCEPT]), said(2, 9, &[ACCEPT])];
    assert_eq!(window.acknowledge("a", &both, TERMS), Err(ErrorCode::InvalidRequest), "beyond the window");
    assert_eq!(window.acknowledge("b", &both[..1], TERMS), Err(ErrorCode::InvalidRecordState));
    let mut partly = window.clone();
    assert_eq!(partly.acknowledge("a", &[said(2, 2, &[RELEASE])], TERMS), Ok(()));
    let (half, whole) = (partly.clone(), [said(0, 1, &[ACCEPT]), said(2, 3, &[ACCEPT])]);
    assert_eq!(partly.acknowledge("a", &whole, TERMS), Err(ErrorCode::InvalidRecordState));
    assert_eq!(partly, half);
    for wrong in [said(1, 0, &[ACCEPT]), said(0, 2, &[ACCEPT, ACCEPT]), said(0, 0, &[9]), said(0, 1, &[])] {
        assert_eq!(window.acknowledge("a", &[wrong], TERMS), Err(ErrorCode::InvalidRequest));
    }
    let twice = [said(0, 1, &[ACCEPT]), said(1, 2, &[ACCEPT])];
    assert_eq!(window.acknowledge("a", &twice, TERMS), Err(ErrorCode::InvalidRequest));
    assert_eq!(window, before);
    assert_eq!(window.acknowledge("a", &[said(0, 4, &[ACCEPT])], TERMS), Ok(()));
    assert_eq!(window.acknowledge("a", &[said(0, 4, &[ACCEPT])], TERMS), Ok(()), "it is done with already");
}

#[test]
fn acknowledgements_of_what_nobody_holds_are_refused_without_taking_memory() {
    let mut window = SharePartition::new(0);
    assert_eq!(window.acknowledge("a", &[said(0, 9, &[ACCEPT])], TERMS), Err(ErrorCode::InvalidRecordState));
    window.acquire(&member("a"), 0, &[batch(0, 1), batch(i64::MAX - 9, i64::MAX - 5)], wish(10));
    for wrong in [said(0, i64::MAX, &[ACCEPT]), said(3, i64::MAX - 1, &[ACCEPT])] {
        assert_eq!(window.acknowledge("a", &[wrong], TERMS), Err(ErrorCode::InvalidRequest));
    }
    assert_eq!(
        window.acknowledge("a", &[said(0, i64::MAX - 5, &[ACCEPT])], TERMS),
        Err(ErrorCode::InvalidRecordState),
        "there is a hole between them"
    );
}

#[test]
fn what_is_done_with_already_is_passed_over_with_the_words_that_belong_to_it() {
    let mut window = SharePartition::new(0);
    window.acquire(&member("a"), 0, &[batch(0, 4)], wish(10));
    assert_eq!(window.acknowledge("a", &[said(0, 1, &[ACCEPT])], TERMS), Ok(()));
    let fates = [REJECT, REJECT, ACCEPT, RELEASE, ACCEPT];
    assert_eq!(window.acknowledge("a", &[said(0, 4, &fates)], TERMS), Ok(()));
    assert_eq!((window.start_offset(), window.next_offset(100)), (3, Some(3)));
}

#[test]
fn a_record_that_is_given_back_too_often_is_not_delivered_again() {
    let mut window = SharePartition::new(0);
    for delivery in 1..=LIMIT {
        let acquired = window.acquire(&member("a"), 0, &[batch(0, 0)], wish(10));
        assert_eq!(runs(&acquired), [(0, 0, delivery)]);
        assert!(!window.expire(999, TERMS));
        assert!(window.expire(1_000, TERMS));
    }
    assert_eq!((window.start_offset(), window.next_offset(100)), (1, Some(1)));
}

#[test]
fn a_record_that_ends_each_member_that_gets_it_takes_none_of_its_neighbours_along() {
    const POISON: i64 = 37;
    let limits = AcquireLimits { delivery_count_limit: 5, ..wish(100) };
    let terms = Terms { delivery_count_limit: 5, ..TERMS };
    let mut window = SharePartition::new(0);
    let (mut processed, mut ended) = (0, 0);
    while let Some(from) = window.next_offset(100).filter(|from| *from < 100) {
        let acquired = window.acquire(&member("a"), from, &[batch(0, 99)], limits);
        assert!(!acquired.is_empty() && acquired.iter().all(|run| run.delivery_count <= 5));
        if acquired.iter().any(|run| (run.first_offset..=run.last_offset).contains(&POISON)) {
            assert!(window.release("a", terms) && !window.release("a", terms));
            ended += 1;
            continue;
        }
        for run in acquired {
            let done = said(run.first_offset, run.last_offset, &[ACCEPT]);
            assert_eq!(window.acknowledge("a", &[done], terms), Ok(()));
            processed += run.last_offset - run.first_offset + 1;
        }
    }
    assert_eq!((processed, ended, window.start_offset()), (99, 5, 100));
}

#[test]
fn records_near_their_last_delivery_come_with_no_others() {
    let mut window = SharePartition::new(0);
    let log = [batch(0, 3), batch(4, 7)];
    for _ in 0..2 {
        assert_eq!(window.acquire(&member("a"), 0, &log[..1], wish(4)).len(), 1);
        assert!(window.release("a", TERMS));
    }
    assert_eq!(runs(&window.acquire(&member("a"), 0, &log, wish(100))), [(0, 0, 3)]);
    assert_eq!(runs(&window.acquire(&member("b"), 1, &log, wish(100))), [(1, 1, 3)]);
    window.acknowledge("a", &[said(0, 0, &[ACCEPT])], TERMS).unwrap();
    window.acknowledge("b", &[said(1, 1, &[ACCEPT])], TERMS).unwrap();
    assert_eq!(runs(&window.acquire(&member("a"), 2, &log, wish(100))), [(2, 2, 3)]);
    assert_eq!(runs(&window.acquire(&member("b"), 3, &log, wish(100))), [(3, 3, 3)]);
    assert_eq!(runs(&window.acquire(&member("c"), 3, &log, wish(100))), [(4, 7, 1)]);
}

#[test]
fn offsets_without_records_hold_nothing_up() {
    let mut window = SharePartition::new(0);
    let void = LogBatch { is_void: true, ..batch(6, 6) };
    let log = [batch(2, 3), void, batch(1_000_000, 1_000_001)];
    let few = AcquireLimits { max_in_flight: 10, ..wish(10) };
    let acquired = window.acquire(&member("a"), 0, &log, few);
    assert_eq!(runs(&acquired), [(2, 3, 1), (1_000_000, 1_000_001, 1)]);
    assert_eq!(window.start_offset(), 2);
    assert_eq!(window.acknowledge("a", &[said(2, 3, &[ACCEPT])], TERMS), Ok(()));
    assert_eq!(window.start_offset(), 1_000_000);
    // What was available is compacted away before somebody takes it.
    window.release("a", TERMS);
    window.acquire(&member("a"), 1_000_000, &[batch(1_000_001, 1_000_001)], few);
    assert_eq!(window.start_offset(), 1_000_001);
}

#[test]
fn the_window_fits_into_the_log() {
    let mut window = SharePartition::new(0);
    window.acquire(&member("a"), 0, &[batch(0, 9), batch(10, 19)], wish(100));
    window.fit(5, 15);
    assert_eq!((window.start_offset(), window.end_offset()), (5, 15));
    assert_eq!(window.acknowledge("a", &[said(0, 14, &[RELEASE])], TERMS), Ok(()));
    window.fit(30, 40);
    assert_eq!((window.start_offset(), window.end_offset(), window.runs().count()), (30, 30, 0));
    window.fit(0, 10);
    assert_eq!((window.start_offset(), window.end_offset()), (10, 10), "the log was cut by a crash");
}

#[test]
fn after_a_crash_what_was_held_is_delivered_again_and_what_was_done_is_not() {
    let mut window = SharePartition::new(0);
    window.acquire(&member("a"), 0, &[batch(0, 9)], wish(10));
    window
        .acknowledge("a", &[said(0, 1, &[ACCEPT]), said(3, 3, &[REJECT]), said(5, 5, &[RELEASE])], TERMS)
        .unwrap();
    window.acquire(&member("b"), 5, &[batch(0, 9)], wish(1));
    let mut after = reloaded(&window);
    assert_eq!((after.start_offset(), after.end_offset()), (2, 6));
    assert!(after.runs().all(|(_, run)| !matches!(run.state, RecordState::Acquired { .. })));
    let acquired = after.acquire(&member("c"), 2, &[batch(0, 9)], wish(100));
    assert_eq!(runs(&acquired), [(2, 2, 1), (4, 4, 1), (5, 5, 2), (6, 9, 1)]);
}
