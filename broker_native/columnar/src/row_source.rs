//! An Arrow batch as rows to be written: columns are found by name, other columns are ignored.
//!
//! | column | types | null |
//! |---|---|---|
//! | `value`, required | binary, string (also large, view) | a tombstone |
//! | `key` | as `value` | no key |
//! | `topic`, unless a topic is given | string (also large, view) | an error |
//! | `partition` | int of 8, 16, 32, 64 bits | the partitioner chooses |
//! | `headers` | list of struct (key string, value binary or string) | no headers |
//! | `timestamp` | timestamp of any unit; without zone it is UTC | the time of writing |
//!
//! A column of Arrow's type `null` is as if each row were null. Nothing is copied: rows borrow from the batch.
use arrow_array::{Array, RecordBatch};

use super::input::{BytesColumn, HeadersColumn, IntColumn, TextColumn, TimeColumn};
use super::row_error::RowError;
use pylog_record::{BatchBuilder, BatchError, HeaderRef};

/// One row to be written; its headers are apart, see [`RowSource::row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Topic.
    pub topic: &'a str,
    /// Partition, when the row names one; >= 0.
    pub partition: Option<i32>,
    /// Key.
    pub key: Option<&'a [u8]>,
    /// Value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Milliseconds since the epoch, when the row names it.
    pub timestamp_ms: Option<i64>,
}

impl Row<'_> {
    /// Appends the row to a batch; `now_ms` stands for a missing timestamp.
    ///
    /// # Errors
    /// As [`BatchBuilder::append`].
    #[inline(always)]
    pub fn append_to(
        &self,
        builder: &mut BatchBuilder,
        headers: &[HeaderRef<'_>],
        now_ms: i64,
    ) -> Result<(), BatchError> {
        builder.append(self.timestamp_ms.unwrap_or(now_ms), self.key, self.value, headers)
    }
}

/// The rows of one Arrow batch.
pub struct RowSource<'a> {
    len: usize,
    topic: Topic<'a>,
    value: BytesColumn<'a>,
    key: BytesColumn<'a>,
    partition: IntColumn<'a>,
    headers: Option<HeadersColumn<'a>>,
    timestamp: TimeColumn<'a>,
}

enum Topic<'a> {
    Given(&'a str),
    Column(TextColumn<'a>),
}

impl<'a> RowSource<'a> {
    /// Looks the columns up and checks their types. A given `topic` wins over the column.
    ///
    /// # Errors
    /// [`RowError::NoValue`], [`RowError::NoTopic`], [`RowError::WrongType`].
    pub fn new(batch: &'a RecordBatch, topic: Option<&'a str>) -> Result<Self, RowError> {
        let column = |name: &str| batch.column_by_name(name).map(|array| array.as_ref() as &dyn Array);
        let topic = match (topic, column("topic")) {
            (Some(topic), _) => Topic::Given(topic),
            (None, Some(array)) => Topic::Column(TextColumn::new("topic", array)?),
            (None, None) => return Err(RowError::NoTopic),
        };
        let value = column("value").ok_or(RowError::NoValue)?;
        Ok(Self {
            len: batch.num_rows(),
            topic,
            value: BytesColumn::new("value", value)?,
            key: column("key").map_or(Ok(BytesColumn::Null), |array| BytesColumn::new("key", array))?,
            partition: column("partition")
                .map_or(Ok(IntColumn::Null), |array| IntColumn::new("partition", array))?,
            headers: column("headers").map_or(Ok(None), |array| HeadersColumn::new("headers", array))?,
            timestamp: column("timestamp")
                .map_or(Ok(TimeColumn::Null), |array| TimeColumn::new("timestamp", array))?,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Row `row` (< [`RowSource::len`]); `headers` is emptied and takes its headers.
    ///
    /// # Errors
    /// [`RowError::NullTopic`], [`RowError::Partition`], [`RowError::HeaderKey`].
    #[inline]
    pub fn row(&self, row: usize, headers: &mut Vec<HeaderRef<'a>>) -> Result<Row<'a>, RowError> {
        headers.clear();
        if let Some(column) = &self.headers {
            for item in column.items(row) {
                let (key, value) = column.item(item);
                let key = key.ok_or(RowError::HeaderKey { row })?.as_bytes();
                headers.push(HeaderRef { key, value });
            }
        }
        Ok(Row {
            topic: self.topic(row)?,
            partition: self.partition(row)?,
            key: self.key.get(row),
            value: self.value.get(row),
            timestamp_ms: self.timestamp.get_ms(row),
        })
    }

    #[inline(always)]
    fn topic(&self, row: usize) -> Result<&'a str, RowError> {
        match &self.topic {
            Topic::Given(topic) => Ok(topic),
            Topic::Column(column) => column.get(row).ok_or(RowError::NullTopic { row }),
        }
    }

    #[inline(always)]
    fn partition(&self, row: usize) -> Result<Option<i32>, RowError> {
        match self.partition.get(row) {
            None => Ok(None),
            Some(value) => match i32::try_from(value) {
                Ok(partition) if partition >= 0 => Ok(Some(partition)),
                _ => Err(RowError::Partition { row, value }),
            },
        }
    }
}
