//! Records that do not parse, kept as they were and ready to be written to another topic.
use std::fmt::Write;

use arrow_array::builder::{BinaryBuilder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use parking_lot::Mutex;
use pylog_columnar::Column as RecordColumn;
use std::sync::Arc;

/// The columns of `columnar` that a kept record is made of.
pub(crate) const RAW: [RecordColumn; 7] = [
    RecordColumn::Key,
    RecordColumn::Value,
    RecordColumn::Topic,
    RecordColumn::Partition,
    RecordColumn::Offset,
    RecordColumn::Timestamp,
    RecordColumn::Headers,
];

/// What the decoders of a plan have kept. Who reads takes it batch by batch, so it is bounded by how far the reader is ahead.
#[derive(Debug, Default)]
pub struct BadRecords(Mutex<Vec<RecordBatch>>);

impl BadRecords {
    /// All that was kept since the last call.
    pub fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.0.lock())
    }

    /// Keeps rows of a raw batch, each with what is wrong with it.
    ///
    /// # Errors
    /// When Arrow refuses a column, which would be a bug.
    pub(crate) fn keep<'a>(
        &self,
        raw: impl Fn(RecordColumn) -> Option<&'a ArrayRef>,
        rows: &[(usize, String)],
    ) -> Result<(), ArrowError> {
        if !rows.is_empty() {
            let column = |wanted| {
                raw(wanted).ok_or_else(|| ArrowError::InvalidArgumentError(format!("no column {wanted:?}")))
            };
            self.0.lock().push(batch(column, rows)?);
        }
        Ok(())
    }
}

/// `topic`, `partition` and `offset` of the records; their `value`, and `headers` that say where they are from and what is wrong.
fn batch<'a>(
    raw: impl Fn(RecordColumn) -> Result<&'a ArrayRef, ArrowError>,
    rows: &[(usize, String)],
) -> Result<RecordBatch, ArrowError> {
    let numbers = || rows.iter().map(|(row, _)| *row);
    let topics: &StringArray = raw(RecordColumn::Topic)?.as_string();
    let partitions = raw(RecordColumn::Partition)?.as_primitive::<Int32Type>();
    let offsets = raw(RecordColumn::Offset)?.as_primitive::<Int64Type>();
    let values: &BinaryArray = raw(RecordColumn::Value)?.as_binary();
    let times = raw(RecordColumn::Timestamp)?.as_primitive::<TimestampMicrosecondType>();
    let keys: &BinaryArray = raw(RecordColumn::Key)?.as_binary();
    let theirs = raw(RecordColumn::Headers)?.as_list::<i32>();
    let mut headers = Headers::new();
    let mut text = String::new();
    let mut number = |headers: &mut Headers, name, number: i64| {
        text.clear();
        // A string takes all that is written.
        let _ = write!(text, "{number}");
        headers.push(Some(name), Some(text.as_bytes()));
    };
    for (row, error) in rows {
        if theirs.is_valid(*row) {
            headers.copy(theirs.value(*row).as_struct());
        }
        headers.push(Some("pylog.topic"), Some(topics.value(*row).as_bytes()));
        number(&mut headers, "pylog.partition", partitions.value(*row).into());
        number(&mut headers, "pylog.offset", offsets.value(*row));
        number(&mut headers, "pylog.timestamp", times.value(*row).div_euclid(1000));
        if keys.is_valid(*row) {
            headers.push(Some("pylog.key"), Some(keys.value(*row)));
        }
        headers.push(Some("pylog.error"), Some(error.as_bytes()));
        headers.lists.append(true);
    }
    let columns: [(&str, ArrayRef); 5] = [
        ("topic", Arc::new(StringArray::from_iter_values(numbers().map(|row| topics.value(row))))),
        ("partition", Arc::new(Int32Array::from_iter_values(numbers().map(|row| partitions.value(row))))),
        ("offset", Arc::new(Int64Array::from_iter_values(numbers().map(|row| offsets.value(row))))),
        (
            "value",
            Arc::new(
                numbers().map(|row| values.is_valid(row).then(|| values.value(row))).collect::<BinaryArray>(),
            ),
        ),
        ("headers", Arc::new(headers.lists.finish())),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// A growing column of headers.
struct Headers {
    lists: ListBuilder<StructBuilder>,
}

impl Headers {
    fn new() -> Self {
        let fields = Fields::from(vec![
            Field::new("key", DataType::Utf8, true),
            Field::new("value", DataType::Binary, true),
        ]);
        let item = Field::new("element", DataType::Struct(fields.clone()), true);
        Self { lists: ListBuilder::new(StructBuilder::from_fields(fields, 0)).with_field(item) }
    }

    fn push(&mut self, key: Option<&str>, value: Option<&[u8]>) {
        let item = self.lists.values();
        if let Some(keys) = item.field_builder::<StringBuilder>(0) {
            keys.append_option(key);
        }
        if let Some(values) = item.field_builder::<BinaryBuilder>(1) {
            values.append_option(value);
        }
        item.append(true);
    }

    fn copy(&mut self, theirs: &StructArray) {
        let [keys, values] = theirs.columns() else { return };
        let (keys, values): (&StringArray, &BinaryArray) = (keys.as_string(), values.as_binary());
        for item in 0..theirs.len() {
            let key = keys.is_valid(item).then(|| keys.value(item));
            self.push(key, values.is_valid(item).then(|| values.value(item)));
        }
    }
}
