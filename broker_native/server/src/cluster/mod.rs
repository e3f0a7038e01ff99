//! The cluster, as Python reports it, and the way to its other brokers.
//!
//! | file | what it owns |
//! |---|---|
//! | [`view`] | which brokers are alive and where, the controller; the lease to lead |
//! | [`spec`] | topics and partitions, as they are to be |
//! | [`peers`] | requests to other brokers |
pub mod peers;
pub mod spec;
pub mod view;
