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
//! | [`cluster`] | brokers, metadata, the connections to them |
//! | [`offsets`], [`admin`], [`topic_id`] | offsets by time; topics and configs; ids as text |
//! | [`fetcher`], [`range`] | one partition's bytes in order; the same as Arrow batches, ahead of the consumer |
//! | [`ingest`], [`accumulator`], [`producer`] | Arrow rows into batches; the writing thread's face |
//! | [`delivery`], [`sender`], [`outbox`], [`produce`], [`poll`] | the sending thread: order, retries, requests, waiting |
pub mod accumulator;
pub mod admin;
pub mod cluster;
pub mod config;
pub mod connection;
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
pub mod range;
pub mod raw;
pub mod retry;
pub mod sender;
pub mod stop;
pub mod topic_id;
pub mod versions;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod write_faults;
