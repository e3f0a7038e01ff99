//! Record batches -> Arrow: each column, null, range and limit; and what is refused.
#![allow(clippy::unwrap_used)]
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use proptest::prelude::*;
use pylog_columnar::{BatchDecoder, Column, DecodeOptions, schema};
use pylog_record::{BatchBuilder, Codec, HeaderRef, batches, layout};

const LIMITLESS: DecodeOptions = DecodeOptions {
    batch_bytes: usize::MAX,
    max_rows: usize::MAX,
    max_decompressed_bytes: 1024 * 1024,
    check_crcs: true,
};

/// One batch of values `value-<offset>` at these offsets' first.
fn batch(base_offset: i64, count: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_base_offset(base_offset);
    for offset in base_offset..base_offset + count {
        let value = format!("value-{offset}");
        builder.append(offset, None, Some(value.as_bytes()), &[]).unwrap();
    }
    builder.finish(Codec::None).unwrap()
}

fn decoder(columns: &[Column], range: Range<i64>, options: DecodeOptions) -> BatchDecoder {
    BatchDecoder::new(columns, "flights", 3, range, options)
}

fn drain(decoder: &mut BatchDecoder) -> Vec<RecordBatch> {
    std::iter::from_fn(|| decoder.flush().unwrap()).collect()
}

fn decode(columns: &[Column], range: Range<i64>, options: DecodeOptions, log: &[u8]) -> Vec<RecordBatch> {
    let mut decoder = decoder(columns, range, options);
    for view in batches(log) {
        decoder.push(&view.unwrap()).unwrap();
    }
    drain(&mut decoder)
}

fn offsets(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("offset").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

fn all_offsets(found: &[RecordBatch]) -> Vec<i64> {
    found.iter().flat_map(offsets).collect()
}

/// Makes the CRC fit again.
fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[layout::ATTRIBUTES..]);
    batch[layout::CRC..layout::CRC + 4].copy_from_slice(&crc.to_be_bytes());
}

/// Key and no headers; no key and two headers, one of them neither UTF-8 nor with a value; a tombstone.
fn three_kinds(codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_base_offset(70);
    builder.append(1000, Some(b"k"), Some(b"one"), &[]).unwrap();
    let headers = [HeaderRef { key: b"a", value: Some(b"x") }, HeaderRef { key: b"\xff", value: None }];
    builder.append(-1, None, Some(b""), &headers).unwrap();
    builder.append(3000, Some(b""), None, &[]).unwrap();
    builder.finish(codec).unwrap()
}

#[test]
fn every_column_has_the_connectors_type_and_the_records_value() {
    for codec in Codec::ALL {
        let found = decode(&Column::ALL, 0..1000, LIMITLESS, &three_kinds(codec));
        let [rows] = &found[..] else { panic!("{} batches", found.len()) };
        let binary =
            |name: &str| rows.column_by_name(name).unwrap().as_binary::<i32>().iter().collect::<Vec<_>>();
        assert_eq!(binary("key"), [Some(&b"k"[..]), None, Some(b"")]);
        assert_eq!(binary("value"), [Some(&b"one"[..]), Some(b""), None]);
        assert_eq!(offsets(rows), [70, 71, 72]);
        let topics = rows.column_by_name("topic").unwrap().as_string::<i32>();
        assert_eq!(topics.iter().collect::<Vec<_>>(), [Some("flights"); 3]);
        let ints =
            |name: &str| rows.column_by_name(name).unwrap().as_primitive::<Int32Type>().values().to_vec();
        assert_eq!((ints("partition"), ints("timestampType")), (vec![3; 3], vec![0; 3]));
        let times = rows.column_by_name("timestamp").unwrap().as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.values().to_vec(), [1_000_000, -1000, 3_000_000]);
        assert_eq!(times.data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        check_headers(rows);
    }
}

fn check_headers(rows: &RecordBatch) {
    let lists = rows.column_by_name("headers").unwrap().as_list::<i32>();
    assert_eq!((0..3).map(|row| lists.is_valid(row)).collect::<Vec<_>>(), [false, true, false]);
    let items = lists.value(1);
    let items = items.as_struct();
    assert_eq!(items.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("\u{fffd}")]);
    assert_eq!(items.column(1).as_binary::<i32>().iter().collect::<Vec<_>>(), [Some(&b"x"[..]), None]);
}

#[test]
fn only_the_columns_asked_for_come_in_the_order_asked() {
    let asked = [Column::Offset, Column::Value];
    let found = decode(&asked, 0..10, LIMITLESS, &batch(0, 10));
    assert_eq!(found[0].schema(), schema(&asked));
    assert!(found[0].schema().fields().iter().all(|field| field.is_nullable()));
    assert_eq!(found[0].columns().len(), 2);
    let none = decode(&[], 0..10, LIMITLESS, &batch(0, 10));
    assert_eq!(none[0].num_rows(), 10);
    let twice = decode(&[Column::Value, Column::Value], 0..10, LIMITLESS, &batch(0, 10));
    assert_eq!(twice[0].column(0), twice[0].column(1));
}

#[test]
fn a_column_without_a_null_has_no_null_buffer() {
    let found = decode(&[Column::Value, Column::Key], 0..10, LIMITLESS, &batch(0, 10));
    assert!(found[0].column(0).nulls().is_none());
    assert_eq!(found[0].column(1).null_count(), 10);
}

#[test]
fn rows_outside_the_range_are_left_out_and_the_end_is_seen() {
    let log = [batch(0, 10), batch(10, 10), batch(20, 10)].concat();
    for (start, end) in [(0, 30), (5, 25), (9, 11), (10, 20), (19, 20), (29, 30), (7, 7)] {
        let found = decode(&[Column::Offset], start..end, LIMITLESS, &log);
        assert_eq!(all_offsets(&found), (start..end).collect::<Vec<_>>(), "{start}..{end}");
    }
    let mut decoder = decoder(&[Column::Offset], 5..15, LIMITLESS);
    for (view, next) in batches(&log).zip([10, 15, 15]) {
        decoder.push(&view.unwrap()).unwrap();
        assert_eq!((decoder.next_offset(), decoder.at_end()), (next, next == 15));
    }
}

#[test]
fn a_batch_that_is_pushed_twice_gives_its_rows_once() {
    let log = [batch(0, 10), batch(0, 10), batch(10, 5)].concat();
    let found = decode(&[Column::Offset], 0..100, LIMITLESS, &log);
    assert_eq!(all_offsets(&found), (0..15).collect::<Vec<_>>());
}

#[test]
fn an_arrow_batch_ends_at_its_rows_or_bytes_and_nothing_is_lost() {
    let log = [batch(0, 100), batch(100, 3), batch(103, 97)].concat();
    let by_rows = decode(&[Column::Offset], 0..200, DecodeOptions { max_rows: 30, ..LIMITLESS }, &log);
    let sizes: Vec<_> = by_rows.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [30, 30, 30, 30, 30, 30, 20]);
    assert_eq!(all_offsets(&by_rows), (0..200).collect::<Vec<_>>());
    let by_bytes = decode(
        &[Column::Offset, Column::Value],
        0..200,
        DecodeOptions { batch_bytes: 500, ..LIMITLESS },
        &log,
    );
    assert_eq!(all_offsets(&by_bytes), (0..200).collect::<Vec<_>>());
    for found in &by_bytes {
        let values = found.column_by_name("value").unwrap().as_binary::<i32>();
        assert!(values.value_data().len() <= 510, "{}", values.value_data().len());
        for (row, offset) in offsets(found).into_iter().enumerate() {
            assert_eq!(values.value(row), format!("value-{offset}").as_bytes());
        }
    }
}

#[test]
fn full_batches_are_ready_before_the_flush() {
    let mut decoder = decoder(&[Column::Offset], 0..200, DecodeOptions { max_rows: 40, ..LIMITLESS });
    decoder.push(&batches(&batch(0, 100)).next().unwrap().unwrap()).unwrap();
    assert_eq!(decoder.next_batch().unwrap().num_rows(), 40);
    assert_eq!(decoder.next_batch().unwrap().num_rows(), 40);
    assert!(decoder.next_batch().is_none());
    assert_eq!(decoder.pending_rows(), 20);
}

#[test]
fn append_time_replaces_the_timestamps_and_shows_in_timestamp_type() {
    let mut stamped = batch(10, 10);
    stamped[layout::ATTRIBUTES + 1] |= layout::ATTR_LOG_APPEND_TIME as u8;
    stamped[layout::MAX_TIMESTAMP..layout::MAX_TIMESTAMP + 8].copy_from_slice(&77_i64.to_be_bytes());
    seal(&mut stamped);
    let log = [batch(0, 10), stamped, batch(20, 10)].concat();
    let found = decode(&[Column::Timestamp, Column::TimestampType], 0..30, LIMITLESS, &log);
    let kinds: Vec<_> =
        found.iter().map(|rows| rows.column(1).as_primitive::<Int32Type>().value(0)).collect();
    assert_eq!(kinds, [0, 1, 0]);
    let times = found[1].column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.values().to_vec(), [77_000; 10]);
}

#[test]
fn a_batch_with_holes_keeps_its_offsets() {
    let mut compacted = batch(0, 3);
    // What compaction leaves: records 0 to 2 of a batch that once had ten.
    compacted[layout::LAST_OFFSET_DELTA..layout::LAST_OFFSET_DELTA + 4].copy_from_slice(&9_i32.to_be_bytes());
    seal(&mut compacted);
    let mut decoder = decoder(&[Column::Offset], 0..100, LIMITLESS);
    decoder.push(&batches(&compacted).next().unwrap().unwrap()).unwrap();
    assert_eq!(decoder.next_offset(), 10);
    assert_eq!(all_offsets(&drain(&mut decoder)), [0, 1, 2]);
}

#[test]
fn a_flipped_byte_is_an_error_that_names_topic_partition_and_offset() {
    let good = batch(40, 10);
    for at in layout::CRC..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let mut decoder = decoder(&[Column::Value], 0..100, LIMITLESS);
        let error = decoder.push(&batches(&bad).next().unwrap().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("topic flights, partition 3, batch at offset 40: CRC mismatch"), "{error}");
        assert_eq!(decoder.pending_rows(), 0);
    }
}

#[test]
fn damage_behind_a_valid_crc_is_an_error_or_harmless_but_never_a_panic() {
    for codec in Codec::ALL {
        let good = three_kinds(codec);
        for at in layout::ATTRIBUTES..good.len() {
            for flip in [0x01, 0x40, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                seal(&mut bad);
                let mut decoder = decoder(&Column::ALL, 0..1000, LIMITLESS);
                if decoder.push(&batches(&bad).next().unwrap().unwrap()).is_ok() {
                    let rows: usize = drain(&mut decoder).iter().map(RecordBatch::num_rows).sum();
                    assert!(rows <= 3);
                }
            }
        }
    }
}

proptest! {
    /// A bounded fuzz run of the decoder; PROPTEST_CASES widens it.
    #[test]
    fn any_damage_behind_a_valid_crc_gives_an_error_or_few_rows(
        codec in proptest::sample::select(Codec::ALL.to_vec()),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
        keep in any::<usize>(),
    ) {
        let mut bad = three_kinds(codec);
        for (at, byte) in damage {
            let at = layout::ATTRIBUTES + at % (bad.len() - layout::ATTRIBUTES);
            bad[at] = byte;
        }
        bad.truncate(layout::HEADER_LEN + keep % (bad.len() - layout::HEADER_LEN + 1));
        let length = (bad.len() - layout::LOG_OVERHEAD) as i32;
        bad[layout::BATCH_LENGTH..layout::BATCH_LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        seal(&mut bad);
        let mut decoder = decoder(&Column::ALL, 0..1000, LIMITLESS);
        if decoder.push(&batches(&bad).next().unwrap().unwrap()).is_ok() {
            let rows: usize = drain(&mut decoder).iter().map(RecordBatch::num_rows).sum();
            prop_assert!(rows <= bad.len());
        }
    }
}

#[test]
fn a_flipped_bit_in_the_last_offset_does_not_make_a_batch_skipped() {
    let good = batch(40, 32);
    for bit in 0..32 {
        let mut bad = good.clone();
        bad[layout::LAST_OFFSET_DELTA + bit / 8] ^= 1 << (bit % 8);
        let mut decoder = decoder(&[Column::Value], 65..100, LIMITLESS);
        assert!(decoder.push(&batches(&bad).next().unwrap().unwrap()).is_err(), "bit {bit}");
    }
}

#[test]
fn records_that_decompress_to_more_than_allowed_are_refused() {
    for codec in &Codec::ALL[1..] {
        let mut builder = BatchBuilder::new();
        builder.append(0, None, Some(&[0; 100_000]), &[]).unwrap();
        let bytes = builder.finish(*codec).unwrap();
        let options = DecodeOptions { max_decompressed_bytes: 50_000, ..LIMITLESS };
        let mut decoder = decoder(&[Column::Value], 0..10, options);
        let error = decoder.push(&batches(&bytes).next().unwrap().unwrap()).unwrap_err().to_string();
        assert!(error.ends_with("the records decompress to more than the 50000 bytes allowed"), "{error}");
    }
}
