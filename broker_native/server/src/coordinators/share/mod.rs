//! The share partitions of the partitions that are led here, and the way to where their states are kept.
//!
//! | file | what it owns |
//! |---|---|
//! | [`leading`] | the machines of share partitions, one for each partition that is led here |
//! | [`store`] | where their states are kept: here, or at another broker |
//! | [`remote`] | the requests to that broker |
pub mod leading;
pub mod remote;
pub mod store;
