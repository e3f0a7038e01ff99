//! Real bytes: what librdkafka and Java's client sent and Apache Kafka stored, in every codec, is read record by record;
//! and what the builder writes is, byte for byte, what those clients write. The files: fixtures/make_batches.py.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;
use std::path::Path;

use pylog_columnar::{BatchDecoder, Column, DecodeOptions};
use pylog_record::compression::decompress;
use pylog_record::control::{Marker, end_txn, end_txn_batch, marker};
use pylog_record::validate::validate_produce;
use pylog_record::{
    BatchBuilder, BatchError, BatchHeader, Codec, HeaderRef, batches, batches::body, layout, records,
};

const RECORDS: usize = 40;
const BASE_TIMESTAMP_MS: i64 = 1_700_000_000_000;
const MIB: usize = 1024 * 1024;

/// What `make_batches.py` put into record `number`: key, value, headers.
type Expected = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn expected(number: usize, client: &str, codec: Codec) -> Expected {
    let repeat = if codec == Codec::None { number } else { 20 * number };
    let key = (!number.is_multiple_of(5)).then(|| format!("key-{number}").into_bytes());
    let value = (number % 7 != 3).then(|| format!("value {number} ").repeat(repeat).into_bytes());
    let mut headers = Vec::new();
    if number % 4 == 1 {
        headers.push((b"n".to_vec(), Some(number.to_string().into_bytes())));
        if client == "librdkafka" {
            headers.push((b"null".to_vec(), None));
        }
    }
    (key, value, headers)
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).unwrap()
}

fn each_fixture(mut check: impl FnMut(&str, Codec, &[u8])) {
    for client in ["librdkafka", "java"] {
        for codec in Codec::ALL {
            check(client, codec, &fixture(&format!("{client}-{}.log", codec.name())));
        }
    }
}

#[test]
fn every_record_of_every_client_and_codec_is_read_as_it_was_sent() {
    each_fixture(|client, codec, bytes| {
        let mut number = 0;
        for view in batches(bytes) {
            let (header, batch) = view.unwrap();
            header.verify_crc(batch).unwrap();
            assert_eq!(Codec::from_attributes(header.attributes), Ok(codec), "{client} {codec:?}");
            let plain = decompress(codec, body(batch), MIB).unwrap();
            for record in records(&plain, &header) {
                let record = record.unwrap();
                let headers: Vec<_> = record.headers.iter().map(Result::unwrap).collect();
                let headers: Vec<_> =
                    headers.iter().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect();
                let seen = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec), headers);
                assert_eq!(seen, expected(number, client, codec), "{client} {codec:?} {number}");
                assert_eq!(record.offset, number as i64);
                if client == "librdkafka" {
                    let n = number as i64;
                    assert_eq!(record.timestamp, BASE_TIMESTAMP_MS + n * 1000 - (n % 3) * 10_000);
                }
                number += 1;
            }
        }
        assert_eq!(number, RECORDS, "{client} {codec:?}");
    });
}

#[test]
fn the_builder_writes_the_bytes_that_the_clients_write() {
    for client in ["librdkafka", "java"] {
        let bytes = fixture(&format!("{client}-none.log"));
        let mut rebuilt = Vec::new();
        for view in batches(&bytes) {
            rebuilt.extend_from_slice(&rebuild(&view.unwrap()));
        }
        assert_eq!(rebuilt, bytes, "{client}");
    }
}

fn rebuild((header, batch): &(BatchHeader, &[u8])) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_producer(header.producer_id, header.producer_epoch, header.base_sequence);
    builder.set_base_offset(header.base_offset);
    for record in records(body(batch), header) {
        let record = record.unwrap();
        let headers: Vec<HeaderRef<'_>> = record.headers.iter().map(Result::unwrap).collect();
        builder.append(record.timestamp, record.key, record.value, &headers).unwrap();
    }
    let mut out = builder.finish(Codec::None).unwrap();
    // The broker's own field.
    let at = layout::PARTITION_LEADER_EPOCH;
    out[at..at + 4].copy_from_slice(&header.partition_leader_epoch.to_be_bytes());
    out
}

#[test]
fn what_clients_send_passes_the_check_on_append() {
    each_fixture(|client, codec, bytes| {
        let (header, batch) = batches(bytes).next().unwrap().unwrap();
        let info = validate_produce(batch, MIB).unwrap();
        assert_eq!(
            (info.codec, info.header, info.max_timestamp),
            (codec, header, header.max_timestamp),
            "{client}"
        );
        let too_large = BatchError::TooLarge { size: batch.len() as u64, max: batch.len() as u64 - 1 };
        assert_eq!(validate_produce(batch, batch.len() - 1), Err(too_large));
    });
}

#[test]
fn markers_tell_commit_from_abort() {
    let bytes = fixture("transactions.log");
    let markers: Vec<_> = batches(&bytes)
        .map(Result::unwrap)
        .filter(|(header, _)| header.is_control())
        .map(|view| marker(&view).unwrap())
        .collect();
    assert_eq!(markers, [Some(Marker::Commit), Some(Marker::Abort), Some(Marker::Commit)]);
}

#[test]
fn markers_are_written_as_kafka_writes_them_to_the_byte() {
    let bytes = fixture("transactions.log");
    let mut compared = 0;
    for view in batches(&bytes).map(Result::unwrap).filter(|(header, _)| header.is_control()) {
        let (header, kafkas) = view;
        let end = end_txn(&view).unwrap().unwrap();
        let ours = end_txn_batch(header.producer_id, header.producer_epoch, end, header.base_timestamp);
        assert!(ours.unwrap()[layout::CRC..] == kafkas[layout::CRC..], "{header:?}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[test]
fn a_committed_reader_sees_the_committed_rows_only_and_an_uncommitted_one_all() {
    let bytes = fixture("transactions.log");
    let producer_id = batches(&bytes).next().unwrap().unwrap().0.producer_id;
    assert_eq!(offsets(&bytes, &[(producer_id, 4)]), BTreeSet::from([0, 1, 2, 8, 9, 10]));
    assert_eq!(offsets(&bytes, &[]), BTreeSet::from([0, 1, 2, 4, 5, 6, 8, 9, 10]));
}

fn offsets(bytes: &[u8], aborted: &[(i64, i64)]) -> BTreeSet<i64> {
    use arrow_array::cast::AsArray;
    let mut decoder =
        BatchDecoder::new(&[Column::Offset], "transactions", 0, 0..i64::MAX, DecodeOptions::default());
    decoder.add_aborted(aborted.iter().copied());
    for view in batches(bytes) {
        decoder.push(&view.unwrap()).unwrap();
    }
    assert_eq!(decoder.next_offset(), 12);
    let batch = decoder.flush().unwrap().unwrap();
    let column = batch.column(0).as_primitive::<arrow_array::types::Int64Type>();
    column.values().iter().copied().collect()
}

#[test]
fn the_layout_is_the_one_of_kafkas_documentation() {
    let starts = [
        layout::BASE_OFFSET,
        layout::BATCH_LENGTH,
        layout::PARTITION_LEADER_EPOCH,
        layout::MAGIC,
        layout::CRC,
        layout::ATTRIBUTES,
        layout::LAST_OFFSET_DELTA,
        layout::BASE_TIMESTAMP,
        layout::MAX_TIMESTAMP,
        layout::PRODUCER_ID,
        layout::PRODUCER_EPOCH,
        layout::BASE_SEQUENCE,
        layout::RECORDS_COUNT,
        layout::RECORDS,
    ];
    assert_eq!(starts, [0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61]);
}
