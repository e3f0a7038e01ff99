//! The `kafka-protocol` crate reads what the builder writes, and the reader reads what that crate writes.
#![allow(clippy::unwrap_used)]
use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pylog_record::{BatchBuilder, Codec, HeaderRef, batches, batches::body, records};

type Row = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Option<Vec<u8>>)>);

fn row() -> impl Strategy<Value = Row> {
    let bytes = |max| option::of(vec(any::<u8>(), 0..max));
    // The oracle keeps headers in a map: one of a key.
    let headers = proptest::collection::btree_map("[a-z]{0,9}", bytes(20), 0..4);
    (0..4_000_000_000_000_i64, bytes(100), bytes(300), headers.prop_map(|map| map.into_iter().collect()))
}

fn to_oracle(offset: usize, (timestamp, key, value, headers): &Row) -> Record {
    let headers: IndexMap<_, _> = headers
        .iter()
        .map(|(key, value)| (StrBytes::from_string(key.clone()), value.clone().map(Bytes::from)))
        .collect();
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: offset as i64,
        sequence: -1 + offset as i32,
        timestamp: *timestamp,
        key: key.clone().map(Bytes::from),
        value: value.clone().map(Bytes::from),
        headers,
    }
}

fn build(rows: &[Row]) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (timestamp, key, value, headers) in rows {
        let headers: Vec<_> = headers
            .iter()
            .map(|(key, value)| HeaderRef { key: key.as_bytes(), value: value.as_deref() })
            .collect();
        builder.append(*timestamp, key.as_deref(), value.as_deref(), &headers).unwrap();
    }
    builder.finish(Codec::None).unwrap()
}

fn read(bytes: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    for view in batches(bytes) {
        let (header, batch) = view.unwrap();
        header.verify_crc(batch).unwrap();
        for record in records(body(batch), &header) {
            let record = record.unwrap();
            let headers = record.headers.iter().map(Result::unwrap);
            let headers = headers
                .map(|h| (String::from_utf8(h.key.to_vec()).unwrap(), h.value.map(<[u8]>::to_vec)))
                .collect();
            let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
            rows.push((record.timestamp, key, value, headers));
        }
    }
    rows
}

proptest! {
    #[test]
    fn the_oracle_reads_what_the_builder_writes(rows in vec(row(), 1..30)) {
        let mut bytes = Bytes::from(build(&rows));
        let set = RecordBatchDecoder::decode(&mut bytes).unwrap();
        prop_assert_eq!(set.records.len(), rows.len());
        for (number, (seen, row)) in set.records.iter().zip(&rows).enumerate() {
            let wanted = to_oracle(number, row);
            prop_assert_eq!(
                (seen.offset, seen.timestamp, &seen.key, &seen.value, &seen.headers),
                (wanted.offset, wanted.timestamp, &wanted.key, &wanted.value, &wanted.headers)
            );
        }
    }

    #[test]
    fn the_reader_reads_what_the_oracle_writes(rows in vec(row(), 1..30)) {
        let records: Vec<_> = rows.iter().enumerate().map(|(number, row)| to_oracle(number, row)).collect();
        let options = RecordEncodeOptions { version: 2, compression: Compression::None };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        prop_assert_eq!(read(&bytes), rows);
    }
}
