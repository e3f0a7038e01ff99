//! A follower's log as its state machine needs it.
use pylog_storage::error::Result;
use pylog_storage::{PartitionLog, StorageError};

/// A log that copies another.
pub trait FollowerLog {
    /// Its first offset.
    fn start(&self) -> i64;
    /// One past its last.
    fn end(&self) -> i64;
    /// Up to where it is known to be committed.
    fn high_watermark(&self) -> i64;
    /// The newest leader epoch that it knows.
    fn latest_epoch(&self) -> Option<i32>;
    /// The largest epoch up to `epoch`, and where it ends; `None` when all known are larger or older.
    fn epoch_end(&self, epoch: i32) -> Option<(i32, i64)>;
    /// Writes whole batches behind its end, as they are.
    ///
    /// # Errors
    /// Nothing of a damaged batch is written.
    fn append(&self, batches: &[u8]) -> Result<()>;
    /// Gives up what lies at or behind `offset`, and the epochs that begin there.
    ///
    /// # Errors
    /// Those of the disk.
    fn truncate(&self, offset: i64) -> Result<()>;
    /// Gives up everything and begins anew at `offset`.
    ///
    /// # Errors
    /// Those of the disk.
    fn restart(&self, offset: i64) -> Result<()>;
    /// Takes over where the leader's log begins.
    ///
    /// # Errors
    /// Those of the disk.
    fn follow_start(&self, offset: i64) -> Result<()>;
    /// Takes over what the leader calls committed, as far as it is here.
    fn move_high_watermark(&self, offset: i64);
}

impl FollowerLog for PartitionLog {
    fn start(&self) -> i64 {
        self.offsets().log_start_offset
    }

    fn end(&self) -> i64 {
        self.offsets().log_end_offset
    }

    fn high_watermark(&self) -> i64 {
        self.offsets().high_watermark
    }

    fn latest_epoch(&self) -> Option<i32> {
        self.latest_epoch()
    }

    fn epoch_end(&self, epoch: i32) -> Option<(i32, i64)> {
        self.epoch_end_offset(epoch)
    }

    fn append(&self, batches: &[u8]) -> Result<()> {
        self.append_replica(batches).map(|_| ())
    }

    fn truncate(&self, offset: i64) -> Result<()> {
        self.truncate_to(offset).map(|_| ())
    }

    fn restart(&self, offset: i64) -> Result<()> {
        self.restart_at(offset)
    }

    fn follow_start(&self, offset: i64) -> Result<()> {
        self.follow_log_start(offset)
    }

    fn move_high_watermark(&self, offset: i64) {
        self.move_high_watermark(offset);
    }
}

/// Whether the log can do nothing any more until the broker is started again.
pub fn is_broken(error: &StorageError) -> bool {
    matches!(error, StorageError::Poisoned { .. } | StorageError::Io { .. } | StorageError::Closed { .. })
}
