//! The native client: metadata, offsets, admin, reading and writing over blocking sockets, without a runtime.
//!
//! Works with pylog's brokers and Apache Kafka. Nothing starts before it is needed; an object with sockets or threads
//! belongs to the process that made it ([`error::Owner`]).
//!
//! | file | what it does |
//! |---|---|
//! | [`config`] | every setting once |
//! | [`error`], [`retry`], [`stop`] | what failed; whether to try again; how waits end early |
//! | [`connection`], [`versions`], [`frame`] | one connection: versions, pipelining, buffers used again |
//! | [`raw`] | one connection, any API by name, any version, JSON: for tests and tools |
//! | [`cluster`], [`brokers`] | metadata, the connections to brokers; whom to ask first, whose news are old |
//! | [`coordinator`] | who answers for a group or a transaction |
//! | [`offsets`], [`admin`], [`topic_id`] | offsets by time; topics and configs; ids as text |
//! | [`fetcher`], `sources`, `truncation` | one partition's bytes in order; from which replica; whether it still has what was read |
//! | `standstill` | answers that bring nothing new: gaps, pauses, giving up |
//! | [`range`], `pump` | ranges of partitions as Arrow batches; the thread that reads ahead of the consumer |
//! | [`advance`] | how far so many rows or bytes reach, told by the headers of batches |
//! | [`ingest`], [`accumulator`], [`producer`] | Arrow rows into batches; the writing thread's face |
//! | [`transaction`] | a writer's transaction; ending many |
//! | [`delivery`], [`sender`], [`outbox`], [`produce`], [`poll`] | the sending thread: order, retries, requests, waiting |
pub mod accumulator;
pub mod admin;
pub mod advance;
pub mod brokers;
pub mod cluster;
pub mod config;
pub mod connection;
pub mod coordinator;
pub mod delivery;
pub mod error;
pub mod fetcher;
pub mod frame;
pub mod ingest;
pub mod offsets;
pub mod outbox;
pub mod poll;
pub mod produce;
pub mod producer;
mod pump;
pub mod range;
pub mod raw;
pub mod retry;
pub mod sender;
mod sources;
mod standstill;
pub mod stop;
pub mod topic_id;
pub mod transaction;
mod truncation;
pub mod versions;

#[cfg(test)]
mod cluster_faults;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod write_faults;
