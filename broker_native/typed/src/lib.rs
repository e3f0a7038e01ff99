//! Keys and values of records <-> typed Arrow columns, with the meaning of Spark's `from_json`, `from_avro`,
//! `from_protobuf` and their opposites.
//!
//! | file | what it does |
//! |---|---|
//! | [`plan`] | what is wanted: formats, the columns and where each comes from, the mode |
//! | [`source`] | where a column comes from |
//! | [`decoder`] | raw Arrow batches of `columnar` -> typed ones; what becomes of records that do not parse |
//! | [`encoder`] | the other way: typed columns -> keys and values |
//! | [`format`] | the formats, by name; one record of any of them |
//! | [`json`], [`plain`] | one record of JSON, read and written; of Kafka's serializers of numbers and texts |
//! | [`column`] | a column while it is built: it grows value by value, and forgets a record that turns out damaged |
//! | [`conditions`] | conditions of a query on decoded columns |
//! | [`avro`] | Avro's binary encoding |
//! | [`protobuf`] | messages of Protobuf, by their descriptors |
//! | [`writers`] | schemas of a registry, by the ids that records begin with |
//! | [`bad`] | records that do not parse, kept for another topic |
//! | [`damage`] | why a record does not parse |
//! | [`decimal`], [`time`] | texts of decimals, dates and timestamps as Spark reads them |
//!
//! Safe for any bytes: nothing grows without a bound that is named ([`column::MAX_CELLS`]).
pub mod avro;
pub mod bad;
pub mod column;
pub mod conditions;
pub mod damage;
pub mod decimal;
pub mod decoder;
pub mod encoder;
pub mod format;
pub mod json;
pub mod plain;
pub mod plan;
pub mod protobuf;
pub mod source;
pub mod time;
pub mod writers;

pub use conditions::Test;
pub use decoder::{BadRecord, TypedDecoder};
pub use plan::{Mode, TypedPlan};
pub use source::Source;
