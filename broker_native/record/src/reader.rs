//! The records of one batch, zero-copy: keys, values and headers are slices of the (decompressed) body.
//!
//! Safe for any bytes: a claimed count or length larger than the bytes at hand is an error, nothing is allocated. The
//! CRC is not checked here, see [`super::header::BatchHeader::verify_crc`]. Headers are parsed only when asked for.
use super::header::{BatchError, BatchHeader};
use super::varint;

/// Fewest bytes of a record: its length, attributes, two deltas, key and value length, header count.
pub const MIN_RECORD_LEN: usize = 7;
/// Fewest bytes of a record header: key length and value length.
const MIN_HEADER_LEN: usize = 2;

const TRAILING_BATCH: BatchError = BatchError::Malformed("bytes follow the last record");
pub(crate) const TRAILING_RECORD: BatchError = BatchError::Malformed("a record is longer than its fields");
const COUNT: BatchError = BatchError::Malformed("the header claims more records than the bytes can hold");
pub(crate) const HEADER_COUNT: BatchError =
    BatchError::Malformed("a record claims more headers than its bytes can hold");

/// One record; `offset` and `timestamp` (milliseconds since the epoch) are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since the epoch; the batch's append time when its timestamp type says so.
    pub timestamp: i64,
    /// Key, if any.
    pub key: Option<&'a [u8]>,
    /// Value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Headers, parsed when iterated.
    pub headers: RecordHeaders<'a>,
}

/// One header of a record. Keys should be UTF-8, but this is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderRef<'a> {
    /// Key.
    pub key: &'a [u8],
    /// Value, if any.
    pub value: Option<&'a [u8]>,
}

/// The headers of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordHeaders<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> RecordHeaders<'a> {
    /// How many there are; never more than the record's bytes can hold.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all headers as they stand in the record.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Each header; an error ends the iteration.
    pub fn iter(&self) -> HeaderIter<'a> {
        HeaderIter { left: self.count, rest: self.bytes }
    }
}

/// Iterator of [`RecordHeaders::iter`].
#[derive(Debug, Clone)]
pub struct HeaderIter<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Result<HeaderRef<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let parsed = take_header(&mut self.rest).and_then(|header| {
            if self.left == 0 && !self.rest.is_empty() { Err(TRAILING_RECORD) } else { Ok(header) }
        });
        if parsed.is_err() {
            self.left = 0;
        }
        Some(parsed)
    }
}

fn take_header<'a>(bytes: &mut &'a [u8]) -> Result<HeaderRef<'a>, BatchError> {
    let key = varint::take_bytes(bytes)?.ok_or(BatchError::Malformed("a header without a key"))?;
    Ok(HeaderRef { key, value: varint::take_bytes(bytes)? })
}

/// The records of `body`, which is decompressed and belongs to `header`. After an error it ends.
pub fn records<'a>(body: &'a [u8], header: &BatchHeader) -> Records<'a> {
    let claimed = usize::try_from(header.records_count).unwrap_or(usize::MAX);
    Records {
        rest: body,
        left: claimed,
        base_offset: header.base_offset,
        base_timestamp: header.base_timestamp,
        append_time: header.is_log_append_time().then_some(header.max_timestamp),
        failed: (claimed > body.len() / MIN_RECORD_LEN).then_some(COUNT),
    }
}

/// Iterator of [`records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    left: usize,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
    failed: Option<BatchError>,
}

impl Records<'_> {
    /// Records not yet read, as the header claims; at most what the bytes can hold.
    pub fn len(&self) -> usize {
        if self.failed.is_some() { 0 } else { self.left }
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes not yet read.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    #[cold]
    fn end(&mut self) -> Option<BatchError> {
        let error = self.failed.take().or((!self.rest.is_empty()).then_some(TRAILING_BATCH));
        (self.left, self.rest) = (0, &[]);
        error
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordRef<'a>, BatchError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || self.failed.is_some() {
            return self.end().map(Err);
        }
        self.left -= 1;
        match take_record(&mut self.rest) {
            Ok(raw) => Some(Ok(RecordRef {
                offset: self.base_offset.wrapping_add(raw.offset_delta.into()),
                timestamp: match self.append_time {
                    Some(time) => time,
                    None => self.base_timestamp.wrapping_add(raw.timestamp_delta),
                },
                key: raw.key,
                value: raw.value,
                headers: raw.headers,
            })),
            Err(error) => {
                (self.left, self.rest) = (0, &[]);
                Some(Err(error))
            }
        }
    }
}

/// A record as it stands in the batch: deltas, not absolute values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: RecordHeaders<'a>,
}

/// Takes one record from the front of `rest`.
#[inline(always)]
pub(crate) fn take_record<'a>(rest: &mut &'a [u8]) -> Result<RawRecord<'a>, BatchError> {
    let mut fields = varint::take_bytes(rest)?.ok_or(BatchError::Malformed("a record of negative length"))?;
    varint::take(&mut fields, 1)?; // attributes: no bit of them is in use
    let timestamp_delta = varint::take_i64(&mut fields)?;
    let offset_delta = varint::take_i32(&mut fields)?;
    let key = varint::take_bytes(&mut fields)?;
    let value = varint::take_bytes(&mut fields)?;
    let count = usize::try_from(varint::take_i32(&mut fields)?).unwrap_or(usize::MAX);
    if count > fields.len() / MIN_HEADER_LEN {
        return Err(HEADER_COUNT);
    }
    if count == 0 && !fields.is_empty() {
        return Err(TRAILING_RECORD);
    }
    let headers = RecordHeaders { count, bytes: fields };
    Ok(RawRecord { timestamp_delta, offset_delta, key, value, headers })
}
