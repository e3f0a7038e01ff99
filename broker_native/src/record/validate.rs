//! What a broker checks before it appends a producer's bytes.
//!
//! | check | uncompressed | compressed |
//! |---|---|---|
//! | exactly one whole v2 batch, not larger than allowed | yes | yes |
//! | CRC-32C | yes | yes |
//! | base offset 0, count > 0 and equal to the offset range, known codec, no control batch, create time, sequence | yes | yes |
//! | each record: well-formed, offset deltas 0, 1, 2, ... | yes | **no** |
//!
//! Compressed records are not opened: that keeps produce cheap, and a hostile producer can only put a batch there that
//! every reader refuses with a clear error. Kafka does open them. Readers must be safe for anything (`reader` is).
use super::batches::{batches, body};
use super::compression::Codec;
use super::header::{BatchError, BatchHeader};
use super::reader::take_record;

/// What is known of a batch that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceInfo {
    /// The header as the producer sent it.
    pub header: BatchHeader,
    /// Codec of the records.
    pub codec: Codec,
    /// Number of records, > 0.
    pub records_count: i32,
    /// Largest timestamp of the records in ms; as the header says when they are compressed.
    pub max_timestamp: i64,
    /// Smallest timestamp of the records in ms; the header's base when they are compressed.
    pub min_timestamp: i64,
    /// Whether every record has a key (what a compacted topic asks); `None` when they are compressed.
    pub all_keyed: Option<bool>,
}

/// Checks the records of one partition in a Produce request (version 3 or later); see the table above.
///
/// # Errors
/// [`BatchError::Magic`] (another format version), [`BatchError::TooLarge`] (more than `max_message_bytes`),
/// [`BatchError::Crc`], [`BatchError::Codec`], [`BatchError::Length`] (cut), [`BatchError::Malformed`] (the rest).
pub fn validate_produce(bytes: &[u8], max_message_bytes: usize) -> Result<ProduceInfo, BatchError> {
    let mut run = batches(bytes);
    let Some(first) = run.next() else {
        return Err(BatchError::Malformed("not one whole batch"));
    };
    let (header, batch) = first?;
    if !run.rest().is_empty() {
        return Err(BatchError::Malformed("more than one batch for one partition"));
    }
    if batch.len() > max_message_bytes {
        return Err(BatchError::TooLarge { size: batch.len() as u64, max: max_message_bytes as u64 });
    }
    header.verify_crc(batch)?;
    check_header(&header)?;
    let codec = Codec::from_attributes(header.attributes)?;
    let mut info = ProduceInfo {
        header,
        codec,
        records_count: header.records_count,
        max_timestamp: header.max_timestamp,
        min_timestamp: header.base_timestamp,
        all_keyed: None,
    };
    if codec == Codec::None {
        walk(body(batch), &mut info)?;
    }
    Ok(info)
}

fn check_header(header: &BatchHeader) -> Result<(), BatchError> {
    let wrong = |what| Err(BatchError::Malformed(what));
    if header.base_offset != 0 {
        return wrong("the base offset of a produced batch is not 0");
    }
    if header.records_count <= 0 {
        return wrong("a produced batch without records");
    }
    if header.last_offset_delta.checked_add(1) != Some(header.records_count) {
        return wrong("the offset range and the record count differ");
    }
    if header.is_control() {
        return wrong("clients may not write control batches");
    }
    if header.is_log_append_time() {
        return wrong("a producer may not set the timestamp type to log append time");
    }
    if header.producer_id >= 0 && (header.base_sequence < 0 || header.producer_epoch < 0) {
        return wrong("a producer id without epoch or sequence");
    }
    if header.is_transactional() && header.producer_id < 0 {
        return wrong("a transactional batch without producer id");
    }
    Ok(())
}

/// Walks uncompressed records; their headers are checked as well.
fn walk(records: &[u8], info: &mut ProduceInfo) -> Result<(), BatchError> {
    let mut rest = records;
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    let mut all_keyed = true;
    for expected in 0..info.records_count {
        let record = take_record(&mut rest)?;
        if record.offset_delta != expected {
            return Err(BatchError::Malformed("offset deltas are not 0, 1, 2, ..."));
        }
        for header in record.headers.iter() {
            header?;
        }
        min = min.min(record.timestamp_delta);
        max = max.max(record.timestamp_delta);
        all_keyed &= record.key.is_some();
    }
    if !rest.is_empty() {
        return Err(BatchError::Malformed("bytes follow the last record"));
    }
    info.min_timestamp = info.header.base_timestamp.wrapping_add(min);
    info.max_timestamp = info.header.base_timestamp.wrapping_add(max);
    info.all_keyed = Some(all_keyed);
    Ok(())
}
