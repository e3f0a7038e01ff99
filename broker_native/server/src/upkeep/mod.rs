//! Threads and tasks that run beside the requests.
//!
//! | file | what it owns |
//! |---|---|
//! | [`background`] | begins work again that met a bug |
//! | [`maintenance`] | the thread for what is due by the clock: retention, rolls, checkpoints |
//! | [`certificates`] | reads the certificates of listeners anew when their files change |
//! | [`compaction`] | the threads that compact logs |
//! | [`replication`] | the tasks for partitions that are led here: the search for followers that do not keep up |
//! | [`alter_partition`] | ISRs on their way to the store |
//! | [`storage_failure`] | the report of a disk that failed |
pub mod alter_partition;
pub mod background;
pub mod certificates;
pub mod compaction;
pub mod maintenance;
pub mod replication;
pub mod storage_failure;
