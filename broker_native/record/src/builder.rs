//! Records -> one batch. The buffer grows once and is used again for the next batch.
//!
//! Offsets are 0, 1, 2, ... and the leader epoch is -1: a broker sets both when it appends.
use super::compression::{Codec, compress_into};
use super::header::BatchError;
use super::layout as at;
use super::reader::HeaderRef;
use super::varint;

/// Most bytes of a record before its key: length, attributes, two deltas, key length.
const MAX_PREFIX: usize = 3 * varint::MAX_I32_LEN + 1 + varint::MAX_I64_LEN;
/// A producer without idempotence.
const NO_PRODUCER: (i64, i16, i32) = (-1, -1, -1);
/// Leader epoch before a broker sets it.
const NO_EPOCH: i32 = -1;

/// Collects records into a batch. Not thread-safe; one for each partition being written.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    /// Room for the header, then the records.
    buffer: Vec<u8>,
    records_count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer: (i64, i16, i32),
    attributes: i16,
    base_offset: i64,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl BatchBuilder {
    /// An empty builder that allocates with its first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty builder with room for a batch of `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self::reusing(Vec::with_capacity(bytes.max(at::HEADER_LEN)))
    }

    /// An empty builder that uses `buffer` again, as [`BatchBuilder::into_batch`] gave it.
    pub fn reusing(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(at::HEADER_LEN, 0);
        Self {
            buffer,
            records_count: 0,
            base_timestamp: -1,
            max_timestamp: -1,
            producer: NO_PRODUCER,
            attributes: 0,
            base_offset: 0,
        }
    }

    /// Number of records so far.
    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.records_count == 0
    }

    /// Bytes of the batch so far, header included, not compressed.
    pub fn size_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Largest timestamp so far in ms; -1 without records.
    pub fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Marks this and later batches as an idempotent producer's; -1, -1, -1 undoes it.
    pub fn set_producer(&mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        self.producer = (producer_id, producer_epoch, base_sequence);
    }

    /// Marks this and later batches as part of a transaction.
    pub fn set_transactional(&mut self, transactional: bool) {
        self.set_attribute(at::ATTR_TRANSACTIONAL, transactional);
    }

    /// Marks this and later batches as control batches (what only a broker writes).
    pub fn set_control(&mut self, control: bool) {
        self.set_attribute(at::ATTR_CONTROL, control);
    }

    /// Offset of the first record of this and later batches, 0 unless set; a producer leaves it.
    pub fn set_base_offset(&mut self, base_offset: i64) {
        self.base_offset = base_offset;
    }

    fn set_attribute(&mut self, bit: i16, on: bool) {
        self.attributes = if on { self.attributes | bit } else { self.attributes & !bit };
    }

    /// Appends a record. `timestamp_ms` is milliseconds since the epoch.
    ///
    /// # Errors
    /// [`BatchError::TooLarge`] when the batch would pass 2 GiB; the builder is as before.
    #[inline]
    pub fn append(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> Result<(), BatchError> {
        let delta = if self.records_count == 0 { 0 } else { timestamp_ms.wrapping_sub(self.base_timestamp) };
        let record = RecordSize::of(delta, self.records_count, key, value, headers);
        let size = self.buffer.len() as u64 + record.total;
        if size > i32::MAX as u64 {
            return Err(BatchError::TooLarge { size, max: i32::MAX as u64 });
        }
        self.buffer.reserve(record.total as usize);
        self.put_prefix(record.body, delta, key);
        self.buffer.extend_from_slice(key.unwrap_or_default());
        self.put_varint(len_or_null(value));
        self.buffer.extend_from_slice(value.unwrap_or_default());
        self.put_headers(headers);
        if self.records_count == 0 {
            (self.base_timestamp, self.max_timestamp) = (timestamp_ms, timestamp_ms);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        self.records_count += 1;
        Ok(())
    }

    #[inline(always)]
    fn put_prefix(&mut self, body: u64, timestamp_delta: i64, key: Option<&[u8]>) {
        let mut prefix = [0; MAX_PREFIX];
        let mut len = varint::put(&mut prefix, body as i64);
        len += 1; // attributes, all unused
        len += varint::put(&mut prefix[len..], timestamp_delta);
        len += varint::put(&mut prefix[len..], self.records_count.into());
        len += varint::put(&mut prefix[len..], len_or_null(key));
        self.buffer.extend_from_slice(&prefix[..len]);
    }

    #[inline(always)]
    fn put_varint(&mut self, value: i64) {
        let mut bytes = [0; varint::MAX_I64_LEN];
        let len = varint::put(&mut bytes, value);
        self.buffer.extend_from_slice(&bytes[..len]);
    }

    #[inline(always)]
    fn put_headers(&mut self, headers: &[HeaderRef<'_>]) {
        self.put_varint(headers.len() as i64);
        for header in headers {
            self.put_varint(header.key.len() as i64);
            self.buffer.extend_from_slice(header.key);
            self.put_varint(len_or_null(header.value));
            self.buffer.extend_from_slice(header.value.unwrap_or_default());
        }
    }

    /// The batch with the codec's default level; the builder is then empty and keeps producer and attributes.
    ///
    /// # Errors
    /// As [`BatchBuilder::finish_into`].
    pub fn finish(&mut self, codec: Codec) -> Result<Vec<u8>, BatchError> {
        let mut out = Vec::new();
        self.finish_into(codec, None, &mut out)?;
        Ok(out)
    }

    /// Appends the batch to `out`; the builder is then empty and keeps its buffer, producer and attributes.
    ///
    /// # Errors
    /// [`BatchError::Malformed`] without records, [`BatchError::Level`] when the codec has no such level.
    pub fn finish_into(
        &mut self,
        codec: Codec,
        level: Option<i32>,
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        if self.is_empty() {
            return Err(BatchError::Malformed("a batch without records"));
        }
        let start = out.len();
        if codec == Codec::None {
            out.extend_from_slice(&self.buffer);
        } else {
            out.extend_from_slice(&self.buffer[..at::HEADER_LEN]);
            if let Err(error) = compress_into(codec, level, &self.buffer[at::HEADER_LEN..], out) {
                out.truncate(start);
                return Err(error);
            }
        }
        self.write_header(&mut out[start..], codec);
        self.clear();
        Ok(())
    }

    /// The batch, not compressed and without copying it.
    ///
    /// # Errors
    /// [`BatchError::Malformed`] without records.
    pub fn into_batch(mut self) -> Result<Vec<u8>, BatchError> {
        if self.is_empty() {
            return Err(BatchError::Malformed("a batch without records"));
        }
        let mut batch = std::mem::take(&mut self.buffer);
        self.write_header(&mut batch, Codec::None);
        Ok(batch)
    }

    /// Throws the records away.
    pub fn clear(&mut self) {
        self.buffer.truncate(at::HEADER_LEN);
        self.records_count = 0;
        (self.base_timestamp, self.max_timestamp) = (-1, -1);
    }

    fn write_header(&self, batch: &mut [u8], codec: Codec) {
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        let length = (batch.len() - at::LOG_OVERHEAD) as i32;
        put(batch, at::BASE_OFFSET, self.base_offset.to_be_bytes());
        put(batch, at::BATCH_LENGTH, length.to_be_bytes());
        put(batch, at::PARTITION_LEADER_EPOCH, NO_EPOCH.to_be_bytes());
        put(batch, at::MAGIC, at::MAGIC_V2.to_be_bytes());
        put(batch, at::ATTRIBUTES, (self.attributes | codec.attribute_bits()).to_be_bytes());
        put(batch, at::LAST_OFFSET_DELTA, (self.records_count - 1).to_be_bytes());
        put(batch, at::BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(batch, at::MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(batch, at::PRODUCER_ID, producer_id.to_be_bytes());
        put(batch, at::PRODUCER_EPOCH, producer_epoch.to_be_bytes());
        put(batch, at::BASE_SEQUENCE, base_sequence.to_be_bytes());
        put(batch, at::RECORDS_COUNT, self.records_count.to_be_bytes());
        let crc = crc32c::crc32c(&batch[at::ATTRIBUTES..]);
        put(batch, at::CRC, crc.to_be_bytes());
    }
}

/// Writes a header field; `start + N <= HEADER_LEN` holds for every constant of `layout`.
fn put<const N: usize>(batch: &mut [u8], start: usize, field: [u8; N]) {
    batch[start..start + N].copy_from_slice(&field);
}

/// What stands for the length of an optional field.
#[inline(always)]
fn len_or_null(field: Option<&[u8]>) -> i64 {
    field.map_or(-1, |bytes| bytes.len() as i64)
}

/// Bytes that a record takes.
struct RecordSize {
    /// Without its own length field.
    body: u64,
    /// With it.
    total: u64,
}

impl RecordSize {
    #[inline(always)]
    fn of(
        timestamp_delta: i64,
        offset_delta: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> Self {
        let deltas = varint::len(timestamp_delta) + varint::len(offset_delta.into());
        let mut body = 1 + deltas as u64 + field_size(key) + field_size(value);
        body += varint::len(headers.len() as i64) as u64;
        for header in headers {
            body += field_size(Some(header.key)) + field_size(header.value);
        }
        Self { body, total: body + varint::len(body as i64) as u64 }
    }
}

#[inline(always)]
fn field_size(field: Option<&[u8]>) -> u64 {
    varint::len(len_or_null(field)) as u64 + field.map_or(0, <[u8]>::len) as u64
}
