//! Errors of a directory as those of the client.
use crate::error::{ClientError, kind};
use pylog_storage::directory::error::DirectoryError;
use pylog_wire::ErrorCode;

/// The client's error, under the name by which a broker would refuse.
pub(super) fn of_directory(error: &DirectoryError) -> ClientError {
    let kind = match error {
        DirectoryError::NotADirectory { .. } => kind::INVALID_ARGUMENT,
        DirectoryError::Unknown { .. } => ErrorCode::UnknownTopicOrPartition.name(),
        DirectoryError::Damaged(_) => kind::CORRUPT_BATCH,
        DirectoryError::Removed { .. } => ErrorCode::OffsetOutOfRange.name(),
        DirectoryError::Shorter { .. } => kind::LOG_TRUNCATED,
        DirectoryError::File(_) => ErrorCode::KafkaStorageError.name(),
    };
    let message = match error {
        DirectoryError::Damaged(_) => format!("{error}; ignoreCorruptBatches=true leaves them out"),
        _ => error.to_string(),
    };
    ClientError::fatal(kind, message)
}
