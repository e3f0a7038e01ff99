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
use pylog_record::{BatchBuilder, BatchError, HeaderRef};

/// Why an Arrow batch cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// No `value` column.
    #[error("the data has no column \"value\"; select one, e.g. to_json(struct(*)) as value")]
    NoValue,
    /// No topic at all.
    #[error("no topic to write to: set the option \"topic\" or add a column \"topic\"")]
    NoTopic,
    /// A row without topic.
    #[error("row {row} has a null \"topic\"; set the option \"topic\" or fill the column")]
    NullTopic {
        /// Row in the Arrow batch.
        row: usize,
    },
    /// A column of a type that cannot be written.
    #[error("column {column:?} has type {found}, it must be {accepted}")]
    WrongType {
        /// Column.
        column: &'static str,
        /// Its Arrow type.
        found: String,
        /// What would do.
        accepted: &'static str,
    },
    /// A partition that cannot be.
    #[error("row {row} has partition {value}; it must be null or from 0 to the topic's partitions - 1")]
    Partition {
        /// Row in the Arrow batch.
        row: usize,
        /// What stands there.
        value: i64,
    },
    /// A header without key.
    #[error("row {row} has a header without key; every header needs a key")]
    HeaderKey {
        /// Row in the Arrow batch.
        row: usize,
    },
}

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
    /// [`EncodeError::NoValue`], [`EncodeError::NoTopic`], [`EncodeError::WrongType`].
    pub fn new(batch: &'a RecordBatch, topic: Option<&'a str>) -> Result<Self, EncodeError> {
        let column = |name: &str| batch.column_by_name(name).map(|array| array.as_ref() as &dyn Array);
        let topic = match (topic, column("topic")) {
            (Some(topic), _) => Topic::Given(topic),
            (None, Some(array)) => Topic::Column(TextColumn::new("topic", array)?),
            (None, None) => return Err(EncodeError::NoTopic),
        };
        let value = column("value").ok_or(EncodeError::NoValue)?;
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
    /// [`EncodeError::NullTopic`], [`EncodeError::Partition`], [`EncodeError::HeaderKey`].
    #[inline]
    pub fn row(&self, row: usize, headers: &mut Vec<HeaderRef<'a>>) -> Result<Row<'a>, EncodeError> {
        headers.clear();
        if let Some(column) = &self.headers {
            for item in column.items(row) {
                let (key, value) = column.item(item);
                let key = key.ok_or(EncodeError::HeaderKey { row })?.as_bytes();
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
    fn topic(&self, row: usize) -> Result<&'a str, EncodeError> {
        match &self.topic {
            Topic::Given(topic) => Ok(topic),
            Topic::Column(column) => column.get(row).ok_or(EncodeError::NullTopic { row }),
        }
    }

    #[inline(always)]
    fn partition(&self, row: usize) -> Result<Option<i32>, EncodeError> {
        match self.partition.get(row) {
            None => Ok(None),
            Some(value) => match i32::try_from(value) {
                Ok(partition) if partition >= 0 => Ok(Some(partition)),
                _ => Err(EncodeError::Partition { row, value }),
            },
        }
    }
}
