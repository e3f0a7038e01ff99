//! Why an Arrow batch cannot be written.

/// Why an Arrow batch cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
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
