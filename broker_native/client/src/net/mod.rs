//! One connection to one broker, and how waiting on it ends. Knows nothing of clusters, topics or partitions.
//!
//! | file | what it does |
//! |---|---|
//! | [`transport`], [`tls_error`] | the bytes, plain or under TLS; what a failed handshake means |
//! | [`connection`], [`versions`], [`frame`] | versions agreed on, requests pipelined, buffers used again |
//! | [`kept`] | what one client leaves to the next one of this process |
//! | [`login`] | who the client is, by SASL |
//! | [`stop`], [`retry`], [`poll`] | how waits end early; whether to try again; waiting for several sockets |
//! | [`raw`] | any API by name, any version, JSON: for tests and tools |
pub mod connection;
pub mod frame;
pub mod kept;
pub mod login;
pub mod poll;
pub mod raw;
pub mod retry;
pub mod stop;
pub mod tls_error;
pub mod transport;
pub mod versions;
