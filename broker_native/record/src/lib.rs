//! v2 record batches: layout, CRC, codecs, reader, builder, partitioner.
//!
//! Pure functions over byte slices: no I/O, no clock, no thread. Bytes from outside never cause a panic and never an
//! allocation larger than the caller allowed or than the bytes at hand justify.
//!
//! | file | what it does |
//! |---|---|
//! | [`layout`], [`header`] | where each field is; the header as a value |
//! | [`batches`](mod@batches) | cuts a run of bytes into batches |
//! | [`compression`] | codecs, bounded |
//! | [`reader`] | records of one batch, zero-copy |
//! | [`opened`] | records of a compressed batch, one after the other in bounded memory |
//! | [`heads`] | by which schemas keys and values are written |
//! | [`validate`] | what a broker checks before an append |
//! | [`builder`] | records -> batch |
//! | [`control`] | transaction markers, and which batches an aborted transaction hides |
//! | [`rewrite`] | a batch with fewer records |
//! | [`partitioner`] | key -> partition |
//! | [`topic_partition`] | the name of a partition |
pub mod batches;
pub mod builder;
pub mod compression;
pub mod control;
pub mod header;
pub mod heads;
pub mod layout;
pub mod opened;
pub mod partitioner;
pub mod reader;
pub mod rewrite;
pub mod topic_partition;
pub mod validate;
mod varint;

pub use batches::{BatchView, batches};
pub use builder::BatchBuilder;
pub use compression::Codec;
pub use header::{BatchError, BatchHeader};
pub use reader::{HeaderRef, RecordRef, records};
pub use topic_partition::TopicPartition;
