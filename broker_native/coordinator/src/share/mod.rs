//! What share groups (KIP-932) did with records.
//!
//! A *share partition* is what one group does with one partition of a topic. Everything before its start offset is done with;
//! from there on a *window* of records is in flight, each of them available, acquired by one member for a while, acknowledged,
//! or archived (rejected, or delivered too often).
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`partition`] | the window: runs of offsets in the same state; what moves it |
//! | [`acquire`] | records for a member |
//! | [`acknowledge`] | what a member says became of them; locks that are over; members that are gone |
//! | [`requests`] | events, answers and effects |
//! | [`machine`] | the windows of a broker, of the partitions that it leads |
//! | [`leader`] | the same with where they are kept: reads before it delivers, answers when it is written down, is fenced |
//! | [`state`] | the machine of a partition of `__share_group_state`: the states, as leaders say them |
//! | [`state_requests`] | its events and answers |
//! | [`merge`] | what is written, laid over what was there |
//! | [`stored`] | a share partition as a record and as its leader says it, and back |
//! | [`settings`] | the broker's settings, and those of one group |
//!
//! # Where the state is
//! As in Kafka, the leader of a topic's partition has the windows of all groups in memory and alone says who gets which records; the
//! leader of a partition of `__share_group_state`, which may be another broker, keeps the state and decides nothing ([`state`]).
//! Between them go Kafka's own requests (ReadShareGroupState, WriteShareGroupState and so on), or none when both are one broker.
//!
//! # What is written down
//! The whole state of a share partition whenever something is done with or given back: start offset, what is done with behind
//! it, delivery counts. Which member holds which record is not: after a crash or a move to another broker all of it is available, and is delivered
//! again with the count that it had. What was acknowledged with an answer never comes back: the answer waits until the state is
//! written and acknowledged, and a leader reads it before it delivers. With that the leader's epoch is written down, so that a late
//! write of the leader before it is refused; that one then lets go of the window.
pub mod acknowledge;
pub mod acquire;
pub mod leader;
pub mod machine;
pub mod merge;
pub mod partition;
pub mod requests;
pub mod settings;
pub mod state;
pub mod state_requests;
pub mod stored;
#[cfg(test)]
mod tests;

pub use leader::{LeaderAction, ShareLeader};
pub use machine::{IsGone, ShareMachine};
pub use partition::SharePartition;
pub use requests::{Acquired, LogBatch, ShareEffects, ShareEvent, ShareKey, ShareReply, ShareRequest};
pub use settings::{GroupSettings, IsolationLevel, OffsetReset, Settings};
pub use state::StateMachine;
