//! A batch with fewer records, as compaction leaves it: offsets, producer, sequences, codec and leader epoch stay.
//!
//! A kept record is copied as it stands, since offsets and timestamps are deltas to a base that does not move. Only a
//! delete horizon moves one: it takes the place of the base timestamp (attribute bit 6, KIP-534), and the timestamp
//! deltas are written anew. The last offset stays even when its record went, so that the producer's last sequence can
//! still be computed. Pure; the CRC of the input is the caller's business.
use super::compression::{Codec, compress_into};
use super::header::{BatchError, BatchHeader};
use super::layout as at;
use super::reader::{RecordRef, take_record};
use super::varint;

/// What [`filter`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filtered {
    /// Records that were kept.
    pub kept: i32,
    /// Records that were not.
    pub dropped: i32,
    /// Whether a kept record has no value.
    pub tombstones: bool,
    /// Largest timestamp of the kept records, milliseconds since the epoch; -1 without any.
    pub max_timestamp: i64,
}

/// Copies the records of `body` (decompressed) that `keep` wants to `kept`, which is emptied first.
///
/// # Errors
/// [`BatchError::Malformed`] when the records are not what the header says.
pub fn filter(
    header: &BatchHeader,
    body: &[u8],
    kept: &mut Vec<u8>,
    mut keep: impl FnMut(&RecordRef<'_>) -> bool,
) -> Result<Filtered, BatchError> {
    kept.clear();
    let mut seen = Filtered { kept: 0, dropped: 0, tombstones: false, max_timestamp: at::NO_TIMESTAMP };
    let mut rest = body;
    for _ in 0..header.records_count {
        let before = rest;
        let raw = take_record(&mut rest)?;
        let record = RecordRef {
            offset: header.base_offset.wrapping_add(raw.offset_delta.into()),
            timestamp: if header.is_log_append_time() {
                header.max_timestamp
            } else {
                header.base_timestamp.wrapping_add(raw.timestamp_delta)
            },
            key: raw.key,
            value: raw.value,
            headers: raw.headers,
        };
        if !keep(&record) {
            seen.dropped += 1;
            continue;
        }
        seen.kept += 1;
        seen.tombstones |= record.value.is_none();
        seen.max_timestamp = seen.max_timestamp.max(record.timestamp);
        kept.extend_from_slice(before.get(..before.len() - rest.len()).unwrap_or_default());
    }
    if rest.is_empty() { Ok(seen) } else { Err(BatchError::Malformed("bytes follow the last record")) }
}

/// Appends the batch of `header` with only the records of `kept`, which [`filter`] made, to `out`; gives its header.
/// `delete_horizon_ms`: set now, milliseconds since the epoch; `None` leaves the one that is there.
///
/// # Errors
/// [`BatchError`] when the records cannot be compressed or `kept` was not made by [`filter`].
pub fn rewrite(
    header: &BatchHeader,
    kept: &[u8],
    seen: &Filtered,
    delete_horizon_ms: Option<i64>,
    out: &mut Vec<u8>,
) -> Result<BatchHeader, BatchError> {
    let start = out.len();
    out.resize(start + at::HEADER_LEN, 0);
    let codec = Codec::from_attributes(header.attributes)?;
    let mut written = *header;
    let rebased;
    let records = match delete_horizon_ms {
        None => kept,
        Some(horizon_ms) => {
            rebased = rebase(kept, header.base_timestamp, horizon_ms)?;
            written.base_timestamp = horizon_ms;
            written.attributes |= at::ATTR_DELETE_HORIZON;
            &rebased
        }
    };
    if let Err(error) = compress_into(codec, None, records, out) {
        out.truncate(start);
        return Err(error);
    }
    written.records_count = seen.kept;
    if !header.is_log_append_time() {
        written.max_timestamp = seen.max_timestamp;
    }
    Ok(seal(written, out, start))
}

/// Appends the batch of `header` without any record to `out`: what stays of a producer's last batch.
pub fn without_records(header: &BatchHeader, out: &mut Vec<u8>) -> BatchHeader {
    let start = out.len();
    out.resize(start + at::HEADER_LEN, 0);
    let kept_bits = at::ATTR_LOG_APPEND_TIME | at::ATTR_TRANSACTIONAL | at::ATTR_CONTROL;
    let written = BatchHeader {
        attributes: header.attributes & kept_bits,
        base_timestamp: at::NO_TIMESTAMP,
        records_count: 0,
        ..*header
    };
    seal(written, out, start)
}

/// The records of `kept` with timestamps as deltas to `new_base`.
fn rebase(kept: &[u8], old_base: i64, new_base: i64) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::with_capacity(kept.len() + kept.len() / 8);
    let mut rest = kept;
    let mut number = [0; varint::MAX_I64_LEN];
    while !rest.is_empty() {
        let mut fields = varint::take_bytes(&mut rest)?.unwrap_or_default();
        let attributes = varint::take(&mut fields, 1)?;
        let delta = varint::take_i64(&mut fields)?;
        let delta = old_base.wrapping_add(delta).wrapping_sub(new_base);
        let len = varint::put(&mut number, (1 + varint::len(delta) + fields.len()) as i64);
        out.extend_from_slice(number.get(..len).unwrap_or_default());
        out.extend_from_slice(attributes);
        let len = varint::put(&mut number, delta);
        out.extend_from_slice(number.get(..len).unwrap_or_default());
        out.extend_from_slice(fields);
    }
    Ok(out)
}

/// Writes `header`, with the length and the CRC of what stands from `start` on, to its place there.
fn seal(mut header: BatchHeader, out: &mut [u8], start: usize) -> BatchHeader {
    let batch = out.get_mut(start..).unwrap_or_default();
    header.batch_length = (batch.len() - at::LOG_OVERHEAD) as i32;
    let mut put = |start: usize, field: &[u8]| {
        if let Some(slot) = batch.get_mut(start..start + field.len()) {
            slot.copy_from_slice(field);
        }
    };
    put(at::BASE_OFFSET, &header.base_offset.to_be_bytes());
    put(at::BATCH_LENGTH, &header.batch_length.to_be_bytes());
    put(at::PARTITION_LEADER_EPOCH, &header.partition_leader_epoch.to_be_bytes());
    put(at::MAGIC, &at::MAGIC_V2.to_be_bytes());
    put(at::ATTRIBUTES, &header.attributes.to_be_bytes());
    put(at::LAST_OFFSET_DELTA, &header.last_offset_delta.to_be_bytes());
    put(at::BASE_TIMESTAMP, &header.base_timestamp.to_be_bytes());
    put(at::MAX_TIMESTAMP, &header.max_timestamp.to_be_bytes());
    put(at::PRODUCER_ID, &header.producer_id.to_be_bytes());
    put(at::PRODUCER_EPOCH, &header.producer_epoch.to_be_bytes());
    put(at::BASE_SEQUENCE, &header.base_sequence.to_be_bytes());
    put(at::RECORDS_COUNT, &header.records_count.to_be_bytes());
    header.crc = crc32c::crc32c(batch.get(at::ATTRIBUTES..).unwrap_or_default());
    if let Some(slot) = batch.get_mut(at::CRC..at::ATTRIBUTES) {
        slot.copy_from_slice(&header.crc.to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::{batches, body};
    use crate::compression::decompress;
    use crate::{BatchBuilder, HeaderRef, records};

    const BASE_MS: i64 = 1_700_000_000_000;

    fn batch(codec: Codec) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.set_producer(9, 3, 40);
        builder.set_base_offset(100);
        for i in 0..5_i64 {
            let (key, value) = ([b'k', i as u8], [b'v', i as u8]);
            let header = HeaderRef { key: b"h", value: Some(&value) };
            let value = (i != 3).then_some(&value[..]);
            builder.append(BASE_MS + 10 * i, Some(&key), value, &[header]).unwrap();
        }
        builder.finish(codec).unwrap()
    }

    /// `(offset, timestamp, key, has a value, header values)` of a batch.
    type Row = (i64, i64, Vec<u8>, bool, Vec<u8>);

    fn rows(bytes: &[u8]) -> (BatchHeader, Vec<Row>) {
        let (header, bytes) = batches(bytes).next().unwrap().unwrap();
        header.verify_crc(bytes).unwrap();
        let codec = Codec::from_attributes(header.attributes).unwrap();
        let opened = decompress(codec, body(bytes), 1 << 20).unwrap();
        let row = |record: Result<RecordRef<'_>, BatchError>| {
            let record = record.unwrap();
            let headers = record.headers.iter().flat_map(|h| h.unwrap().value.unwrap().to_vec());
            let key = record.key.unwrap().to_vec();
            (record.offset, record.timestamp, key, record.value.is_some(), headers.collect())
        };
        (header, records(&opened, &header).map(row).collect())
    }

    fn shrunk(codec: Codec, horizon: Option<i64>, keep: impl Fn(i64) -> bool) -> Vec<u8> {
        let batch = batch(codec);
        let (header, bytes) = batches(&batch).next().unwrap().unwrap();
        let opened = decompress(codec, body(bytes), 1 << 20).unwrap();
        let (mut kept, mut out) = (Vec::new(), Vec::new());
        let seen = filter(&header, &opened, &mut kept, |record| keep(record.offset)).unwrap();
        let written = rewrite(&header, &kept, &seen, horizon, &mut out).unwrap();
        assert_eq!(batches(&out).next().unwrap().unwrap().0, written);
        out
    }

    #[test]
    fn kept_records_are_unchanged_in_every_codec_with_and_without_a_horizon() {
        for codec in Codec::ALL {
            let (before, all) = rows(&batch(codec));
            for horizon in [None, Some(BASE_MS + 86_400_000)] {
                let (after, left) = rows(&shrunk(codec, horizon, |offset| offset % 2 == 1));
                let expected: Vec<_> = all.iter().filter(|row| row.0 % 2 == 1).cloned().collect();
                assert_eq!(left, expected, "{codec:?} {horizon:?}");
                assert_eq!((after.base_offset, after.last_offset()), (100, 104));
                assert_eq!((after.producer_id, after.producer_epoch, after.base_sequence), (9, 3, 40));
                assert_eq!(after.max_timestamp, BASE_MS + 30, "of what is left");
                assert_eq!(Codec::from_attributes(after.attributes).unwrap(), codec);
                assert_eq!(after.delete_horizon_ms(), horizon);
                assert_eq!(before.delete_horizon_ms(), None);
            }
        }
    }

    #[test]
    fn a_horizon_stays_when_the_batch_is_written_again() {
        let once = shrunk(Codec::None, Some(BASE_MS + 5), |offset| offset != 101);
        let (header, bytes) = batches(&once).next().unwrap().unwrap();
        let (mut kept, mut out) = (Vec::new(), Vec::new());
        let seen = filter(&header, body(bytes), &mut kept, |record| record.offset >= 103).unwrap();
        assert_eq!(seen, Filtered { kept: 2, dropped: 2, tombstones: true, max_timestamp: BASE_MS + 40 });
        rewrite(&header, &kept, &seen, None, &mut out).unwrap();
        let (after, left) = rows(&out);
        assert_eq!(after.delete_horizon_ms(), Some(BASE_MS + 5));
        assert_eq!(
            left.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
            [(103, BASE_MS + 30), (104, BASE_MS + 40)]
        );
    }

    #[test]
    fn an_empty_batch_keeps_what_a_producer_is_known_by() {
        let batch = batch(Codec::Zstd);
        let (header, _) = batches(&batch).next().unwrap().unwrap();
        let mut out = Vec::new();
        let written = without_records(&header, &mut out);
        let (after, left) = rows(&out);
        assert_eq!((after, out.len()), (written, at::HEADER_LEN));
        assert!(left.is_empty());
        assert_eq!((after.base_offset, after.last_offset(), after.base_sequence), (100, 104, 40));
        assert_eq!((after.max_timestamp, after.base_timestamp), (BASE_MS + 40, -1));
        assert_eq!(after.attributes, 0, "nothing is compressed");
    }
}
