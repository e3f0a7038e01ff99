//! What share groups (KIP-932) did with records: one [`ShareMachine`] for each partition of `__share_group_state`.
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
//! | [`stored`] | a share partition as a record, and back |
//! | [`requests`] | events, answers and actions |
//! | [`machine`] | the share partitions of a partition of the topic |
//! | [`settings`] | the broker's settings, and those of one group |
//!
//! # What is written down
//! The whole state of a share partition whenever something is done with or given back: start offset, what is done with behind
//! it, delivery counts. Who holds what is not: after a crash or a move to another broker all of it is available, and is delivered
//! again with the count that it had. What was acknowledged with an answer never comes back.
pub mod acknowledge;
pub mod acquire;
pub mod machine;
pub mod partition;
pub mod requests;
pub mod settings;
pub mod stored;
#[cfg(test)]
mod tests;

pub use machine::{IsGone, ShareMachine};
pub use partition::SharePartition;
pub use requests::{Acquired, Batch, ShareAction, ShareEvent, ShareKey, ShareReply, ShareRequest};
pub use settings::{GroupSettings, IsolationLevel, OffsetReset, Settings};
