//! The log on disk: segments, indexes, recovery, retention, durability. Apache Kafka's own format, file by file.
//!
//! # Layout
//! | module | what it owns | uses |
//! |---|---|---|
//! | [`config`], [`error`] | settings, errors | none |
//! | `system` | what systems do in ways of their own with an open file | none |
//! | [`disk`], [`clock`] | the traits under everything, and the real ones | `system` |
//! | `names` | every file name, once | `error` |
//! | `idle_closing_disk` | closes open files when descriptors are wanted | `disk`, `error` |
//! | `files` | open files, bounded; files replaced as a whole | `disk`, `error`, `idle_closing_disk`, `names` |
//! | `checkpoint`, `epochs`, [`identity`] | the small files beside the segments | `config`, `disk`, `error`, `files`, `names` |
//! | `inventory` | what the logs were at a clean stop, for the next start to compare | `disk`, `error`, `files`, `names` |
//! | `scan` | walking the batches of a file, CRC by CRC | `disk` |
//! | [`types`] | small values | `disk`, `error`, `scan` |
//! | `index` | the entries of sparse indexes | `disk` |
//! | `first_record` | the first record of a batch that is not older than a time | none |
//! | `segment` | one `.log` with its two indexes, and the `.txnindex` of what was aborted | `config`, `disk`, `error`, `files`, `index`, `names`, `scan`, `types` |
//! | `producers` | idempotent and transactional producers: duplicates, gaps, fencing, open transactions, snapshots | `error`, `types` |
//! | `flusher` | the threads of group commit | none |
//! | `shared` | what the logs of one data directory share | `checkpoint`, `clock`, `config`, `disk`, `error`, `files`, `flusher`, `inventory`, `names` |
//! | [`partition_log`] | one partition: append, read, flush, recovery, retention | `checkpoint`, `config`, `disk`, `epochs`, `error`, `files`, `first_record`, `flusher`, `identity`, `inventory`, `names`, `producers`, `scan`, `segment`, `shared`, `types` |
//! | [`cleaner`] | compaction | `config`, `disk`, `error`, `names`, `partition_log`, `producers`, `segment`, `shared`, `types` |
//! | [`directory`] | a data directory read without its broker | `checkpoint`, `disk`, `error`, `files`, `first_record`, `identity`, `index`, `names`, `producers`, `scan`, `segment`, `types` |
//! | [`manager`] | one data directory | `cleaner`, `clock`, `config`, `disk`, `error`, `identity`, `names`, `partition_log`, `shared`, `types` |
//!
//! # What is promised
//! - A batch is in the log whole or not at all; what was acknowledged is never cut, changed or served damaged.
//! - `page-cache`: an acknowledged record survives the death of the process. After a loss of power the log is a prefix
//!   of what was written. `flushed`: an acknowledged record survives a loss of power.
//! - Damage behind the recovery point of an unclean stop is cut and reported ([`types::CutTail`]); before it, or after a
//!   clean stop, it is an error, and no file is touched. Indexes are hints: they are verified, and rebuilt when wrong.
//! - What is lost, emptied or exchanged while the broker is stopped cleanly is mended and reported, or refused by name.
//! - A failed write or sync is never tried again: the log refuses until recovery. A full disk is not such a failure.
//! - A log with other replicas ([`Role`]): its high watermark moves only by what they are known to have, and what is not
//!   committed is neither shown nor removed. A follower holds the leader's bytes; what it gives up is gone for good before
//!   the first new batch is written, and whatever a loss of power leaves is a prefix of one of both.
//!
//! Not here: who leads, who is in sync, what to fetch.
mod checkpoint;
pub mod cleaner;
pub mod clock;
pub mod config;
pub mod directory;
pub mod disk;
mod epochs;
pub mod error;
mod files;
pub mod first_record;
mod flusher;
pub mod identity;
mod idle_closing_disk;
mod index;
mod inventory;
pub mod manager;
mod names;
pub mod partition_log;
mod producers;
mod scan;
mod segment;
mod shared;
mod system;
pub mod types;

pub use cleaner::{CleanerConfig, Cleaning, Pace};
pub use clock::{Clock, SystemClock};
pub use config::{CleanupPolicy, Durability, LogConfig, ManagerConfig, TimestampType};
pub use disk::{Disk, DiskFile, RealDisk};
pub use error::{StorageError, TopicPartition};
pub use manager::LogManager;
pub use names::MAX_TOPIC_NAME_LEN;
pub use partition_log::{AdvanceListener, DurableCallback, FailureListener, PartitionLog, Replicated, Role};
pub use types::{
    AbortedTxn, AppendOptions, Appended, CutTail, LogSlice, Offsets, Origin, ProducerInfo, ReadUpTo,
    TxnMarker, Verification,
};
