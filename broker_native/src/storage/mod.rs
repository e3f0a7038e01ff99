//! The log on disk: segments, indexes, recovery, retention, durability. Apache Kafka's own format, file by file.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`disk`], [`clock`] | the traits under everything, and the real ones |
//! | `names` | every file name, once |
//! | [`config`], [`error`], [`types`] | settings, errors, small values |
//! | `scan` | walking the batches of a file, CRC by CRC |
//! | `segment` | one `.log` with its indexes |
//! | [`partition_log`] | one partition: append, read |
//! | [`producer_state`], [`producer_snapshot`] | what is remembered of idempotent producers |
//! | [`manager`] | one data directory |
//! | [`sim`] | a simulated disk that loses, tears and fails |
pub mod clock;
pub mod config;
pub mod disk;
pub mod error;
pub mod manager;
mod names;
pub mod partition_log;
pub mod producer_snapshot;
pub mod producer_state;
mod scan;
mod segment;
pub mod sim;
pub mod types;

pub use clock::{Clock, SystemClock};
pub use config::{CleanupPolicy, Durability, LogConfig, ManagerConfig, TimestampType};
pub use disk::{Disk, DiskFile, RealDisk};
pub use error::{StorageError, TopicPartition};
pub use manager::LogManager;
pub use partition_log::{AdvanceListener, DurableCallback, PartitionLog};
pub use types::{AppendOptions, Appended, LogSlice, Offsets, ReadUpTo};
