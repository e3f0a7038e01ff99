//! Which of Kafka's error codes a client gets for an error of the log. The only such table.
use pylog_log::loggers::STORAGE;
use pylog_log::{display, warn};
use pylog_record::BatchError;
use pylog_storage::StorageError;
use pylog_wire::ErrorCode;

/// The code for a failure of the log.
pub fn of_storage(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        StorageError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        StorageError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        StorageError::SequencesOfEndedTxn { .. } => ErrorCode::UnknownProducerId,
        StorageError::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        // Retriable. `handlers/produce` has a better one for producers that know it.
        StorageError::Unverified { .. } => ErrorCode::NotEnoughReplicas,
        StorageError::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        StorageError::RecordTooLarge { .. } => ErrorCode::MessageTooLarge,
        StorageError::LargerThanSegment { .. } => ErrorCode::RecordListTooLarge,
        StorageError::InvalidTimestamp { .. } => ErrorCode::InvalidTimestamp,
        StorageError::InvalidBatch { .. } => ErrorCode::CorruptMessage,
        StorageError::MirrorOnly { .. } => ErrorCode::PolicyViolation,
        StorageError::OtherSource { .. } => ErrorCode::InvalidConfig,
        StorageError::NotFound { .. } => ErrorCode::UnknownTopicOrPartition,
        // The broker is stopping: clients ask again, and find the next one.
        StorageError::Closed { .. } | StorageError::NotLeader { .. } | StorageError::NotFollower { .. } => {
            ErrorCode::NotLeaderOrFollower
        }
        StorageError::InvalidTopic { .. } => ErrorCode::InvalidTopicException,
        StorageError::Corrupt { .. }
        | StorageError::ChangedWhileStopped { .. }
        | StorageError::DiskFull { .. }
        | StorageError::OutOfFiles { .. }
        | StorageError::Io { .. }
        | StorageError::Poisoned { .. }
        | StorageError::Locked { .. }
        | StorageError::Mismatch { .. }
        | StorageError::Malformed { .. } => ErrorCode::KafkaStorageError,
    }
}

/// As [`of_storage`]; a failure that is the broker's, not the client's, has a line in the log.
pub fn of_storage_logged(error: &StorageError) -> ErrorCode {
    let code = of_storage(error);
    if is_ours(code) {
        let partition = error.topic_partition().map(display);
        warn!(target: STORAGE, partition, "{error}");
    }
    code
}

/// The code for a produced batch that is refused, as in Kafka.
pub fn of_batch(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::TooLarge { .. } => ErrorCode::MessageTooLarge,
        BatchError::Crc { .. } | BatchError::Length(_) => ErrorCode::CorruptMessage,
        // Older formats are refused as such, others never were.
        BatchError::Magic(magic) if !(0..=1).contains(magic) => ErrorCode::CorruptMessage,
        BatchError::Codec(_) => ErrorCode::UnsupportedCompressionType,
        _ => ErrorCode::InvalidRecord,
    }
}

/// Whether to write a log line: the broker is at fault, not the client.
pub fn is_ours(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::KafkaStorageError | ErrorCode::UnknownServerError)
}
