//! Growing Arrow columns: plain vectors that become Arrow buffers without a copy. No null buffer without a null.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::schema::{HEADER_FIELDS, HEADER_ITEM, UTC};
use pylog_record::BatchError;
use pylog_record::reader::RecordHeaders;

/// Which rows are null; costs nothing until the first one.
#[derive(Debug, Default)]
struct Validity {
    bits: Option<BooleanBufferBuilder>,
}

impl Validity {
    #[inline(always)]
    fn push(&mut self, row: usize, valid: bool) {
        match &mut self.bits {
            Some(bits) => bits.append(valid),
            None if valid => {}
            None => self.first_null(row),
        }
    }

    #[cold]
    fn first_null(&mut self, row: usize) {
        let mut bits = BooleanBufferBuilder::new((row + 1).next_multiple_of(1024));
        bits.append_n(row, true);
        bits.append(false);
        self.bits = Some(bits);
    }

    fn finish(&mut self) -> Option<NullBuffer> {
        self.bits.take().map(|mut bits| NullBuffer::new(bits.finish()))
    }
}

/// A growing Binary (or Utf8) column.
#[derive(Debug)]
pub(crate) struct BytesBuilder {
    data: Vec<u8>,
    /// End of each row in `data`, after a first 0.
    offsets: Vec<i32>,
    validity: Validity,
    /// Bytes and rows of the last finished column: the best guess for the next.
    last: (usize, usize),
}

impl Default for BytesBuilder {
    fn default() -> Self {
        Self { data: Vec::new(), offsets: vec![0], validity: Validity::default(), last: (0, 0) }
    }
}

impl BytesBuilder {
    /// Makes room for `rows` more rows of together `bytes`, at once.
    pub(crate) fn reserve(&mut self, rows: usize, bytes: usize) {
        if self.data.capacity() == 0 {
            // The end of a column is not known yet: as much as last time, and a little more.
            self.data.reserve(bytes.max(self.last.0 + self.last.0 / 16));
            self.offsets.reserve(rows.max(self.last.1 + 1));
        } else {
            self.data.reserve(bytes);
            self.offsets.reserve(rows);
        }
    }

    /// The caller keeps the column below 2 GiB.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: Option<&[u8]>) {
        self.validity.push(self.offsets.len() - 1, value.is_some());
        self.data.extend_from_slice(value.unwrap_or_default());
        self.offsets.push(self.data.len() as i32);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        self.last = (self.data.len(), self.offsets.len());
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let data = std::mem::take(&mut self.data);
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(data), self.validity.finish())
    }

    pub(crate) fn finish(&mut self) -> Result<BinaryArray, ArrowError> {
        let (offsets, data, nulls) = self.take();
        BinaryArray::try_new(offsets, data, nulls)
    }

    fn finish_utf8(&mut self) -> Result<StringArray, ArrowError> {
        let (offsets, data, nulls) = self.take();
        StringArray::try_new(offsets, data, nulls)
    }
}

/// A growing Int64 or Timestamp column.
#[derive(Debug, Default)]
pub(crate) struct LongBuilder {
    values: Vec<i64>,
}

impl LongBuilder {
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: i64) {
        self.values.push(value);
    }

    fn take(&mut self) -> ScalarBuffer<i64> {
        // The next column will be about as long as this one.
        let next = Vec::with_capacity(self.values.len());
        ScalarBuffer::from(std::mem::replace(&mut self.values, next))
    }

    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(Int64Array::try_new(self.take(), None)?))
    }

    pub(crate) fn finish_timestamp(&mut self) -> Result<ArrayRef, ArrowError> {
        let array = TimestampMicrosecondArray::try_new(self.take(), None)?;
        Ok(Arc::new(array.with_timezone(UTC.clone())))
    }
}

/// A growing `headers` column.
#[derive(Debug)]
pub(crate) struct HeadersBuilder {
    keys: BytesBuilder,
    values: BytesBuilder,
    offsets: Vec<i32>,
    validity: Validity,
}

impl Default for HeadersBuilder {
    fn default() -> Self {
        Self {
            keys: BytesBuilder::default(),
            values: BytesBuilder::default(),
            offsets: vec![0],
            validity: Validity::default(),
        }
    }
}

impl HeadersBuilder {
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, headers: &RecordHeaders<'_>) -> Result<(), BatchError> {
        self.validity.push(self.offsets.len() - 1, !headers.is_empty());
        if !headers.is_empty() {
            self.push_items(headers)?;
        }
        self.offsets.push(self.keys.offsets.len() as i32 - 1);
        Ok(())
    }

    fn push_items(&mut self, headers: &RecordHeaders<'_>) -> Result<(), BatchError> {
        for header in headers.iter() {
            let header = header?;
            self.keys.push(Some(String::from_utf8_lossy(header.key).as_bytes()));
            self.values.push(header.value);
        }
        if self.keys.data.len() > i32::MAX as usize {
            return Err(BatchError::Malformed("the header keys of a record do not fit into 2 GiB"));
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let keys = Arc::new(self.keys.finish_utf8()?);
        let items =
            StructArray::try_new(HEADER_FIELDS.clone(), vec![keys, Arc::new(self.values.finish()?)], None)?;
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = self.validity.finish();
        Ok(Arc::new(ListArray::try_new(HEADER_ITEM.clone(), offsets, Arc::new(items), nulls)?))
    }
}
