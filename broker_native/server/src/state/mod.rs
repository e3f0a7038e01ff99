//! What this broker has of topics and partitions.
//!
//! | file | what it owns |
//! |---|---|
//! | [`topics`] | what is served, as an immutable image |
//! | [`replication`] | what is led here and copied elsewhere |
//! | [`following`] | what is copied from other brokers |
//! | [`watch`] | what wakes long polls |
//! | [`archives`] | what the archive has of what is led here, and questions to it |
//! | [`producer_ids`] | ids for idempotent producers |
//! | [`schema_ids`] | which schemas records may name |
pub mod archives;
pub mod following;
pub mod producer_ids;
pub mod replication;
pub mod schema_ids;
pub mod topics;
pub mod watch;
