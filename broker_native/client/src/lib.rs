//! The native client: metadata, offsets, admin, reading and writing over blocking sockets, without a runtime.
//!
//! Works with pylog's brokers and Apache Kafka. Nothing starts before it is needed; an object with sockets or threads
//! belongs to the process that made it ([`error::Owner`]).
//!
//! | module | what it does | uses |
//! |---|---|---|
//! | [`error`] | what failed | none |
//! | [`security`] | what reaching secured brokers takes: TLS, logins, tokens | `error` |
//! | [`config`] | the settings, checked | `error`, `security` |
//! | [`net`] | one connection; when waiting ends | `config`, `error`, `security` |
//! | [`metadata`] | brokers, leaders, coordinators, offsets | `config`, `error`, `net` |
//! | [`read`] | ranges of partitions as Arrow batches | `config`, `error`, `metadata`, `net` |
//! | [`write`] | Arrow rows into partitions, transactions | `config`, `error`, `metadata`, `net` |
//! | [`mirror`] | batches of one cluster into another, as they are | `config`, `error`, `metadata`, `net` |
//! | [`admin`] | topics, settings, groups, transactions as an administrator sees them | `error`, `metadata`, `net` |
//!
//! `read`, `write`, `mirror` and `admin` know nothing of each other.
pub mod admin;
pub mod config;
pub mod error;
pub mod metadata;
pub mod mirror;
pub mod net;
pub mod read;
pub mod security;
pub mod write;

#[cfg(test)]
mod tests;
