//! Groups, share partitions and transactions as pure state machines: events in; records, answers and actions out.
//!
//! Nothing here has a socket, a file, a lock, a thread or a clock; the time is an argument. The shell that feeds the machines
//! is `server/coordinators`: it owns one machine for each partition of an internal topic that this broker leads.
//!
//! # Layout
//! | module | what it owns | uses |
//! |---|---|---|
//! | [`machine`] | what a machine takes and gives: [`Machine`], [`Effects`], [`Ticket`], [`LogEntry`] | none |
//! | [`timers`] | deadlines by key | none |
//! | [`room`] | how many bytes all machines may keep | none |
//! | [`group`] | `__consumer_offsets`: offsets, classic groups, KIP-848 groups | `machine`, `room`, `timers` |
//! | [`share`] | `__share_group_state`: what share groups did with records | `machine`, `room`, `timers` |
//! | [`transaction`] | `__transaction_state`: transactional ids and their transactions | `machine`, `room`, `timers` |
//!
//! # How a change happens
//! 1. The shell locks the machine and calls [`Machine::handle`] (or [`Machine::tick`] when a deadline is over).
//! 2. The machine changes itself and says in [`Effects`] what belongs into the log. It may change itself before the records are
//!    written: when the append fails, the shell throws the whole machine away, fails everything that waits with
//!    NOT_COORDINATOR, and loads it again from the log.
//! 3. The shell appends `records` as ONE batch, then starts `actions`; `replies` leave when the batch is acknowledged.
//! 4. A machine that loads the log later sees the same records in [`Machine::replay`]. So: what must survive stands in a record, and
//!    replaying the records gives the state that the live machine had (a property test of each machine).
pub mod group;
pub mod machine;
pub mod room;
pub mod share;
pub mod timers;
pub mod transaction;

pub use machine::{Caller, Effects, LogEntry, Machine, Now, Record, Ticket};
pub use room::Room;
pub use timers::Timers;
