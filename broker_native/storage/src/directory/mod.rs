//! A data directory, pylog's or Apache Kafka's, read without its broker. Nothing is written, locked or mended.
//!
//! | file | what it does |
//! |---|---|
//! | [`found`] | which partitions there are, and what the checkpoints beside them say |
//! | [`partition`] | one partition: its segments, where its log begins and ends, times, aborted transactions |
//! | [`cursor`] | its batches, checked, from an offset on |
//! | `segments` | which files make up the log, also after a crash in the middle of a compaction |
//! | `walk` | from batch to batch to the end of the log |
//! | `fits` | whether a batch may stand where it does |
//! | `resume` | where whole batches go on behind damaged bytes |
//! | [`damage`], [`error`] | what is left out, and what cannot be read |
//!
//! # Where a log ends
//! Up to the recovery point (`recovery-point-offset-checkpoint`; without the file, up to the last segment) all was on the
//! device: bytes there that are no batch are damage. Behind it the log ends with the last whole batch, as the recovery of
//! its broker would cut it; that is [`damage::Damage`] of the end and is told, not an error. Kafka keeps no mark of which
//! records all replicas have that is exact, so a directory of a replicated partition is read to its end.
//!
//! # While a broker uses the directory
//! What is planned once stays readable: appends come behind it, files that compaction replaced are looked up anew, and what
//! retention removed is [`error::DirectoryError::Removed`]. What an election cuts off a log (replicated partitions only) may be
//! read. Whoever wants it exact asks the broker.
//!
//! Values may be sent to other threads; a cursor is for one at a time. Files are opened when they are read.
pub mod cursor;
pub mod damage;
pub mod error;
mod fits;
pub mod found;
pub mod partition;
mod resume;
mod segments;
mod walk;
