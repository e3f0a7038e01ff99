//! Where the columns of a typed read come from.
use pylog_columnar::Column as RecordColumn;

/// Where a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A column of the record, as it is without formats.
    Record(RecordColumn),
    /// The key, by its format.
    Key,
    /// The value, by its format.
    Value,
    /// A field of the value.
    Field,
    /// The text of a damaged record.
    Corrupt,
}
