//! The follower's side: a copy of the leader's log, batch by batch, and only of that leader's.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`machine`] | one partition: what to ask next, what to do with an answer. Pure: the log and the time are arguments |
//! | [`log`] | the log as the machine needs it |
//! | [`session`] | which partitions a request names. Pure |
//! | [`slot`] | one partition as threads share it: let go of at once, whatever its thread is doing |
//! | [`exchange`] | requests to one leader over one connection |
//! | [`fetcher`] | a thread per leader and fetcher number |
//! | [`context`] | what the threads share |
//! | [`manager`] | which partitions are followed; starts and stops the threads |
//!
//! # What is promised
//! - Once [`manager::ReplicaManager::let_go`] has returned, no thread touches the log for the leader that it had.
//! - A fetch offset is what the leader may count as replicated: with `durability=flushed` the log is synced first.
//! - What a leader sends damaged is never written; it is asked for again.
pub mod context;
pub mod exchange;
pub mod fetcher;
pub mod log;
pub mod machine;
pub mod manager;
pub mod session;
pub mod slot;

pub use context::FollowerSettings;
pub use machine::Position;
pub use manager::{Assignment, ReplicaManager};
