//! Record batch <-> Arrow: the columns of Spark's Kafka connector, without an object per record.
//!
//! | file | what it does |
//! |---|---|
//! | [`schema`] | the columns: names, types, order; the size of a batch |
//! | [`decode`] | record batches of one partition -> Arrow batches |
//! | [`filter`] | which rows are wanted |
//! | [`row_source`], [`row_error`] | an Arrow batch -> rows for [`pylog_record::BatchBuilder`]; why one cannot be written |
//!
//! Only this crate, pylog-typed and pylog-native see Arrow.
mod build;
mod constants;
pub mod decode;
pub mod filter;
mod input;
pub mod row_error;
pub mod row_source;
pub mod schema;

pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;

pub use decode::{BatchDecoder, DecodeError, DecodeOptions};
pub use filter::{KeyCondition, RowFilter};
pub use row_error::RowError;
pub use row_source::{Row, RowSource};
pub use schema::{Column, UnknownColumn, schema, size_of};
