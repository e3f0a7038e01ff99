//! Rows that a filter does not want are never built, and none that it wants is lost.
#![allow(clippy::unwrap_used)]
use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use proptest::prelude::*;
use pylog_columnar::{BatchDecoder, Column, DecodeOptions, KeyCondition, RowFilter};
use pylog_record::{BatchBuilder, Codec, batches, layout};

type Row = (i64, Option<Vec<u8>>);

/// A batch of these timestamps and keys from `base_offset` on.
fn batch(base_offset: i64, rows: &[Row], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_base_offset(base_offset);
    for (timestamp, key) in rows {
        builder.append(*timestamp, key.as_deref(), Some(b"v"), &[]).unwrap();
    }
    builder.finish(codec).unwrap()
}

fn decoder(filter: &RowFilter, max_rows: usize) -> BatchDecoder {
    let options = DecodeOptions { max_rows, ..DecodeOptions::default() };
    BatchDecoder::new(&[Column::Offset], "t", 0, 0..i64::MAX, options).with_filter(filter.clone())
}

fn push(decoder: &mut BatchDecoder, log: &[u8]) {
    for view in batches(log) {
        decoder.push(&view.unwrap()).unwrap();
    }
}

fn offsets(decoder: &mut BatchDecoder) -> Vec<i64> {
    let drained: Vec<RecordBatch> = std::iter::from_fn(|| decoder.flush().unwrap()).collect();
    drained.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn taken(filter: &RowFilter, log: &[u8]) -> Vec<i64> {
    let mut decoder = decoder(filter, 3);
    push(&mut decoder, log);
    offsets(&mut decoder)
}

fn times(spans: &[(i64, i64)]) -> RowFilter {
    RowFilter { timestamps: Some(spans.to_vec()), keys: vec![] }
}

fn at(timestamps: &[i64]) -> Vec<Row> {
    timestamps.iter().map(|timestamp| (*timestamp, None)).collect()
}

/// Makes the CRC fit again.
fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[layout::ATTRIBUTES..]);
    batch[layout::CRC..layout::CRC + 4].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn timestamps_without_order_are_looked_at_one_by_one() {
    let log = batch(0, &at(&[50, 10, 30, 90, 20]), Codec::None);
    assert_eq!(taken(&times(&[(20, 50)]), &log), [0, 2, 4]);
    assert_eq!(taken(&times(&[(10, 10), (90, i64::MAX)]), &log), [1, 3]);
    assert_eq!(taken(&times(&[]), &log), [0_i64; 0]);
}

#[test]
fn a_batch_whose_header_proves_that_all_is_too_old_is_not_decompressed() {
    let mut log = batch(0, &at(&[10, 20]), Codec::Zstd);
    let last = log.len() - 1;
    log[last] ^= 0xff;
    seal(&mut log);
    assert_eq!(taken(&times(&[(21, 30)]), &log), [0_i64; 0]);
    let mut decoder = decoder(&times(&[(20, 30)]), 3);
    assert!(decoder.push(&batches(&log).next().unwrap().unwrap()).is_err());
}

#[test]
fn a_header_that_its_records_contradict_hides_nothing() {
    for wrong in [-1_i64, 5] {
        let mut log = batch(0, &at(&[10, 20]), Codec::None);
        log[layout::MAX_TIMESTAMP..layout::MAX_TIMESTAMP + 8].copy_from_slice(&wrong.to_be_bytes());
        seal(&mut log);
        assert_eq!(taken(&times(&[(20, 30)]), &log), [1]);
    }
}

#[test]
fn append_time_is_the_headers_and_decides_for_all_rows() {
    let mut log = batch(0, &at(&[10, 20]), Codec::None);
    log[layout::ATTRIBUTES + 1] |= layout::ATTR_LOG_APPEND_TIME as u8;
    log[layout::MAX_TIMESTAMP..layout::MAX_TIMESTAMP + 8].copy_from_slice(&77_i64.to_be_bytes());
    seal(&mut log);
    assert_eq!(taken(&times(&[(77, 77)]), &log), [0, 1]);
    assert_eq!(taken(&times(&[(0, 76), (78, 99)]), &log), [0_i64; 0]);
}

#[test]
fn the_rows_of_a_limit_are_the_first_and_the_range_ends_with_them() {
    let log = [batch(0, &at(&[1; 5]), Codec::None), batch(5, &at(&[1; 5]), Codec::None)].concat();
    for most in [1, 4, 5, 6, 10, 11] {
        let mut decoder = decoder(&RowFilter::default(), 3).with_row_limit(most);
        push(&mut decoder, &log);
        let expected: Vec<i64> = (0..most.min(10) as i64).collect();
        assert_eq!((offsets(&mut decoder), decoder.at_end()), (expected, most <= 10), "{most}");
        assert_eq!(decoder.rows_left(), most - most.min(10));
    }
}

#[test]
fn a_limit_counts_only_rows_that_are_wanted() {
    let log = batch(0, &at(&[1, 9, 1, 9, 1, 9]), Codec::None);
    let mut decoder = decoder(&times(&[(9, 9)]), 3).with_row_limit(2);
    push(&mut decoder, &log);
    assert_eq!((offsets(&mut decoder), decoder.next_offset()), (vec![1, 3], 4));
}

#[test]
fn resuming_after_filtered_rows_repeats_and_loses_nothing() {
    let log = batch(0, &at(&[9, 1, 9, 1, 9, 1, 1]), Codec::None);
    let mut decoder = decoder(&times(&[(9, 9)]), 1);
    push(&mut decoder, &log);
    let mut seen = Vec::new();
    while let Some(rows) = decoder.flush().unwrap() {
        seen.extend(rows.column(0).as_primitive::<Int64Type>().values().to_vec());
        let resumed = {
            let range = decoder.resume_offset()..i64::MAX;
            let mut again = BatchDecoder::new(&[Column::Offset], "t", 0, range, DecodeOptions::default())
                .with_filter(times(&[(9, 9)]));
            push(&mut again, &log);
            offsets(&mut again)
        };
        let all: Vec<i64> = seen.iter().copied().chain(resumed).collect();
        assert_eq!(all, [0, 2, 4]);
    }
    assert_eq!(seen, [0, 2, 4]);
}

fn any_key() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(proptest::collection::vec(0_u8..4, 0..3))
}

fn any_condition() -> impl Strategy<Value = KeyCondition> {
    let keys = proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..3), 0..4);
    prop_oneof![
        (keys.clone(), any::<bool>())
            .prop_map(|(keys, null)| KeyCondition::In { keys: HashSet::from_iter(keys), null }),
        keys.prop_map(KeyCondition::Prefix),
        (any_key(), any_key()).prop_map(|(low, high)| KeyCondition::Range { low, high }),
    ]
}

fn meets(condition: &KeyCondition, key: Option<&Vec<u8>>) -> bool {
    match (condition, key) {
        (KeyCondition::In { null, .. }, None) => *null,
        (_, None) => false,
        (KeyCondition::In { keys, .. }, Some(key)) => keys.iter().any(|one| one == key),
        (KeyCondition::Prefix(prefixes), Some(key)) => prefixes.iter().any(|one| key.starts_with(one)),
        (KeyCondition::Range { low, high }, Some(key)) => {
            low.as_ref().is_none_or(|low| key >= low) && high.as_ref().is_none_or(|high| key < high)
        }
    }
}

proptest! {
    /// Whatever the batches, the codec and the conditions: the rows are those that meet every condition.
    #[test]
    fn exactly_the_rows_that_meet_every_condition_are_taken(
        sizes in proptest::collection::vec(proptest::collection::vec((-1_i64..30, any_key()), 1..8), 1..5),
        codec in proptest::sample::select(Codec::ALL.to_vec()),
        spans in proptest::option::of(proptest::collection::btree_map(0_i64..30, 0_i64..4, 0..3)),
        keys in proptest::collection::vec(any_condition(), 0..3),
    ) {
        // Ascending spans that do not overlap.
        let timestamps = spans.map(|spans| {
            let mut spans: Vec<(i64, i64)> = spans.into_iter().map(|(first, more)| (first, first + more)).collect();
            spans.dedup_by(|next, last| next.0 <= last.1);
            spans
        });
        let filter = RowFilter { timestamps, keys };
        let (mut log, mut expected, mut offset) = (Vec::new(), Vec::new(), 0);
        for rows in &sizes {
            log.extend(batch(offset, rows, codec));
            for (timestamp, key) in rows {
                let in_time = filter.timestamps.as_ref()
                    .is_none_or(|spans| spans.iter().any(|(first, last)| first <= timestamp && timestamp <= last));
                if in_time && filter.keys.iter().all(|condition| meets(condition, key.as_ref())) {
                    expected.push(offset);
                }
                offset += 1;
            }
        }
        prop_assert_eq!(taken(&filter, &log), expected);
    }
}
