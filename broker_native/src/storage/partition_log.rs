//! One partition's log: an append lock for writers, a short look at [`View`] for readers.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::clock::Clock;
use super::config::{Durability, LogConfig};
use super::disk::{Disk, OpenMode};
use super::error::{Result, StorageError, TopicPartition};
use super::names;
use super::scan::{Found, Scanner};
use super::segment::Segment;
use super::types::{AppendOptions, Appended, LogSlice, Offsets, ReadUpTo};
use crate::record::header::BatchHeader;
use crate::record::layout;

/// Called with the new high watermark after it moved.
pub type AdvanceListener = Arc<dyn Fn(i64) + Send + Sync>;
/// Called once when a record is durable or can no longer become so.
pub type DurableCallback = Box<dyn FnOnce(Result<()>) + Send>;

/// What readers see.
struct View {
    segments: Arc<Vec<Arc<Segment>>>,
    offsets: Offsets,
}

/// One partition's log. See the module's contract.
pub struct PartitionLog {
    at: TopicPartition,
    topic_id: Uuid,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: RwLock<Arc<LogConfig>>,
    append_lock: Mutex<()>,
    view: Mutex<View>,
    listeners: RwLock<Vec<AdvanceListener>>,
}

impl PartitionLog {
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        at: TopicPartition,
        topic_id: Uuid,
        dir: &Path,
        config: LogConfig,
    ) -> Result<Self> {
        disk.create_dir_all(dir).map_err(|e| StorageError::io("make", dir, &e))?;
        let segment = Segment::open(&*disk, dir, 0, OpenMode::Create)
            .map_err(|e| StorageError::io("open the first segment of", dir, &e))?;
        let log_end_offset = recover(&segment)?;
        let offsets = Offsets {
            log_start_offset: 0,
            high_watermark: log_end_offset,
            last_stable_offset: log_end_offset,
            log_end_offset,
        };
        Ok(Self {
            at,
            topic_id,
            dir: dir.to_path_buf(),
            disk,
            clock,
            config: RwLock::new(Arc::new(config)),
            append_lock: Mutex::new(()),
            view: Mutex::new(View { segments: Arc::new(vec![Arc::new(segment)]), offsets }),
            listeners: RwLock::new(Vec::new()),
        })
    }

    /// Which partition this is.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// The topic's id.
    pub fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// Sets offset and leader epoch of a validated producer batch and writes it.
    ///
    /// # Errors
    /// [`StorageError`]; after an error nothing of the batch is in the log.
    pub fn append(&self, batch: &mut [u8], how: AppendOptions) -> Result<Appended> {
        let header = self.check(batch)?;
        let guard = self.append_lock.lock();
        let (segment, base_offset, log_start_offset) = {
            let view = self.view.lock();
            let Some(segment) = view.segments.last() else {
                return Err(StorageError::NotFound { at: self.at.clone() });
            };
            (segment.clone(), view.offsets.log_end_offset, view.offsets.log_start_offset)
        };
        place(batch, base_offset, how.leader_epoch);
        segment.append(batch).map_err(|e| StorageError::io("write", &segment.path(), &e))?;
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        {
            let mut view = self.view.lock();
            view.offsets.log_end_offset = last_offset + 1;
            view.offsets.high_watermark = last_offset + 1;
            view.offsets.last_stable_offset = last_offset + 1;
        }
        drop(guard);
        for listener in self.listeners.read().iter() {
            listener(last_offset + 1);
        }
        Ok(Appended { base_offset, last_offset, log_append_time_ms: -1, log_start_offset, duplicate: false })
    }

    fn check(&self, batch: &[u8]) -> Result<BatchHeader> {
        let invalid = |reason: String| StorageError::InvalidBatch { at: self.at.clone(), reason };
        let header = BatchHeader::parse(batch)
            .map_err(|bad| invalid(bad.to_string()))?
            .ok_or_else(|| invalid("shorter than a header".into()))?;
        if header.size() != batch.len() {
            return Err(invalid(format!("{} bytes hold a batch of {}", batch.len(), header.size())));
        }
        let limit = usize::try_from(self.config.read().max_message_bytes).unwrap_or(usize::MAX);
        if batch.len() > limit {
            return Err(StorageError::RecordTooLarge { at: self.at.clone(), size: batch.len(), limit });
        }
        Ok(header)
    }

    /// Calls `done` when the record at `last_offset` survives what the topic's durability promises.
    pub fn wait_durable(&self, _last_offset: i64, done: DurableCallback) {
        done(Ok(()));
    }

    /// Finds up to `max_bytes` of whole batches from the one that holds `offset`; with `min_one_batch` the first is
    /// given even when it is larger.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`], [`StorageError::Corrupt`], [`StorageError::Io`].
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
        upto: ReadUpTo,
    ) -> Result<LogSlice> {
        let (segments, offsets) = {
            let view = self.view.lock();
            (view.segments.clone(), view.offsets)
        };
        let limit = match upto {
            ReadUpTo::HighWatermark => offsets.high_watermark,
            ReadUpTo::LastStable => offsets.last_stable_offset,
            ReadUpTo::LogEnd => offsets.log_end_offset,
        };
        if offset < offsets.log_start_offset || offset > offsets.log_end_offset {
            return Err(StorageError::OffsetOutOfRange {
                at: self.at.clone(),
                offset,
                log_start_offset: offsets.log_start_offset,
                log_end_offset: offsets.log_end_offset,
            });
        }
        let Some(segment) = segments.last() else {
            return Err(StorageError::NotFound { at: self.at.clone() });
        };
        let failed = |e: std::io::Error| StorageError::io("read", &segment.path(), &e);
        let file = segment.file().map_err(failed)?;
        let empty = LogSlice { file: file.clone(), position: 0, len: 0, next_offset: offset, offsets };
        let Some(position) = segment.find(offset, segment.size()).map_err(failed)? else {
            return Ok(empty);
        };
        let mut scanner = Scanner::headers(&*file, position, segment.size());
        let mut slice = LogSlice { position, ..empty };
        while let Found::Batch(header) = scanner.step().map_err(failed)? {
            let len = (scanner.position - position) as usize;
            let fits = len <= max_bytes || (slice.len == 0 && min_one_batch);
            if !fits || header.last_offset() >= limit {
                break;
            }
            slice.len = len;
            slice.next_offset = header.last_offset() + 1;
        }
        Ok(slice)
    }

    /// The log's offsets now.
    pub fn offsets(&self) -> Offsets {
        self.view.lock().offsets
    }

    /// Offset and timestamp of the first record with a timestamp of `timestamp_ms` or later.
    ///
    /// # Errors
    /// As [`PartitionLog::read`].
    pub fn offset_for_timestamp(&self, _timestamp_ms: i64) -> Result<Option<(i64, i64)>> {
        Ok(None)
    }

    /// Offset and timestamp of the record with the largest timestamp; `None` in an empty log.
    ///
    /// # Errors
    /// As [`PartitionLog::read`].
    pub fn max_timestamp_offset(&self) -> Result<Option<(i64, i64)>> {
        Ok(None)
    }

    /// The largest epoch up to `epoch` and one past its last offset; `None` when all known epochs are larger.
    pub fn epoch_end_offset(&self, epoch: i32) -> Option<(i32, i64)> {
        Some((epoch, self.offsets().log_end_offset))
    }

    /// Makes all before `offset` unreadable; -1 is the high watermark. Returns the new first readable offset.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] beyond the high watermark.
    pub fn delete_records_before(&self, offset: i64) -> Result<i64> {
        let mut view = self.view.lock();
        let offset = if offset == -1 { view.offsets.high_watermark } else { offset };
        view.offsets.log_start_offset = view.offsets.log_start_offset.max(offset);
        Ok(view.offsets.log_start_offset)
    }

    /// Settings from now on.
    pub fn update_config(&self, config: LogConfig) {
        *self.config.write() = Arc::new(config);
    }

    /// Settings now.
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().clone()
    }

    /// The epoch of the leader from now on; smaller than the current one is ignored.
    ///
    /// # Errors
    /// [`StorageError::Io`] of the epoch checkpoint.
    pub fn set_leader_epoch(&self, _epoch: i32) -> Result<()> {
        Ok(())
    }

    /// Adds a listener that is called with the high watermark each time it has moved, by the thread that moved it and
    /// with no lock held.
    pub fn on_advance(&self, listener: AdvanceListener) {
        self.listeners.write().push(listener);
    }

    /// Bytes of all `.log` files.
    pub fn size_bytes(&self) -> u64 {
        self.view.lock().segments.iter().map(|s| s.size()).sum()
    }

    /// fdatasync of everything written so far.
    ///
    /// # Errors
    /// [`StorageError::Io`], after which the log is poisoned.
    pub fn sync(&self) -> Result<()> {
        let segments = self.view.lock().segments.clone();
        for segment in segments.iter() {
            let failed = |e: std::io::Error| StorageError::io("sync", &segment.path(), &e);
            segment.file().map_err(failed)?.sync_data().map_err(failed)?;
        }
        Ok(())
    }

    /// Whether a record is acknowledged only after fdatasync.
    pub fn is_flushed(&self) -> bool {
        self.config.read().durability == Durability::Flushed
    }

    /// The directory of the segments.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    #[allow(dead_code)]
    fn now_ms(&self) -> i64 {
        let _ = (&self.disk, names::LOCK);
        self.clock.now_ms()
    }
}

/// Writes what a leader sets in a batch: both fields stand before the CRC's range.
fn place(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    if let Some(field) = batch.get_mut(layout::BASE_OFFSET..layout::BATCH_LENGTH) {
        field.copy_from_slice(&base_offset.to_be_bytes());
    }
    if let Some(field) = batch.get_mut(layout::PARTITION_LEADER_EPOCH..layout::MAGIC) {
        field.copy_from_slice(&leader_epoch.to_be_bytes());
    }
}

/// Checks every batch, cuts the tail at the first bad one; returns the log end offset.
fn recover(segment: &Segment) -> Result<i64> {
    let failed = |e: std::io::Error| StorageError::io("recover", &segment.path(), &e);
    let file = segment.file().map_err(failed)?;
    let mut scanner = Scanner::checked(&*file, 0, segment.size());
    let mut end = segment.base_offset;
    while let Found::Batch(header) = scanner.step().map_err(failed)? {
        end = header.last_offset() + 1;
    }
    if scanner.position < segment.size() {
        segment.truncate(scanner.position).map_err(failed)?;
    }
    Ok(end)
}
