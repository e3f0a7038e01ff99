//! Rows of Arrow batches into partitions, acknowledged, in order, also as a transaction.
//!
//! | file | what it does |
//! |---|---|
//! | [`ingest`], [`accumulator`], [`producer`] | Arrow rows into batches; the writing thread's side |
//! | [`counts`] | how many rows were written, by topic and window of time |
//! | [`identity`] | as whom a producer writes: producer id, epoch, transactional id |
//! | [`transaction`] | a writer's transaction; ending many |
//! | [`delivery`] | what the writing and the sending thread share |
//! | [`sender`], [`partition_queue`], [`produce`] | the sending thread: order, retries, requests and their answers |
pub mod accumulator;
pub mod counts;
pub mod delivery;
pub mod identity;
pub mod ingest;
pub mod partition_queue;
pub mod produce;
pub mod producer;
pub mod sender;
pub mod transaction;
