//! What a broker checks before it appends a producer's bytes.
//!
//! | check |
//! |---|
//! | exactly one whole v2 batch, not larger than allowed |
//! | CRC-32C |
//! | base offset 0, count > 0 and equal to the offset range, known codec, no control batch, create time, sequence |
//! | each record: well-formed, offset deltas 0, 1, 2, ...; no more and no fewer than the header says |
//! | opened, not more than [`OPENED_BYTES_MAX`] |
//!
//! Compressed records are opened in bounded memory ([`super::opened`]) and left as they are, as in Kafka: readers of other
//! clients trust a batch that was taken. Readers here must be safe for anything all the same (`reader` is).
use super::batches::{batches, body};
use super::compression::Codec;
use super::header::{BatchError, BatchHeader};
use super::layout::NO_TIMESTAMP;
use super::opened::{Looked, Opened};
use super::reader::take_record;

/// To how much the records of one batch may open: what readers of this project take, too (`decompressed.batch.max.bytes`).
pub const OPENED_BYTES_MAX: usize = /* 256 MiB */ 256 << 20;

/// What is known of a batch that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceInfo {
    /// The header as the producer sent it.
    pub header: BatchHeader,
    /// Codec of the records.
    pub codec: Codec,
    /// Number of records, > 0.
    pub records_count: i32,
    /// Largest timestamp of the records in ms.
    pub max_timestamp: i64,
    /// Smallest timestamp of the records in ms, but of those without one (-1); `max_timestamp` when none has one.
    pub min_timestamp: i64,
    /// Whether every record has a key (what a compacted topic asks).
    pub all_keyed: bool,
    /// Bytes of the records, opened.
    pub opened_bytes: usize,
}

/// Checks the records of one partition in a Produce request (version 3 or later); see the table above.
///
/// # Errors
/// [`BatchError::Magic`] (another format version), [`BatchError::TooLarge`] (more than `max_message_bytes`),
/// [`BatchError::Crc`], [`BatchError::Codec`], [`BatchError::Length`] (cut), [`BatchError::Malformed`] (the rest).
pub fn validate_produce(bytes: &[u8], max_message_bytes: usize) -> Result<ProduceInfo, BatchError> {
    validate_opening(bytes, max_message_bytes, OPENED_BYTES_MAX)
}

/// As [`validate_produce`], for a caller that may decompress records of up to `opened_max` bytes.
///
/// # Errors
/// As [`validate_produce`]; [`BatchError::Decompressed`] when they open to more.
pub fn validate_opening(
    bytes: &[u8],
    max_message_bytes: usize,
    opened_max: usize,
) -> Result<ProduceInfo, BatchError> {
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
        all_keyed: true,
        opened_bytes: body(batch).len(),
    };
    match codec {
        Codec::None => walk(&mut Plain(body(batch)), &mut info)?,
        codec => {
            let mut opened = Opened::new(codec, body(batch), opened_max)?;
            walk(&mut opened, &mut info)?;
            info.opened_bytes = opened.opened_bytes();
        }
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

/// Records, from the front.
trait Steps {
    /// The next one; `None` at the end.
    fn step(&mut self) -> Result<Option<Looked>, BatchError>;
}

impl Steps for Opened<'_> {
    fn step(&mut self) -> Result<Option<Looked>, BatchError> {
        Opened::step(self)
    }
}

/// Records that are not compressed.
struct Plain<'a>(&'a [u8]);

impl Steps for Plain<'_> {
    #[inline(always)]
    fn step(&mut self) -> Result<Option<Looked>, BatchError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let record = take_record(&mut self.0)?;
        for header in record.headers.iter() {
            header?;
        }
        let keyed = record.key.is_some();
        Ok(Some(Looked { timestamp_delta: record.timestamp_delta, offset_delta: record.offset_delta, keyed }))
    }
}

/// Walks the records; their headers are checked as well.
fn walk(records: &mut impl Steps, info: &mut ProduceInfo) -> Result<(), BatchError> {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for expected in 0..info.records_count {
        let record = records.step()?.ok_or(BatchError::Malformed("fewer records than the header says"))?;
        if record.offset_delta != expected {
            return Err(BatchError::Malformed("offset deltas are not 0, 1, 2, ..."));
        }
        let timestamp = info.header.base_timestamp.wrapping_add(record.timestamp_delta);
        max = max.max(timestamp);
        if timestamp != NO_TIMESTAMP {
            min = min.min(timestamp);
        }
        info.all_keyed &= record.keyed;
    }
    match records.step() {
        Ok(None) => {}
        Err(error @ BatchError::Decompressed(_)) => return Err(error),
        _ => return Err(BatchError::Malformed("bytes follow the last record")),
    }
    (info.min_timestamp, info.max_timestamp) = (min.min(max), max);
    Ok(())
}
