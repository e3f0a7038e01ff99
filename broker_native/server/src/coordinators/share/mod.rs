//! The share partitions of the partitions that are led here, and the way to where their states are kept.
//!
//! | file | what it owns |
//! |---|---|
//! | [`partition_manager`] | the machines of share partitions, one for each partition that is led here |
//! | [`state_store`] | where their states are kept: here, or at another broker |
//! | [`remote`] | the requests to that broker |
pub mod partition_manager;
pub mod remote;
pub mod state_store;
