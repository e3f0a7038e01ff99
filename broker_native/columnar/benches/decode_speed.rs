//! How fast record batches become Arrow batches and back, on one core, in M rows/s (best of several runs).
//!
//! `cargo bench -p pylog-columnar --bench decode_speed -- [value bytes] [only lines that contain this]`
#![allow(clippy::unwrap_used)]
use std::hint::black_box;
use std::time::Instant;

use arrow_array::RecordBatch;
use pylog_columnar::{BatchDecoder, Column, DecodeOptions, RowSource};
use pylog_record::compression::decompress;
use pylog_record::validate::validate_produce;
use pylog_record::{BatchBuilder, Codec, HeaderRef, batches, batches::body, records};

const RUNS: usize = 7;
const ROWS: usize = 1_000_000;
/// `batch.size` of a busy producer.
const BATCH_BYTES: usize = 256 * 1024;

fn main() {
    let value_bytes = std::env::args().nth(1).map_or(100, |arg| arg.parse().unwrap());
    println!("{ROWS} rows, values of {value_bytes} B, keys of 8 B, batches of {BATCH_BYTES} B; M rows/s");
    let log = make_log(value_bytes, Codec::None, false);
    report("walk", || walk(&log));
    report("validate", || validate(&log));
    let value = [Column::Value];
    let seven = &Column::ALL[..7];
    report("decode value", || decode(&log, &value, true));
    report("decode value, offset", || decode(&log, &[Column::Value, Column::Offset], true));
    report("decode value, without CRC", || decode(&log, &value, false));
    report("decode 7 columns", || decode(&log, seven, true));
    let with_headers = make_log(value_bytes, Codec::None, true);
    report("decode 8 columns, 1 header", || decode(&with_headers, &Column::ALL, true));
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let what = format!("decode value, {}", codec.name());
        if wanted(&what) {
            let packed = make_log(value_bytes, codec, false);
            report(&what, || decode(&packed, &value, true));
        }
    }
    let arrow = arrow_batches(&log);
    report("encode value, key", || encode(&arrow, Codec::None));
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        report(&format!("encode value, key, {}", codec.name()), || encode(&arrow, codec));
    }
}

/// Whether the command line asks for this line.
fn wanted(what: &str) -> bool {
    std::env::args().nth(2).is_none_or(|part| what.contains(&part))
}

fn report(what: &str, mut run: impl FnMut() -> usize) {
    if !wanted(what) {
        return;
    }
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        assert_eq!(run(), ROWS, "{what}");
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what:32} {:8.1}", ROWS as f64 / best / 1e6);
}

/// Values that compress about threefold, like JSON.
fn make_log(value_bytes: usize, codec: Codec, headers: bool) -> Vec<u8> {
    let mut log = Vec::new();
    let mut builder = BatchBuilder::with_capacity(BATCH_BYTES);
    let mut state = 88_172_645_463_325_252_u64;
    let header = [HeaderRef { key: b"trace", value: Some(b"0123456789abcdef") }];
    let mut base = 0_i64;
    for row in 0..ROWS {
        let mut value = Vec::with_capacity(value_bytes + 32);
        while value.len() < value_bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value.extend_from_slice(
                format!("{{\"number\": {}, \"name\": \"x\"}} ", state % 100_000).as_bytes(),
            );
        }
        value.truncate(value_bytes);
        let headers = if headers { &header[..] } else { &[] };
        builder
            .append(1_700_000_000_000 + row as i64, Some(&state.to_le_bytes()), Some(&value), headers)
            .unwrap();
        if builder.size_bytes() >= BATCH_BYTES || row + 1 == ROWS {
            builder.set_base_offset(base);
            base += i64::from(builder.records_count());
            builder.finish_into(codec, None, &mut log).unwrap();
        }
    }
    log
}

fn walk(log: &[u8]) -> usize {
    let mut rows = 0;
    for view in batches(log) {
        let (header, batch) = view.unwrap();
        let plain = decompress(Codec::None, body(batch), usize::MAX).unwrap();
        for record in records(&plain, &header) {
            black_box(&record.unwrap());
            rows += 1;
        }
    }
    rows
}

fn validate(log: &[u8]) -> usize {
    let mut rows = 0;
    let mut copy = Vec::new();
    for view in batches(log) {
        let (header, batch) = view.unwrap();
        copy.clear();
        copy.extend_from_slice(batch);
        copy[..8].fill(0);
        rows += validate_produce(&copy, usize::MAX).unwrap().records_count as usize;
        assert!(header.records_count > 0);
    }
    rows
}

fn decode(log: &[u8], columns: &[Column], check_crcs: bool) -> usize {
    let options = DecodeOptions { check_crcs, ..DecodeOptions::default() };
    let mut decoder = BatchDecoder::new(columns, "flights-of-a-day", 3, 0..i64::MAX, options);
    let mut rows = 0;
    for view in batches(log) {
        decoder.push(&view.unwrap()).unwrap();
        while let Some(batch) = decoder.next_batch() {
            rows += batch.num_rows();
            black_box(batch);
        }
    }
    while let Some(batch) = decoder.flush().unwrap() {
        rows += batch.num_rows();
    }
    rows
}

fn arrow_batches(log: &[u8]) -> Vec<RecordBatch> {
    let columns = [Column::Key, Column::Value];
    let mut decoder = BatchDecoder::new(&columns, "t", 0, 0..i64::MAX, DecodeOptions::default());
    let mut out = Vec::new();
    for view in batches(log) {
        decoder.push(&view.unwrap()).unwrap();
    }
    while let Some(batch) = decoder.flush().unwrap() {
        out.push(batch);
    }
    out
}

fn encode(arrow: &[RecordBatch], codec: Codec) -> usize {
    let mut builder = BatchBuilder::with_capacity(BATCH_BYTES);
    let (mut rows, mut out, mut headers) = (0, Vec::new(), Vec::new());
    for batch in arrow {
        let source = RowSource::new(batch, Some("t")).unwrap();
        for at in 0..source.len() {
            let row = source.row(at, &mut headers).unwrap();
            row.append_to(&mut builder, &headers, 1_700_000_000_000).unwrap();
            rows += 1;
            if builder.size_bytes() >= BATCH_BYTES {
                out.clear();
                builder.finish_into(codec, None, &mut out).unwrap();
            }
        }
    }
    black_box(out);
    rows
}
