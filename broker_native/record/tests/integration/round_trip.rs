//! Batches that the builder makes are what the validator accepts and the reader gives back, with every codec; and
//! whatever the bytes are, nothing panics and nothing grows past its bound.
#![allow(clippy::unwrap_used)]
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pylog_record::compression::{compress, decompress};
use pylog_record::validate::validate_produce;
use pylog_record::{
    BatchBuilder, BatchError, Codec, HeaderRef, RecordRef, batches, batches::body, layout, records,
};

const MIB: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
struct Row {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..max)
}

fn row() -> impl Strategy<Value = Row> {
    let headers = vec((bytes(9), option::of(bytes(9))), 0..4);
    (any::<i64>(), option::of(bytes(80)), option::of(bytes(300)), headers)
        .prop_map(|(timestamp, key, value, headers)| Row { timestamp, key, value, headers })
}

fn codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(Codec::ALL.to_vec())
}

fn build(rows: &[Row], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for row in rows {
        let headers: Vec<_> =
            row.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
        builder.append(row.timestamp, row.key.as_deref(), row.value.as_deref(), &headers).unwrap();
    }
    builder.finish(codec).unwrap()
}

fn read(batch: &[u8], max_bytes: usize) -> Result<Vec<Row>, BatchError> {
    let (header, batch) = batches(batch).next().ok_or(BatchError::Malformed("cut"))??;
    let records_bytes = decompress(Codec::from_attributes(header.attributes)?, body(batch), max_bytes)?;
    let mut rows = Vec::new();
    for record in records(&records_bytes, &header) {
        rows.push(to_row(&record?)?);
    }
    Ok(rows)
}

fn to_row(record: &RecordRef<'_>) -> Result<Row, BatchError> {
    let headers: Result<Vec<_>, BatchError> = record
        .headers
        .iter()
        .map(|header| header.map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec))))
        .collect();
    Ok(Row {
        timestamp: record.timestamp,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: headers?,
    })
}

proptest! {
    #[test]
    fn what_the_builder_wrote_the_reader_gives_back(rows in vec(row(), 1..40), codec in codec()) {
        let batch = build(&rows, codec);
        let info = validate_produce(&batch, MIB).unwrap();
        prop_assert_eq!(info.records_count as usize, rows.len());
        prop_assert_eq!(info.codec, codec);
        prop_assert_eq!(read(&batch, MIB).unwrap(), rows);
    }

    #[test]
    fn a_flipped_bit_after_the_crc_is_refused(rows in vec(row(), 1..5), codec in codec(), at in any::<usize>(), bit in 0..8) {
        let mut batch = build(&rows, codec);
        let at = layout::CRC + at % (batch.len() - layout::CRC);
        batch[at] ^= 1_u8 << bit;
        let refused = matches!(validate_produce(&batch, MIB), Err(BatchError::Crc { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn a_mutated_batch_is_read_or_refused_within_its_bound(
        rows in vec(row(), 1..20),
        codec in codec(),
        damage in vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let mut batch = build(&rows, codec);
        for (at, byte) in damage {
            let at = at % batch.len();
            batch[at] = byte;
        }
        let total = |row: &Row| row.value.as_ref().map_or(0, Vec::len) + row.key.as_ref().map_or(0, Vec::len);
        if let Ok(rows) = read(&batch, MIB) {
            prop_assert!(rows.iter().map(total).sum::<usize>() <= MIB);
        }
    }

    #[test]
    fn random_bytes_are_refused_or_read_within_the_bound(noise in bytes(2000), codec in codec()) {
        if let Ok(out) = decompress(codec, &noise, 10_000) {
            prop_assert!(out.len() <= 10_000);
        }
        prop_assert!(validate_produce(&noise, MIB).is_err());
    }

    #[test]
    fn compressed_bytes_come_back(data in bytes(5000), codec in codec()) {
        let packed = compress(codec, None, &data).unwrap();
        prop_assert_eq!(&decompress(codec, &packed, data.len()).unwrap()[..], &data[..]);
        if !data.is_empty() && codec != Codec::None {
            prop_assert_eq!(decompress(codec, &packed, data.len() - 1), Err(BatchError::Decompressed(data.len() as u64 - 1)));
        }
    }
}

#[test]
fn a_partial_tail_ends_the_run_quietly() {
    let batch =
        build(&[Row { timestamp: 1, key: None, value: Some(b"v".to_vec()), headers: vec![] }], Codec::None);
    let mut run = batch.clone();
    run.extend_from_slice(&batch);
    for cut in 0..batch.len() {
        let mut iter = batches(&run[..batch.len() + cut]);
        assert_eq!(iter.next().unwrap().unwrap().1, &batch[..]);
        assert!(iter.next().is_none());
        assert_eq!(iter.rest().len(), cut);
    }
    assert_eq!(batches(&run).count(), 2);
}
