//! The first record of a batch that is not older than a time.
use pylog_record::compression::Codec;
use pylog_record::header::{BatchError, BatchHeader};
use pylog_record::layout;
use pylog_record::opened::Opened;

/// Largest decompressed batch that is looked into; beyond it the batch's first offset answers.
const MAX_BATCH_BYTES: usize = /* 256 MiB */ 256 << 20;

/// Offset and timestamp of the batch's first record from `from_offset` on with a timestamp of `timestamp_ms` or later.
/// A batch whose records cannot be read answers with its first offset: a reader from there gets the error.
pub fn first_record(
    header: &BatchHeader,
    batch: &[u8],
    timestamp_ms: i64,
    from_offset: i64,
) -> Option<(i64, i64)> {
    let whole = Some((header.base_offset.max(from_offset), header.max_timestamp));
    if header.is_log_append_time() {
        return whole;
    }
    let found = search(header, batch, |offset, timestamp| timestamp >= timestamp_ms && offset >= from_offset);
    found.unwrap_or(whole)
}

/// Offset and timestamp of the first record that is `wanted`; records are opened up to there, and none is kept.
fn search(
    header: &BatchHeader,
    batch: &[u8],
    wanted: impl Fn(i64, i64) -> bool,
) -> Result<Option<(i64, i64)>, BatchError> {
    let codec = Codec::from_attributes(header.attributes)?;
    let body = batch.get(layout::RECORDS..).unwrap_or_default();
    let mut opened = Opened::new(codec, body, MAX_BATCH_BYTES)?;
    for _ in 0..header.records_count {
        let record = opened.step()?.ok_or(BatchError::Malformed("fewer records than the header says"))?;
        let offset = header.base_offset.wrapping_add(record.offset_delta.into());
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        if wanted(offset, timestamp) {
            return Ok(Some((offset, timestamp)));
        }
    }
    Ok(None)
}
