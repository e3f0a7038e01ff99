//! Why another broker did not answer.
use std::time::Duration;

use pylog_wire::ErrorCode;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It is not among the live brokers, or stopped being while it was asked.
    #[error("broker {0} is not alive")]
    NotAlive(i32),
    /// The request was surely not sent.
    #[error("broker {id} cannot be reached: {cause}")]
    Unreachable {
        /// Which broker.
        id: i32,
        /// What the system said.
        cause: String,
    },
    /// The connection ended before the answer came: the request may have been carried out.
    #[error("broker {0} did not answer: the connection ended")]
    Broken(i32),
    /// There was no answer in time; the request may have been carried out.
    #[error("broker {id} did not answer within {after:?}")]
    TimedOut {
        /// Which broker.
        id: i32,
        /// How long this broker waited.
        after: Duration,
    },
    /// The two brokers have no version of it in common, or the request or its answer does not fit the version.
    #[error("broker {id} and this one do not understand each other: {why}")]
    Misunderstood {
        /// Which broker.
        id: i32,
        /// What is wrong.
        why: String,
    },
    /// This broker stops, or has not begun to listen.
    #[error("this broker is not running")]
    Stopped,
}

impl PeerError {
    /// The error for a client that waits for a coordinator on another broker: it tries again.
    pub fn of_coordinator(&self) -> ErrorCode {
        ErrorCode::CoordinatorNotAvailable
    }
}
