//! The broker's log: who says something uses the macros of `tracing` and names a logger; whoever hosts the broker writes the lines.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | here | the macros, and [`install`] |
//! | [`loggers`] | the names of the loggers |
//! | [`levels`] | the level of each logger, changed at run time |
//! | [`limiter`] | how many lines of one cause and place are written, and what is said of the others. Pure |
//! | [`record`] | one line |
//! | [`queue`] | the lines that wait for their host; bounded |
//! | [`broker`] | for which broker a thread works |
//! | [`subscriber`] | [`subscriber::Log`]: puts them together |
//!
//! # How to log
//! `warn!(target: loggers::NETWORK, client = %peer.ip(), "closed the connection of {peer}: {why}")`. The message is a whole sentence that
//! says what, where and how much; fields repeat what a program may look for. The first of [`record::CAUSES`] among them is the event's cause.
//! [`error!`]: an operator must act. [`warn!`]: something was refused, skipped, cut or given up. [`info!`]: the state changed. [`debug!`]:
//! ordinary losses of connections, details of requests. A client must not be able to bring about an error: errors are never limited.
//!
//! # What is not guaranteed
//! Where nobody installs a log (tests and benches in Rust) no line is written. Lines are handed over a little later than they are logged, and those
//! that wait are lost with the process when it is killed.
pub mod broker;
pub mod levels;
pub mod limiter;
pub mod loggers;
pub mod queue;
pub mod record;
pub mod subscriber;

pub use subscriber::{Log, install};
pub use tracing::field::display;
pub use tracing::{debug, error, info, trace, warn};

/// What a panic of the broker is called to whom it met.
pub const BUG: &str = "a bug of the broker (see the panic above); please report it";
