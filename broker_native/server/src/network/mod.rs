//! Connections of clients and other brokers to this one.
//!
//! | file | what it owns |
//! |---|---|
//! | [`listener`] | accepts |
//! | [`descriptors`] | file descriptors that are not for connections |
//! | [`connection`] | one task for each connection: reads, hands requests to `dispatch`, writes answers in their order |
pub mod connection;
pub mod descriptors;
pub mod listener;
