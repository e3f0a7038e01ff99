//! Replication: what a leader knows of its followers, and how a follower copies its leader's log.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`follower`] | one follower as its leader sees it: how far it is, when it was last caught up. Pure |
//! | [`progress`] | one led partition in one epoch: the high watermark, which ISR to propose. Pure |
//! | [`following`] | the follower's side: what to ask, what to do with the answer, the threads that ask |
//! | [`throttle`] | how fast replicas may be copied, for both sides |
//!
//! The leader's half is pure; `server/state/replication` ties it to logs, requests and questions to Python.
pub mod follower;
pub mod following;
pub mod progress;
pub mod throttle;
