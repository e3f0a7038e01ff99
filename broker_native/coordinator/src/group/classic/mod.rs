//! Groups of the classic protocol: members join, a leader among them assigns, all take their assignments; a member that joins,
//! leaves or changes its subscription makes them do it again. As Kafka's GroupMetadataManager does it, down to the error codes.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`state`] | the states and which may follow which |
//! | [`member`], [`roster`] | a member; all of them, their leader, their votes |
//! | [`group`] | [`ClassicGroup`] and what every kind of group is asked |
//! | `requests` | which request goes where, and what is refused whatever the group is |
//! | `join`, `sync`, `leave` | JoinGroup; SyncGroup and Heartbeat; LeaveGroup |
//! | `rebalance` | from the first who joins to the generation that all know, and all deadlines |
//! | `stored` | the group's record in the log |
//!
//! # Two differences from Kafka
//! - A ticket is answered once, always. Where Kafka forgets a request whose member asks a second time, the first one gets
//!   REBALANCE_IN_PROGRESS (its sender is gone, or rejoins); a SyncGroup that waits when its member is removed gets
//!   UNKNOWN_MEMBER_ID.
//! - A group is in the log from its first generation on, not from the first JoinGroup on: before, there is nothing that a
//!   restart could lose.
mod asked;
pub mod expected;
pub mod group;
mod join;
mod leave;
pub mod member;
mod rebalance;
mod requests;
pub mod roster;
pub mod state;
mod stored;
mod sync;
#[cfg(test)]
mod tests;

pub use group::ClassicGroup;
pub use requests::{handle, loaded, replay, timer};
pub use state::ClassicState;
