//! Groups and their offsets: one [`GroupMachine`] for each partition of `__consumer_offsets`.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`context`] | what one step of a group works with: time, settings, timers, effects |
//! | [`requests`] | events and answers |
//!
//! A group is of one [`Kind`]: it only has offsets, or members of the classic protocol, or members of the KIP-848 protocol.
//! Offsets belong to the group, whatever its kind.
pub mod context;
pub mod requests;

pub use context::{Context, Settings, TimerKey, TopicsView};
pub use requests::{GroupEvent, GroupReply, GroupRequest};
