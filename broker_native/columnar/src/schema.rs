//! The columns that a read gives: names, order and types of Spark's Kafka connector, all nullable.
use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// A column of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// `key`, binary; null without key.
    Key,
    /// `value`, binary; null for a tombstone.
    Value,
    /// `topic`, string.
    Topic,
    /// `partition`, int32.
    Partition,
    /// `offset`, int64.
    Offset,
    /// `timestamp`, microseconds, UTC.
    Timestamp,
    /// `timestampType`, int32: 0 create time, 1 log append time.
    TimestampType,
    /// `headers`, list of (key string, value binary); null without headers.
    Headers,
}

/// No column has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no column {0:?}; there are key, value, topic, partition, offset, timestamp, timestampType, headers")]
pub struct UnknownColumn(pub String);

impl Column {
    /// Every column, in the connector's order.
    pub const ALL: [Self; 8] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Headers,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::TimestampType => "timestampType",
            Self::Headers => "headers",
        }
    }

    /// The column of this name.
    ///
    /// # Errors
    /// [`UnknownColumn`].
    pub fn from_name(name: &str) -> Result<Self, UnknownColumn> {
        let found = Self::ALL.into_iter().find(|column| column.name() == name);
        found.ok_or_else(|| UnknownColumn(name.to_owned()))
    }

    /// Its Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Key | Self::Value => DataType::Binary,
            Self::Topic => DataType::Utf8,
            Self::Partition | Self::TimestampType => DataType::Int32,
            Self::Offset => DataType::Int64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.clone())),
            Self::Headers => DataType::List(HEADER_ITEM.clone()),
        }
    }
}

/// The zone of `timestamp`.
pub(crate) static UTC: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("UTC"));

/// Fields of one header.
pub(crate) static HEADER_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
});

/// The item of `headers`; Spark calls list items `element`.
pub(crate) static HEADER_ITEM: LazyLock<Arc<Field>> =
    LazyLock::new(|| Arc::new(Field::new("element", DataType::Struct(HEADER_FIELDS.clone()), true)));

/// The schema of a read of `columns`, in this order.
pub fn schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| Field::new(column.name(), column.data_type(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}
/// Bytes of a batch's data, without what its buffers have room for besides.
pub fn size_of(batch: &RecordBatch) -> usize {
    let size = |column: &ArrayRef| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
    };
    batch.columns().iter().map(size).sum()
}
