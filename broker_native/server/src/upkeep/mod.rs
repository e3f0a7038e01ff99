//! Work that no request asks for.
//!
//! | file | what it owns |
//! |---|---|
//! | [`background`] | begins work again that met a bug |
//! | [`maintenance`] | the thread for what is due by the clock: retention, rolls, checkpoints |
//! | [`compaction`] | the threads that compact logs |
//! | [`replication`] | the tasks for partitions that are led here: who does not keep up |
//! | [`alter_partition`] | ISRs on their way to the store |
//! | [`storage_failure`] | the report of a disk that failed |
pub mod alter_partition;
pub mod background;
pub mod compaction;
pub mod maintenance;
pub mod replication;
pub mod storage_failure;
