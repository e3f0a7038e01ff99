//! The only place where a Rust error becomes a Python exception.
//!
//! Python sees one class, `NativeError(kind, message)`: `kind` is a Kafka error name or one of the constants of
//! [`kind`], `message` is one sentence. Rooms keep their own error enums; each gets a `From` for [`Failure`] here.
use std::any::Any;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use pylog_client::error::ClientError;
use pylog_record::header::BatchError;
use pylog_server::ServerError;
use pylog_server::errors::of_storage;
use pylog_server::security_state::SecurityError;
use pylog_settings::Refused;
use pylog_storage::StorageError;

create_exception!(_native, NativeError, PyException, "Raised by everything native: args == (kind, message).");

/// Kinds that are not Kafka error names.
pub mod kind {
    /// A batch fails its CRC or contradicts itself.
    pub const CORRUPT_BATCH: &str = "CORRUPT_BATCH";
    /// The caller passed something that cannot be used.
    pub const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
    /// The operating system refused a read, a write or a socket.
    pub const IO: &str = "IO";
    /// Another process holds the data directory.
    pub const LOCKED: &str = "LOCKED";
    /// The object was closed before the call.
    pub const CLOSED: &str = "CLOSED";
    /// A bug of ours, caught at the boundary.
    pub const INTERNAL: &str = "INTERNAL";
}

/// What Python gets: the two arguments of `NativeError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A Kafka error name or a constant of [`kind`].
    pub kind: &'static str,
    /// One sentence that names what it is about and says what to do.
    pub message: String,
}

impl Failure {
    /// A failure of `kind`.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What a caught panic said.
    pub fn from_panic(payload: &(dyn Any + Send)) -> Self {
        let said = said(payload);
        Self::new(
            kind::INTERNAL,
            format!("a bug in pylog's native module ({said}); please report it, and what you did"),
        )
    }
}

/// What a panic said of itself.
pub fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        NativeError::new_err((failure.kind, failure.message))
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Self::new(kind::CORRUPT_BATCH, error.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { kind: error.kind, message: error.message }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        let kind = match &error {
            StorageError::Locked { .. } => kind::LOCKED,
            StorageError::Corrupt { .. } => kind::CORRUPT_BATCH,
            StorageError::Io { .. } | StorageError::DiskFull { .. } | StorageError::OutOfFiles { .. } => {
                kind::IO
            }
            StorageError::Mismatch { .. }
            | StorageError::Malformed { .. }
            | StorageError::ChangedWhileStopped { .. } => kind::INVALID_ARGUMENT,
            other => of_storage(other).name(),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<SecurityError> for Failure {
    fn from(error: SecurityError) -> Self {
        Self::new(kind::INVALID_ARGUMENT, error.to_string())
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Storage(error) => error.into(),
            ServerError::Io(error) => error.into(),
            ServerError::Tls(_) | ServerError::Security(_) | ServerError::Principal(_) => {
                Self::new(kind::INVALID_ARGUMENT, error.to_string())
            }
            ServerError::State(_) => Self::new(kind::CLOSED, error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(kind::IO, error.to_string())
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(kind::INVALID_ARGUMENT, refused.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(
            kind::INVALID_ARGUMENT,
            format!("the JSON given to the native module does not fit: {error}"),
        )
    }
}
