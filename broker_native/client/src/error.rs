//! The one error of the client: a kind that programs compare and a sentence that people read.
//!
//! The kind is a Kafka error name or one of the constants of [`kind`]; `_native.pyi` promises the same words to Python.
//! Whether an error is worth another attempt is decided where it is made, never from its text.

use pylog_record::BatchError;
use pylog_wire::ErrorCode;

/// Kinds that are not Kafka's own error names.
pub mod kind {
    /// No broker could be reached, or a connection broke.
    pub const UNREACHABLE: &str = "UNREACHABLE";
    /// A time-out of the configuration passed.
    pub const TIMED_OUT: &str = "TIMED_OUT";
    /// Fetched bytes are not a valid record batch.
    pub const CORRUPT_BATCH: &str = "CORRUPT_BATCH";
    /// A key or value is not what its format says.
    pub const BAD_RECORD: &str = "BAD_RECORD";
    /// Records were written with schemas that nobody has looked up yet; see `TypedRead`.
    pub const UNKNOWN_WRITERS: &str = "UNKNOWN_WRITERS";
    /// A new leader does not have records that were read: an election gave them up.
    pub const LOG_TRUNCATED: &str = "LOG_TRUNCATED";
    /// The caller's values make no sense; nothing was sent.
    pub const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
    /// The object was closed or stopped.
    pub const CLOSED: &str = "CLOSED";
    /// The object was made by another process.
    pub const FORKED: &str = "FORKED";
    /// A bug of this client.
    pub const INTERNAL: &str = "INTERNAL";
    /// TLS could not be agreed on: a certificate that is not trusted or missing, other versions, no TLS at all.
    pub const TLS: &str = "SSL_AUTHENTICATION_FAILED";
    /// Nothing gives a token for a login now; its server, file or function may later. No broker is asked without one.
    pub const TOKEN: &str = "TOKEN_UNAVAILABLE";
    /// The other side does not speak the protocol as agreed.
    pub const PROTOCOL: &str = "IO";
}

/// An error with everything a user needs in its sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    /// A Kafka error name or a constant of [`kind`].
    pub kind: &'static str,
    /// One sentence: what failed (broker, topic, partition, offset) and what to do.
    pub message: String,
    /// Whether the same request may succeed later, perhaps at another broker.
    pub retriable: bool,
}

/// What the client's functions return.
pub type Result<T> = std::result::Result<T, ClientError>;

impl ClientError {
    /// An error that no retry mends.
    pub fn fatal(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retriable: false }
    }

    /// An error that another attempt may mend.
    pub fn retriable(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retriable: true }
    }

    /// The caller's mistake.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::fatal(kind::INVALID_ARGUMENT, message)
    }

    /// A stored batch that cannot be used.
    pub fn damaged(bad: &BatchError) -> Self {
        Self::fatal(kind::CORRUPT_BATCH, format!("a batch is damaged: {bad}"))
    }

    /// A thread of `what` ended by a panic.
    pub fn internal(what: &str) -> Self {
        let message =
            format!("the thread of this {what} failed inside; please report this with what you did");
        Self::fatal(kind::INTERNAL, message)
    }

    /// Whether the broker could not be reached or did not answer: another one may.
    pub fn is_lost(&self) -> bool {
        self.retriable && (self.kind == kind::UNREACHABLE || self.kind == kind::TIMED_OUT)
    }

    /// Whether another broker of the cluster would do no better: one side does not trust the other, or there is no token for a login.
    pub fn holds_everywhere(&self) -> bool {
        self.is_distrust() || self.is_of_token()
    }

    /// Whether there is no token for a login: the broker has nothing to do with it.
    pub fn is_of_token(&self) -> bool {
        self.kind == kind::TOKEN
    }

    /// Whether the brokers, or this client, refused to trust the other side: no other broker of the cluster will do otherwise.
    pub fn is_distrust(&self) -> bool {
        let sasl = [
            ErrorCode::SaslAuthenticationFailed,
            ErrorCode::UnsupportedSaslMechanism,
            ErrorCode::IllegalSaslState,
        ];
        !self.retriable && (self.kind == kind::TLS || sasl.iter().any(|code| code.name() == self.kind))
    }

    /// A response that cannot be right.
    pub fn protocol(broker: &str, what: impl std::fmt::Display) -> Self {
        Self::retriable(kind::PROTOCOL, format!("broker {broker} sent an invalid response: {what}"))
    }
}

/// The error code of an answer; one that is newer than this client counts as `UNKNOWN_SERVER_ERROR`.
pub fn code(number: i16) -> ErrorCode {
    ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError)
}

/// Remembers which process made an object, because sockets and threads do not survive a fork.
#[derive(Debug, Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    /// The calling process.
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// # Errors
    /// `FORKED` when called by another process than the one that made `what`.
    pub fn check(self, what: &str) -> Result<()> {
        if std::process::id() == self.0 {
            return Ok(());
        }
        Err(ClientError::fatal(
            kind::FORKED,
            format!(
                "this {what} was made by process {} and cannot be used after a fork; make a new one here",
                self.0
            ),
        ))
    }
}
