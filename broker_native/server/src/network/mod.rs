//! Connections of clients and other brokers to this one.
//!
//! | file | what it owns |
//! |---|---|
//! | [`listener`] | accepts |
//! | [`limits`] | how many connections there may be |
//! | [`opening`] | a connection before its first request |
//! | [`transport`] | a connection's bytes, plain or over TLS |
//! | [`descriptors`] | file descriptors that are not for connections |
//! | [`session`] | the states of a connection before its requests are served. Pure |
//! | [`login`] | a client's login, from the frame to the answer |
//! | [`connection`] | one task for each connection: reads, hands requests to `dispatch`, writes answers in their order |
pub mod connection;
pub mod descriptors;
pub mod limits;
pub mod listener;
pub mod login;
pub mod opening;
pub mod session;
pub mod transport;
