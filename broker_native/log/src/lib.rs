//! The broker's log: code logs with the macros of `tracing` and names a logger; the program that hosts the broker writes the lines.
//!
//! # Layout
//! | file | what it does |
//! |---|---|
//! | here | the macros, and [`install`] |
//! | [`loggers`] | the names of the loggers |
//! | [`levels`] | the level of each logger, changed at run time |
//! | [`limiter`] | bounds the lines with the same cause and place, and counts the others. Pure |
//! | [`record`] | one line |
//! | [`queue`] | the lines that wait for the host; bounded |
//! | [`broker`] | the broker that a thread works for |
//! | [`subscriber`] | [`subscriber::Log`], which uses all of these |
//!
//! # How to log
//! `warn!(target: loggers::NETWORK, client = %peer.ip(), "closed the connection of {peer}: {why}")`. The message is a whole sentence that
//! says what, where and how much; fields repeat what a program may search for. The first of [`record::CAUSES`] among them is the event's cause.
//! [`error!`]: an operator must act. [`warn!`]: something was refused, skipped, cut or given up. [`info!`]: the state changed. [`debug!`]:
//! connections that were lost, details of requests. A client must not be able to cause an error: errors are never limited.
//!
//! # What is not guaranteed
//! Without [`install`] (tests and benches in Rust) no line is written. Lines are delivered a little after they are logged; when the process is
//! killed, those that wait in the queue are lost.
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

/// How messages and answers call a panic of the broker.
pub const BUG: &str = "a bug of the broker (see the panic above); please report it";
