//! Runs of offsets that are laid over others: for each offset the state that comes later in its life stays.
use std::collections::BTreeMap;

use pylog_wire::stored::shares::StateBatch;

/// Delivery count and delivery state of the offsets of a run.
type DeliveryState = (i16, i8);

/// `batches` over `runs`, of the offsets from `start` on.
pub fn laid_over(runs: &[StateBatch], batches: &[StateBatch], start: i64) -> Vec<StateBatch> {
    let mut laid: BTreeMap<i64, (i64, DeliveryState)> = BTreeMap::new();
    for batch in runs.iter().chain(batches) {
        let first = batch.first_offset.max(start);
        if first <= batch.last_offset && batch.last_offset < i64::MAX {
            lay(&mut laid, first, batch.last_offset, delivery_of(batch));
        }
    }
    let mut joined: Vec<StateBatch> = Vec::new();
    for (first_offset, (last_offset, delivery)) in laid {
        match joined.last_mut() {
            Some(before) if before.last_offset + 1 == first_offset && delivery_of(before) == delivery => {
                before.last_offset = last_offset;
            }
            _ => {
                let (delivery_count, delivery_state) = delivery;
                joined.push(StateBatch { first_offset, last_offset, delivery_state, delivery_count });
            }
        }
    }
    joined
}

/// How many offsets are done with.
pub fn complete_count(runs: &[StateBatch]) -> i32 {
    let done = runs.iter().filter(|run| run.delivery_state != 0);
    let count: i64 = done.map(|run| run.last_offset - run.first_offset + 1).sum();
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn delivery_of(batch: &StateBatch) -> DeliveryState {
    (batch.delivery_count, batch.delivery_state)
}

/// Which of two stays: a final state before any other, then the larger delivery count.
fn later(one: DeliveryState, other: DeliveryState) -> DeliveryState {
    let order = |(count, state): DeliveryState| (state != 0, count, state);
    if order(one) >= order(other) { one } else { other }
}

fn lay(laid: &mut BTreeMap<i64, (i64, DeliveryState)>, first: i64, last: i64, delivery: DeliveryState) {
    split(laid, first);
    split(laid, last + 1);
    let mut holes = Vec::new();
    let mut next = first;
    for (at, (run_last, before)) in laid.range_mut(first..=last) {
        if *at > next {
            holes.push((next, *at - 1));
        }
        *before = later(*before, delivery);
        next = *run_last + 1;
    }
    if next <= last {
        holes.push((next, last));
    }
    laid.extend(holes.into_iter().map(|(first, last)| (first, (last, delivery))));
}

/// A run begins at `offset` if it is within one.
fn split(laid: &mut BTreeMap<i64, (i64, DeliveryState)>, offset: i64) {
    let Some((_, (last, delivery))) = laid.range_mut(..offset).next_back() else { return };
    if *last >= offset {
        let behind = (*last, *delivery);
        *last = offset - 1;
        laid.insert(offset, behind);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run((first_offset, length, delivery_state, delivery_count): (i64, i64, i8, i16)) -> StateBatch {
        StateBatch { first_offset, last_offset: first_offset + length - 1, delivery_state, delivery_count }
    }

    fn by_offset(runs: &[StateBatch]) -> BTreeMap<i64, DeliveryState> {
        let each = runs.iter().flat_map(|run| {
            let delivery = delivery_of(run);
            (run.first_offset..=run.last_offset).map(move |offset| (offset, delivery))
        });
        each.collect()
    }

    fn some() -> impl Strategy<Value = Vec<StateBatch>> {
        let state = prop_oneof![Just(0i8), Just(2), Just(4)];
        prop::collection::vec((0..30i64, 1..9i64, state, 0..4i16).prop_map(run), 0..8)
    }

    proptest! {
        #[test]
        fn each_offset_has_the_latest_of_its_fates(runs in some(), batches in some(), start in 0..20i64) {
            let before = laid_over(&[], &runs, 0);
            let after = laid_over(&before, &batches, start);
            let mut expected: BTreeMap<i64, DeliveryState> = BTreeMap::new();
            for batch in runs.iter().chain(&batches) {
                for offset in batch.first_offset.max(start)..=batch.last_offset {
                    let delivery = delivery_of(batch);
                    expected.entry(offset).and_modify(|known| *known = later(*known, delivery)).or_insert(delivery);
                }
            }
            prop_assert_eq!(by_offset(&after), expected);
            prop_assert!(after.windows(2).all(|pair| pair[0].last_offset < pair[1].first_offset));
            // What comes late, or again, changes nothing.
            prop_assert_eq!(&laid_over(&after, &batches, start), &after);
            prop_assert_eq!(&laid_over(&after, &runs, start), &after);
        }
    }
}
