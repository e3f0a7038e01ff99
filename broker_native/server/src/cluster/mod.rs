//! The cluster, as Python tells of it, and the way to its other brokers.
//!
//! | file | what it owns |
//! |---|---|
//! | [`view`] | who is alive and where, who controls; the lease to lead |
//! | [`spec`] | topics and partitions, as they are to be |
//! | [`peers`] | requests to other brokers |
pub mod peers;
pub mod spec;
pub mod view;
