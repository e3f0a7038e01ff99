//! Groups and their offsets: one [`GroupMachine`] for each partition of `__consumer_offsets`.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`machine`] | the groups of a partition; which module takes which request, deadline and record |
//! | [`state`] | one group: [`GroupKind`] and offsets; what every kind can be asked |
//! | [`claim`] | who commits or fetches offsets; how long they are kept |
//! | [`context`] | what one step of a group works with: time, settings, timers, effects |
//! | [`requests`] | events and answers |
//! | [`refusal`] | why a request about members is refused |
//! | [`offsets`] | committed offsets: commit, fetch, delete, expiry |
//! | [`classic`], [`consumer`], [`share`] | members of the classic and of the KIP-848 protocol, and of share groups |
//!
//! A group is of one [`GroupKind`]: it only has offsets, or members of the classic protocol, or members of the KIP-848 protocol, or it is a
//! share group. Offsets belong to the group, whatever its kind; a share group has none.
pub mod claim;
pub mod classic;
pub mod consumer;
pub mod context;
pub mod machine;
pub mod offsets;
pub mod refusal;
pub mod requests;
pub mod share;
pub mod state;

pub use claim::{OffsetClaim, Retention};
pub use context::{GroupContext, Settings, TimerKey, TopicsView};
pub use machine::GroupMachine;
pub use requests::{GroupEvent, GroupReply, GroupRequest};
pub use state::{Group, GroupKind};
