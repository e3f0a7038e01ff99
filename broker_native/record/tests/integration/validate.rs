//! What a broker refuses on append, case by case, and the claim of each record that no byte bears out.
#![allow(clippy::unwrap_used)]
use pylog_record::compression::compress;
use pylog_record::validate::{OPENED_BYTES_MAX, validate_produce};
use pylog_record::{BatchBuilder, BatchError, Codec, HeaderRef, layout};

const MAX: usize = 1024 * 1024;

fn good() -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.append(50, Some(b"k"), Some(b"one"), &[]).unwrap();
    builder.append(40, None, Some(b"two"), &[HeaderRef { key: b"h", value: None }]).unwrap();
    builder.append(60, Some(b"k"), None, &[]).unwrap();
    builder.finish(Codec::None).unwrap()
}

/// The batch with other bytes at a place, and a CRC that fits.
fn with<const N: usize>(at: usize, bytes: [u8; N]) -> Vec<u8> {
    let mut batch = good();
    batch[at..at + N].copy_from_slice(&bytes);
    seal(batch)
}

fn seal(mut batch: Vec<u8>) -> Vec<u8> {
    let length = (batch.len() - layout::LOG_OVERHEAD) as i32;
    batch[layout::BATCH_LENGTH..layout::BATCH_LENGTH + 4].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c::crc32c(&batch[layout::ATTRIBUTES..]);
    batch[layout::CRC..layout::CRC + 4].copy_from_slice(&crc.to_be_bytes());
    batch
}

fn refused(batch: &[u8]) -> String {
    validate_produce(batch, MAX).unwrap_err().to_string()
}

#[test]
fn a_good_batch_tells_its_count_times_and_keys() {
    let info = validate_produce(&good(), MAX).unwrap();
    assert_eq!((info.records_count, info.min_timestamp, info.max_timestamp), (3, 40, 60));
    assert_eq!((info.codec, info.all_keyed), (Codec::None, false));
}

/// The batch with its records compressed.
fn compressed(codec: Codec, batch: &[u8]) -> Vec<u8> {
    let body = compress(codec, None, &batch[layout::RECORDS..]).unwrap();
    let mut batch = [&batch[..layout::RECORDS], &body].concat();
    let attributes = i16::from_be_bytes(batch[layout::ATTRIBUTES..][..2].try_into().unwrap());
    let attributes = attributes | codec.attribute_bits();
    batch[layout::ATTRIBUTES..][..2].copy_from_slice(&attributes.to_be_bytes());
    seal(batch)
}

const COMPRESSED: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

#[test]
fn compressed_records_are_looked_at_as_others_are() {
    for codec in COMPRESSED {
        let info = validate_produce(&compressed(codec, &good()), MAX).unwrap();
        assert_eq!((info.records_count, info.min_timestamp, info.max_timestamp), (3, 40, 60));
        assert_eq!((info.codec, info.all_keyed), (codec, false));
        let first = layout::RECORDS;
        let lies = [
            (with(first, [0x01]), "a record of negative length"),
            (with(first, [0x02]), "a record ends in the middle of a field"),
            (with(first + 3, [0x02]), "offset deltas are not 0, 1, 2, ..."),
            (with(first + 4, [0x40]), "a record ends in the middle of a field"),
            (with(first + 6, [0x01]), "a record claims more headers than its bytes can hold"),
        ];
        for (batch, reason) in lies {
            assert_eq!(
                refused(&compressed(codec, &batch)),
                format!("malformed batch: {reason}"),
                "{codec:?}"
            );
        }
        let mut longer = good();
        longer.push(0);
        let longer = compressed(codec, &longer);
        assert_eq!(refused(&longer), "malformed batch: bytes follow the last record", "{codec:?}");
        let mut more = good();
        more[layout::LAST_OFFSET_DELTA..][..4].copy_from_slice(&3_i32.to_be_bytes());
        more[layout::RECORDS_COUNT..][..4].copy_from_slice(&4_i32.to_be_bytes());
        let more = compressed(codec, &more);
        assert_eq!(refused(&more), "malformed batch: fewer records than the header says", "{codec:?}");
        let mut nonsense = compressed(codec, &good());
        let body = layout::RECORDS..nonsense.len();
        nonsense[body].fill(0xA5);
        assert!(validate_produce(&seal(nonsense), MAX).is_err(), "{codec:?}");
    }
}

#[test]
fn records_of_every_length_around_the_window_are_looked_at_whole_in_every_codec() {
    let lengths = [0, 1, 100, 16_000, 65_520, 65_530, 65_536, 65_600, 200_000];
    for codec in COMPRESSED {
        for value in lengths {
            let value = vec![b'v'; value];
            let header = HeaderRef { key: b"h", value: Some(&value) };
            let mut builder = BatchBuilder::new();
            for (i, key) in [Some(&value[..]), Some(&b"k"[..]), None].into_iter().enumerate() {
                builder.append(70 + i as i64, key, Some(&value), &[header, header]).unwrap();
                builder.append(10, Some(b"k"), None, &[]).unwrap();
            }
            let info = validate_produce(&builder.finish(codec).unwrap(), MAX).unwrap();
            let seen = (info.records_count, info.min_timestamp, info.max_timestamp, info.all_keyed);
            assert_eq!(seen, (6, 10, 72, false), "{codec:?} {}", value.len());
        }
    }
}

#[test]
fn a_batch_that_opens_to_more_than_readers_take_is_refused() {
    let mut builder = BatchBuilder::new();
    let value = vec![0; OPENED_BYTES_MAX + 1];
    builder.append(0, None, Some(&value), &[]).unwrap();
    let bomb = builder.finish(Codec::Zstd).unwrap();
    assert!(bomb.len() < MAX);
    assert_eq!(validate_produce(&bomb, MAX), Err(BatchError::Decompressed(OPENED_BYTES_MAX as u64)));
}

#[test]
fn the_largest_timestamp_is_that_of_the_records_whatever_the_header_says() {
    for codec in Codec::ALL {
        let batch = match codec {
            Codec::None => with(layout::MAX_TIMESTAMP, (-1_i64).to_be_bytes()),
            codec => compressed(codec, &with(layout::MAX_TIMESTAMP, (-1_i64).to_be_bytes())),
        };
        let mut info = validate_produce(&batch, MAX).unwrap();
        assert_eq!((info.max_timestamp, info.header.max_timestamp), (60, -1));
        let mut corrected = batch.clone();
        info.header.set_max_timestamp(&mut corrected, info.max_timestamp);
        assert_eq!(validate_produce(&corrected, MAX).unwrap().header, info.header, "its CRC fits");
        assert_eq!(info.header.max_timestamp, 60);
    }
}

#[test]
fn each_contradiction_in_the_header_is_refused_by_name() {
    let attributes = |bits: i16| with(layout::ATTRIBUTES, bits.to_be_bytes());
    let cases = [
        (with(layout::BASE_OFFSET, 5_i64.to_be_bytes()), "the base offset of a produced batch is not 0"),
        (with(layout::RECORDS_COUNT, 0_i32.to_be_bytes()), "a produced batch without records"),
        (with(layout::RECORDS_COUNT, (-3_i32).to_be_bytes()), "a produced batch without records"),
        (with(layout::RECORDS_COUNT, 4_i32.to_be_bytes()), "the offset range and the record count differ"),
        (
            with(layout::LAST_OFFSET_DELTA, i32::MAX.to_be_bytes()),
            "the offset range and the record count differ",
        ),
        (attributes(layout::ATTR_CONTROL), "clients may not write control batches"),
        (
            attributes(layout::ATTR_LOG_APPEND_TIME),
            "a producer may not set the timestamp type to log append time",
        ),
        (attributes(layout::ATTR_TRANSACTIONAL), "a transactional batch without producer id"),
        (with(layout::PRODUCER_ID, 9_i64.to_be_bytes()), "a producer id without epoch or sequence"),
    ];
    for (batch, reason) in cases {
        assert_eq!(refused(&batch), format!("malformed batch: {reason}"));
    }
    assert_eq!(validate_produce(&attributes(6), MAX), Err(BatchError::Codec(6)));
    assert_eq!(validate_produce(&with(layout::MAGIC, [1]), MAX), Err(BatchError::Magic(1)));
}

#[test]
fn two_batches_a_cut_one_and_none_are_refused() {
    let two = [good(), good()].concat();
    assert_eq!(refused(&two), "malformed batch: more than one batch for one partition");
    let mut tail = good();
    tail.push(0);
    assert_eq!(refused(&tail), "malformed batch: more than one batch for one partition");
    for cut in 0..good().len() {
        assert_eq!(refused(&good()[..cut]), "malformed batch: not one whole batch");
    }
}

#[test]
fn a_batch_of_exactly_the_allowed_size_passes_and_one_byte_more_does_not() {
    let batch = good();
    assert!(validate_produce(&batch, batch.len()).is_ok());
    let error = BatchError::TooLarge { size: batch.len() as u64, max: batch.len() as u64 - 1 };
    assert_eq!(validate_produce(&batch, batch.len() - 1), Err(error));
}

#[test]
fn records_that_contradict_their_lengths_or_order_are_refused() {
    // The first record: length, attributes, timestamp delta, offset delta, key length, k, value length, one, headers.
    let first = layout::RECORDS;
    let cases: [(usize, u8, &str); 8] = [
        (first, 0x01, "a record of negative length"),
        (first, 0x7e, "a record ends in the middle of a field"),
        (first, 0x02, "a record ends in the middle of a field"),
        (first + 3, 0x02, "offset deltas are not 0, 1, 2, ..."),
        (first + 4, 0x40, "a record ends in the middle of a field"),
        (first + 6, 0x04, "a record claims more headers than its bytes can hold"),
        (first + 6, 0x01, "a record claims more headers than its bytes can hold"),
        (first + 10, 0x02, "a record claims more headers than its bytes can hold"),
    ];
    for (at, byte, reason) in cases {
        assert_eq!(refused(&with(at, [byte])), format!("malformed batch: {reason}"), "{byte:#x} at {at}");
    }
    let mut longer = good();
    longer.push(0);
    assert_eq!(refused(&seal(longer)), "malformed batch: bytes follow the last record");
}

#[test]
fn a_batch_that_would_pass_two_gib_is_refused_and_the_builder_goes_on() {
    let mut builder = BatchBuilder::new();
    let huge = vec![0; 1 << 20];
    let header = HeaderRef { key: b"h", value: Some(&huge) };
    // The headers borrow the same MiB 2,100 times: the sum is beyond 2 GiB, the memory is not.
    let error = builder.append(0, None, None, &vec![header; 2100]).unwrap_err();
    assert!(matches!(error, BatchError::TooLarge { .. }), "{error}");
    builder.append(0, None, Some(b"v"), &[]).unwrap();
    assert!(validate_produce(&builder.finish(Codec::None).unwrap(), MAX).is_ok());
}

#[test]
fn an_empty_builder_and_an_unknown_level_give_an_error_not_a_batch() {
    let mut builder = BatchBuilder::new();
    assert_eq!(builder.finish(Codec::None), Err(BatchError::Malformed("a batch without records")));
    builder.append(0, None, Some(b"v"), &[]).unwrap();
    let mut out = b"before".to_vec();
    let error = builder.finish_into(Codec::Gzip, Some(10), &mut out).unwrap_err();
    assert_eq!(error.to_string(), "gzip has no compression level 10");
    assert_eq!(out, b"before");
    builder.finish_into(Codec::Gzip, Some(9), &mut out).unwrap();
    assert!(validate_produce(&out[6..], MAX).is_ok());
}

#[test]
fn a_builder_used_again_starts_afresh() {
    let mut builder = BatchBuilder::new();
    let mut batches = Vec::new();
    for _ in 0..2 {
        builder.append(7, Some(b"k"), Some(b"v"), &[]).unwrap();
        batches.push(builder.finish(Codec::None).unwrap());
    }
    assert_eq!(batches[0], batches[1]);
}
