//! Record batches of one partition -> Arrow batches of the columns asked for.
//!
//! Push whole record batches in offset order, as a fetch answer or a segment holds them; take finished Arrow batches.
//! Rows outside the range, rows that were pushed before, rows that a filter does not want, control batches and aborted
//! transactions are left out. Keys and values go from the (decompressed) bytes straight into Arrow buffers. An Arrow batch ends when it holds about
//! `batch_bytes` or `max_rows`, and before a column reaches 2 GiB.
//!
//! Safe for any bytes: each batch's CRC is checked (unless the options say otherwise), records decompress to at most
//! `max_decompressed_bytes`, and every error names topic, partition and offset. Not thread-safe, but `Send`.
use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;

use super::build::{BytesBuilder, HeadersBuilder, LongBuilder};
use super::constants::Constants;
use super::filter::RowFilter;
use super::schema::{Column, schema};
use pylog_record::batches::{BatchView, body};
use pylog_record::compression::decompress_into;
use pylog_record::control::AbortedFilter;
use pylog_record::reader::Records;
use pylog_record::{BatchError, BatchHeader, Codec, RecordRef, records};

/// Upper bound of an Arrow batch's variable bytes: offsets are i32.
const MAX_COLUMN_BYTES: usize = i32::MAX as usize;
/// Bytes of a row besides its key, value and headers, roughly: offsets, timestamps, constants.
const ROW_OVERHEAD_BYTES: usize = 4;

/// Limits of a [`BatchDecoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// An Arrow batch ends when its keys, values and headers have about this many bytes.
    pub batch_bytes: usize,
    /// An Arrow batch has at most this many rows; > 0.
    pub max_rows: usize,
    /// The records of one batch decompress to at most this many bytes.
    pub max_decompressed_bytes: usize,
    /// Whether each batch's CRC is checked (`check.crcs`).
    pub check_crcs: bool,
}

impl Default for DecodeOptions {
    /// 1.5 MB or 10,000 rows (what Spark's hand-over was measured to like); 256 MiB; CRCs are checked.
    fn default() -> Self {
        Self {
            batch_bytes: 1_500_000,
            max_rows: 10_000,
            max_decompressed_bytes: 256 * 1024 * 1024,
            check_crcs: true,
        }
    }
}

/// Bytes of a partition that cannot be shown as rows.
#[derive(Debug, thiserror::Error)]
#[error("topic {topic}, partition {partition}, batch at offset {base_offset}: {source}")]
pub struct DecodeError {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Base offset of the batch; the next expected offset when its header could not be read.
    pub base_offset: i64,
    /// What is wrong with it.
    pub source: DecodeCause,
}

/// What is wrong with a batch.
#[derive(Debug, thiserror::Error)]
pub enum DecodeCause {
    /// Its bytes.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Arrow refused a column: a bug.
    #[error("cannot build Arrow columns: {0}")]
    Arrow(#[from] ArrowError),
}

/// Turns record batches into Arrow batches, see the module.
#[derive(Debug)]
pub struct BatchDecoder {
    columns: Vec<Column>,
    schema: SchemaRef,
    constants: Constants,
    options: DecodeOptions,
    /// The next offset that may become a row.
    next_offset: i64,
    end: i64,
    filter: Option<RowFilter>,
    /// Rows that may still come before the range ends early.
    rows_left: usize,
    aborted: AbortedFilter,
    rows: Rows,
    /// Finished batches, each with the offset that follows its last row.
    ready: VecDeque<(RecordBatch, i64)>,
    /// Every row before this offset was taken.
    resume_offset: i64,
    decompressed: Vec<u8>,
}

impl BatchDecoder {
    /// A decoder of `columns` (in this order) for the offsets `range` of one partition.
    pub fn new(
        columns: &[Column],
        topic: impl Into<String>,
        partition: i32,
        range: Range<i64>,
        options: DecodeOptions,
    ) -> Self {
        Self {
            columns: columns.to_vec(),
            schema: schema(columns),
            constants: Constants::new(topic.into(), partition),
            options: DecodeOptions { max_rows: options.max_rows.max(1), ..options },
            next_offset: range.start,
            end: range.end,
            filter: None,
            rows_left: usize::MAX,
            aborted: AbortedFilter::default(),
            rows: Rows::new(columns),
            ready: VecDeque::new(),
            resume_offset: range.start,
            decompressed: Vec::new(),
        }
    }

    /// Leaves out rows that `filter` does not take.
    #[must_use]
    pub fn with_filter(mut self, filter: RowFilter) -> Self {
        self.filter = (!filter.takes_all()).then_some(filter);
        self
    }

    /// Ends the range with row number `most`, if it comes before the end; > 0.
    #[must_use]
    pub fn with_row_limit(mut self, most: usize) -> Self {
        self.rows_left = most.max(1);
        self
    }

    /// Rows that may still come before the range ends early; `usize::MAX` when there is no such limit.
    pub fn rows_left(&self) -> usize {
        self.rows_left
    }

    /// Says that the log holds nothing before `offset`.
    pub fn pass(&mut self, offset: i64) {
        self.next_offset = self.next_offset.max(offset.min(self.end));
    }

    /// The schema of every Arrow batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The offset to fetch next: one after the last batch pushed, at most the end of the range.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Whether the end of the range is reached; what is left comes by [`BatchDecoder::flush`].
    pub fn at_end(&self) -> bool {
        self.next_offset >= self.end
    }

    /// Moves the end of the range (a reader that follows the log).
    pub fn set_end(&mut self, end: i64) {
        self.end = end;
    }

    /// Names aborted transactions (`(producer_id, first_offset)` of a fetch answer) before their batches are pushed.
    pub fn add_aborted(&mut self, aborted: impl IntoIterator<Item = (i64, i64)>) {
        self.aborted.extend(aborted);
    }

    /// The same with the offsets of their markers, `(producer_id, first_offset, last_offset)`: from whoever knows them.
    pub fn add_whole_aborted(&mut self, aborted: impl IntoIterator<Item = (i64, i64, i64)>) {
        self.aborted.extend_whole(aborted);
    }

    /// Rows that wait for [`BatchDecoder::next_batch`] to be full.
    pub fn pending_rows(&self) -> usize {
        self.rows.count
    }

    /// The next full Arrow batch.
    pub fn next_batch(&mut self) -> Option<RecordBatch> {
        let (batch, resume_offset) = self.ready.pop_front()?;
        self.resume_offset = resume_offset;
        Some(batch)
    }

    /// Every row before this offset was taken by [`BatchDecoder::next_batch`] or [`BatchDecoder::flush`].
    pub fn resume_offset(&self) -> i64 {
        self.resume_offset
    }

    /// The next Arrow batch, full or not; `None` when there are no rows.
    ///
    /// # Errors
    /// [`DecodeCause::Arrow`], which would be a bug.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, DecodeError> {
        if self.ready.is_empty() && self.rows.count > 0 {
            self.cut(self.next_offset).map_err(|cause| self.error(self.next_offset, cause))?;
        }
        if self.ready.is_empty() {
            self.resume_offset = self.next_offset;
        }
        Ok(self.next_batch())
    }

    /// Takes the rows of one whole record batch.
    ///
    /// # Errors
    /// [`DecodeError`]; the rows before the broken record may have been taken, the decoder is of no more use.
    pub fn push(&mut self, view: &BatchView<'_>) -> Result<(), DecodeError> {
        // First of all: a flipped bit in the last offset must not make a batch look like one to be skipped.
        if self.options.check_crcs {
            view.0.verify_crc(view.1).map_err(|cause| self.error(view.0.base_offset, cause.into()))?;
        }
        self.push_checked(view)
    }

    /// As [`BatchDecoder::push`], of a batch whose CRC the caller has checked.
    ///
    /// # Errors
    /// Those of [`BatchDecoder::push`].
    pub fn push_checked(&mut self, view: &BatchView<'_>) -> Result<(), DecodeError> {
        self.push_view(view).map_err(|cause| self.error(view.0.base_offset, cause))
    }

    fn error(&self, base_offset: i64, source: DecodeCause) -> DecodeError {
        let (topic, partition) = (self.constants.topic().to_owned(), self.constants.partition());
        DecodeError { topic, partition, base_offset, source }
    }

    fn push_view(&mut self, view: &BatchView<'_>) -> Result<(), DecodeCause> {
        let (header, batch) = view;
        if header.last_offset_delta < 0 {
            return Err(BatchError::Malformed("the last offset is before the first").into());
        }
        if header.last_offset() < self.next_offset || self.at_end() {
            return Ok(());
        }
        let hidden = header.base_offset >= self.end || self.aborted.hides(view)?;
        if !hidden && !self.filter.as_ref().is_some_and(|filter| filter.skips(header)) {
            self.push_body(header, body(batch))?;
        }
        self.next_offset = header.last_offset().saturating_add(1).min(self.end);
        Ok(())
    }

    fn push_body(&mut self, header: &BatchHeader, body: &[u8]) -> Result<(), DecodeCause> {
        let codec = Codec::from_attributes(header.attributes)?;
        if codec == Codec::None {
            return self.push_records(header, body);
        }
        let mut plain = std::mem::take(&mut self.decompressed);
        let result = decompress_into(codec, body, self.options.max_decompressed_bytes, &mut plain)
            .map_err(DecodeCause::from)
            .and_then(|()| self.push_records(header, &plain));
        self.decompressed = plain;
        result
    }

    fn push_records(&mut self, header: &BatchHeader, body: &[u8]) -> Result<(), DecodeCause> {
        if self.rows.count > 0 && self.rows.append_time != header.is_log_append_time() {
            self.cut(self.next_offset)?;
        }
        self.rows.append_time = header.is_log_append_time();
        let mut records = records(body, header);
        self.reserve(&records);
        let mut least = self.next_offset;
        let mut previous = header.base_offset.saturating_sub(1);
        while let Some(record) = records.next() {
            let record = record?;
            if record.offset <= previous || record.offset > header.last_offset() {
                return Err(BatchError::Malformed("record offsets are not ascending within the batch").into());
            }
            previous = record.offset;
            if record.offset < least {
                continue;
            }
            if record.offset >= self.end {
                break;
            }
            if self.filter.as_ref().is_some_and(|filter| !filter.takes(&record)) {
                continue;
            }
            if self.rows.is_full(&record, &self.options) {
                self.cut(record.offset)?;
                self.reserve(&records);
            }
            self.rows.push(&record)?;
            least = record.offset;
            self.rows_left -= 1;
            if self.rows_left == 0 {
                self.end = record.offset.saturating_add(1);
                break;
            }
        }
        Ok(())
    }

    /// Reserves room for `records`. With a filter the number of rows is not known, so columns grow as needed.
    fn reserve(&mut self, records: &Records<'_>) {
        if self.filter.is_none() {
            self.rows.reserve(records, &self.options, self.rows_left);
        }
    }

    /// Ends the Arrow batch; the next row is at `resume_offset` or later.
    fn cut(&mut self, resume_offset: i64) -> Result<(), DecodeCause> {
        let count = std::mem::take(&mut self.rows.count);
        self.rows.bytes = 0;
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            let array: ArrayRef = match self.columns[..at].iter().position(|earlier| earlier == column) {
                Some(twin) => Arc::clone(&arrays[twin]),
                None => self.rows.finish(*column, count, &mut self.constants)?,
            };
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        self.ready.push_back((batch, resume_offset));
        Ok(())
    }
}

/// The rows of the Arrow batch being built; only columns that were asked for exist.
#[derive(Debug, Default)]
struct Rows {
    count: usize,
    bytes: usize,
    append_time: bool,
    keys: Option<BytesBuilder>,
    values: Option<BytesBuilder>,
    offsets: Option<LongBuilder>,
    timestamps: Option<LongBuilder>,
    headers: Option<HeadersBuilder>,
}

impl Rows {
    fn new(columns: &[Column]) -> Self {
        let mut rows = Self::default();
        for column in columns {
            match column {
                Column::Key => rows.keys = Some(BytesBuilder::default()),
                Column::Value => rows.values = Some(BytesBuilder::default()),
                Column::Offset => rows.offsets = Some(LongBuilder::default()),
                Column::Timestamp => rows.timestamps = Some(LongBuilder::default()),
                Column::Headers => rows.headers = Some(HeadersBuilder::default()),
                Column::Topic | Column::Partition | Column::TimestampType => {}
            }
        }
        rows
    }

    /// Makes room for `records`, as far as they fit into this Arrow batch.
    fn reserve(&mut self, records: &Records<'_>, options: &DecodeOptions, most: usize) {
        let rows = records.len().min(options.max_rows.saturating_sub(self.count)).min(most);
        let bytes = records.bytes_left() / records.len().max(1) * rows;
        let bytes = bytes.min(options.batch_bytes.saturating_sub(self.bytes));
        if let Some(keys) = &mut self.keys {
            // Keys are mostly short: growing from a sixteenth is rare and cheap.
            keys.reserve(rows, bytes / 16);
        }
        if let Some(values) = &mut self.values {
            values.reserve(rows, bytes);
        }
        for longs in [&mut self.offsets, &mut self.timestamps].into_iter().flatten() {
            longs.reserve(rows);
        }
        if let Some(headers) = &mut self.headers {
            headers.reserve(rows);
        }
    }

    #[inline(always)]
    fn is_full(&self, record: &RecordRef<'_>, options: &DecodeOptions) -> bool {
        if self.count >= options.max_rows || self.bytes >= options.batch_bytes {
            return self.count > 0;
        }
        // A header key that is not UTF-8 can grow threefold.
        self.count > 0 && self.bytes + record_bytes(record) * 3 > MAX_COLUMN_BYTES
    }

    #[inline(always)]
    fn push(&mut self, record: &RecordRef<'_>) -> Result<(), BatchError> {
        let mut bytes = ROW_OVERHEAD_BYTES;
        if let Some(keys) = &mut self.keys {
            keys.push(record.key);
            bytes += record.key.map_or(0, <[u8]>::len);
        }
        if let Some(values) = &mut self.values {
            values.push(record.value);
            bytes += record.value.map_or(0, <[u8]>::len);
        }
        if let Some(offsets) = &mut self.offsets {
            offsets.push(record.offset);
        }
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.push(record.timestamp.saturating_mul(1000));
        }
        if let Some(headers) = &mut self.headers {
            headers.push(&record.headers)?;
            bytes += record.headers.as_bytes().len();
        }
        self.count += 1;
        self.bytes += bytes;
        Ok(())
    }

    fn finish(
        &mut self,
        column: Column,
        rows: usize,
        constants: &mut Constants,
    ) -> Result<ArrayRef, ArrowError> {
        let missing = || ArrowError::InvalidArgumentError(format!("column {} twice", column.name()));
        match column {
            Column::Key => Ok(Arc::new(self.keys.as_mut().ok_or_else(missing)?.finish()?)),
            Column::Value => Ok(Arc::new(self.values.as_mut().ok_or_else(missing)?.finish()?)),
            Column::Topic => constants.topics(rows),
            Column::Partition => constants.partitions(rows),
            Column::Offset => self.offsets.as_mut().ok_or_else(missing)?.finish(),
            Column::Timestamp => self.timestamps.as_mut().ok_or_else(missing)?.finish_timestamp(),
            Column::TimestampType => constants.timestamp_types(self.append_time, rows),
            Column::Headers => self.headers.as_mut().ok_or_else(missing)?.finish(),
        }
    }
}

/// Bytes of key, value and headers.
#[inline(always)]
fn record_bytes(record: &RecordRef<'_>) -> usize {
    record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len) + record.headers.as_bytes().len()
}
