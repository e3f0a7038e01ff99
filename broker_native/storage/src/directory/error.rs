//! Why a directory could not be read.
use std::io;
use std::path::{Path, PathBuf};

use super::damage::Damage;
use crate::error::{StorageError, TopicPartition};

/// The error of this module.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DirectoryError {
    /// There are no partitions here.
    #[error("{} is no data directory of a broker: {reason}", path.display())]
    NotADirectory {
        /// What was opened.
        path: PathBuf,
        /// What is wrong, and what to give instead.
        reason: String,
    },
    /// No such partition.
    #[error("{} has no partition {at}", path.display())]
    Unknown {
        /// Partition.
        at: TopicPartition,
        /// The directory.
        path: PathBuf,
    },
    /// Bytes that were once written whole.
    #[error("{0}")]
    Damaged(Box<Damage>),
    /// The records are not there any more.
    #[error("{at} holds nothing before offset {first} any more, offset {offset} was asked for")]
    Removed {
        /// Partition.
        at: TopicPartition,
        /// What was asked for.
        offset: i64,
        /// First offset that is there.
        first: i64,
    },
    /// The log is shorter than what was planned.
    #[error("{at} ends at offset {end}, before offset {wanted}, which was there when the read was planned")]
    Shorter {
        /// Partition.
        at: TopicPartition,
        /// Where it ends.
        end: i64,
        /// Where it was to be read to.
        wanted: i64,
    },
    /// A file could not be read, or makes no sense.
    #[error(transparent)]
    File(#[from] StorageError),
}

/// What the functions of this module return.
pub type Result<T, E = DirectoryError> = std::result::Result<T, E>;

impl DirectoryError {
    pub(super) fn io(action: &'static str, file: &Path, cause: &io::Error) -> Self {
        Self::File(StorageError::io(action, file, cause))
    }

    /// Whether a file was renamed or removed between two looks: a broker compacts or deletes.
    pub(super) fn is_missing_file(&self) -> bool {
        matches!(self, Self::File(StorageError::Io { kind: io::ErrorKind::NotFound, .. }))
    }
}
