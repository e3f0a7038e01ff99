//! What this broker has of topics and partitions.
//!
//! | file | what it owns |
//! |---|---|
//! | [`topics`] | what is served, as an immutable image |
//! | [`replication`] | what is led here and copied elsewhere |
//! | [`following`] | what is copied from other brokers |
//! | [`watch`] | what wakes long polls |
//! | [`archives`] | what the archive has of what is led here, and questions to it |
//! | [`dead_letters`] | records on their way to a dead letter topic |
//! | [`questions`] | questions of requests that Python answers |
//! | [`producer_ids`] | ids for idempotent producers |
//! | [`schema_ids`] | which schemas records may name |
pub mod archives;
pub mod dead_letters;
pub mod following;
pub mod producer_ids;
pub mod questions;
pub mod replication;
pub mod schema_ids;
pub mod topics;
pub mod watch;
