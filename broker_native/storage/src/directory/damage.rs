//! Bytes of a log that are no batches.
use std::fmt;
use std::path::PathBuf;

use crate::error::TopicPartition;

/// One run of bytes that cannot be read, or records that are missing between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Partition.
    pub at: TopicPartition,
    /// The file.
    pub file: PathBuf,
    /// Where in it, bytes.
    pub position: u64,
    /// How many bytes, up to the next whole batch or the end of the file; 0 where nothing but a file is missing.
    pub bytes: u64,
    /// The first offset that may be lost.
    pub offset: i64,
    /// The offset at which whole batches go on; `None` when none follow in this file.
    pub next_offset: Option<i64>,
    /// What is wrong with the bytes.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, file, position, bytes, offset, reason, .. } = self;
        let file = file.display();
        if *bytes == 0 {
            return write!(f, "{at}, offset {offset}, {file}: {reason}");
        }
        write!(
            f,
            "{at}, offset {offset}: {bytes} bytes at position {position} of {file} are no whole batches ({reason})"
        )?;
        match self.next_offset {
            Some(next) => write!(f, ", and the next one begins at offset {next}"),
            None => write!(f, ", up to the end of the file"),
        }
    }
}
