//! One segment: a `.log` of batches with its two sparse indexes, and the index of the transactions aborted in it.
//!
//! A segment knows positions and offsets; when to roll, flush or remove is decided by the log. Appends and
//! [`Segment::retire`] come from one thread at a time (the log's append lock); everything else from any thread.
//! No lock is held while a `.log` is read. Files are opened when used and may be closed any time, see [`FilePool`].
//!
//! | file | what it does |
//! |---|---|
//! | `marks` | what is known without reading: newest index entries, largest timestamp |
//! | `lookup` | offset -> position, position -> batch boundary, checked reads |
//! | `rebuild` | indexes from the `.log`, and the scan of recovery |
//! | `aborted`, `aborted_index` | the `.txnindex`; what is known of it without reading it |
//! | `bound`, `named` | where a read ends and what it finds; the names of the files |
//! | `replaced` | segments that compaction writes, and those that it takes the place of |
mod aborted;
mod aborted_index;
mod bound;
mod lookup;
mod marks;
mod named;
mod rebuild;
mod replaced;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use self::aborted_index::AbortedIndex;
use self::marks::Marks;
use super::config::LogConfig;
use super::disk::{DiskFile, OpenMode};
use super::error::{StorageError, TopicPartition, Want};
use super::files::{FilePool, FileSlot};
use super::index::{IndexEntry, SparseIndex, read_one};
use super::names;
use pylog_record::header::BatchHeader;

pub(super) use self::aborted::read_aborted;
pub(super) use self::bound::{BatchRun, Bound};
pub(super) use self::named::Named;
pub(super) use self::replaced::end_of;

/// Why a segment could not do it; the log adds the partition.
#[derive(Debug)]
pub(super) enum SegmentError {
    /// The operating system refused.
    Io { action: &'static str, file: PathBuf, cause: io::Error },
    /// Bytes that are not what was written.
    Bad { offset: i64, file: PathBuf, reason: String },
}

pub(super) type Result<T, E = SegmentError> = std::result::Result<T, E>;

impl SegmentError {
    /// The error of a log.
    pub fn of(self, at: &TopicPartition) -> StorageError {
        match self {
            Self::Io { action, file, cause } => StorageError::of_io(at, action, &file, &cause),
            Self::Bad { offset, file, reason } => {
                StorageError::Corrupt { at: at.clone(), offset, file, reason }
            }
        }
    }

    /// The want that is its cause and that passes.
    pub fn want(&self) -> Option<Want> {
        match self {
            Self::Io { cause, .. } => Want::of(cause),
            Self::Bad { .. } => None,
        }
    }

    /// Whether a file is not there (retention was faster than a reader).
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// What the topic's settings mean to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentSettings {
    /// An index entry about every so many bytes.
    pub index_interval: u64,
    /// Whether offsets may be missing between batches, as compaction leaves them. Otherwise each batch must begin where
    /// the one before ends: base offsets are not covered by a batch's CRC, this is how a changed one is noticed.
    pub gaps: bool,
}

impl SegmentSettings {
    /// Those of a topic. `compacted`: the log was compacted before, whatever its settings say now.
    pub fn of(config: &LogConfig, compacted: bool) -> Self {
        Self {
            index_interval: config.index_interval_bytes.max(0) as u64,
            gaps: config.cleanup_policy.compact || compacted,
        }
    }
}

/// One segment.
pub(super) struct Segment {
    /// First offset that can be in it; its file name.
    pub base_offset: i64,
    /// Different for each segment of this process: compaction gives another segment the same base offset.
    pub id: u64,
    /// What its files are called now.
    named: Mutex<Named>,
    dir: Arc<Path>,
    pool: Arc<FilePool>,
    log: Arc<FileSlot>,
    index: Arc<FileSlot>,
    time_index: Arc<FileSlot>,
    aborted: AbortedIndex,
    settings: SegmentSettings,
    /// See [`SegmentSettings::gaps`]; once offsets may be missing they may for ever.
    gaps: AtomicBool,
    /// Bytes of whole batches, published after each append.
    size: AtomicU64,
    /// From this position on, every CRC was checked by this process; earlier bytes are checked when first read.
    trusted_from: AtomicU64,
    marks: Mutex<Marks>,
    /// Held while the index files are loaded, written or rebuilt.
    index_io: Mutex<()>,
    checked: Mutex<Checked>,
}

/// A run of batches before [`Segment::trusted_from`] that was checked.
#[derive(Debug, Clone, Copy)]
struct Checked {
    start: u64,
    end: Bound,
}

impl Segment {
    /// Makes the segment's three files, empty.
    pub fn create(
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        Self::create_as(Named::Live, pool, dir, base_offset, settings, now_ms)
    }

    /// Makes the files of a segment that is to begin where others end once these are gone: `.cleaned` until then.
    pub fn create_aside(
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        Self::create_as(Named::Cleaned, pool, dir, base_offset, settings, now_ms)
    }

    fn create_as(
        named: Named,
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        let mut segment = Self::new(pool, dir, base_offset, settings, 0);
        *segment.named.get_mut() = named;
        for suffix in [names::INDEX_SUFFIX, names::TIME_INDEX_SUFFIX, names::LOG_SUFFIX] {
            let path = segment.path_of(suffix);
            pool.disk.open(&path, OpenMode::CreateEmpty).map_err(|cause| SegmentError::Io {
                action: "make",
                file: path,
                cause,
            })?;
        }
        *segment.marks.get_mut() = Marks::empty(now_ms);
        segment.trusted_from = AtomicU64::new(0);
        Ok(segment)
    }

    /// A segment whose `.log` is there. Nothing but its length is looked at before it is used.
    pub fn existing(
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
    ) -> Result<Self> {
        let path = names::segment_file(dir, base_offset, names::LOG_SUFFIX);
        let size = pool.disk.file_len(&path).map_err(|cause| SegmentError::Io {
            action: "look at",
            file: path,
            cause,
        })?;
        Ok(Self::new(pool, dir, base_offset, settings, size))
    }

    fn new(
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
        size: u64,
    ) -> Self {
        Self {
            base_offset,
            id: named::next_id(),
            named: Mutex::default(),
            dir: dir.clone(),
            pool: pool.clone(),
            log: Arc::default(),
            index: Arc::default(),
            time_index: Arc::default(),
            aborted: AbortedIndex::default(),
            settings,
            gaps: AtomicBool::new(settings.gaps),
            size: AtomicU64::new(size),
            trusted_from: AtomicU64::new(size),
            marks: Mutex::default(),
            index_io: Mutex::default(),
            checked: Mutex::new(Checked { start: 0, end: Bound { position: 0, offset: base_offset } }),
        }
    }

    /// Bytes of whole batches.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Name of one of the segment's files.
    pub fn path_of(&self, suffix: &str) -> PathBuf {
        self.path_as(suffix, *self.named.lock())
    }

    /// The `.log`, opened when it is not.
    pub fn file(&self) -> Result<Arc<dyn DiskFile>> {
        let path = || self.path_of(names::LOG_SUFFIX);
        let opened = self.log.get(&self.pool, OpenMode::ReadWrite, path);
        opened.map_err(|cause| self.failed("open", names::LOG_SUFFIX, cause))
    }

    /// Reserves blocks for `bytes` of `.log`.
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        let reserved = self.file()?.reserve(bytes);
        reserved.map_err(|cause| self.failed("reserve space for", names::LOG_SUFFIX, cause))
    }

    /// Whether offsets may be missing between batches.
    pub fn has_gaps(&self) -> bool {
        self.gaps.load(Ordering::Acquire)
    }

    /// Offsets may be missing from now on.
    pub fn allow_gaps(&self) {
        self.gaps.store(true, Ordering::Release);
    }

    /// Writes `batch`, whose header is `header`, behind the last one. After an error its bytes may be there in part;
    /// [`Segment::undo_append`] takes them away.
    pub fn append(&self, batch: &[u8], header: &BatchHeader) -> Result<()> {
        self.append_run(batch, std::slice::from_ref(header))
    }

    /// Writes a run of batches, whose headers are `headers`, as [`Segment::append`] writes one.
    pub fn append_run(&self, bytes: &[u8], headers: &[BatchHeader]) -> Result<()> {
        if self.marks.lock().must_store() {
            self.store_indexes()?;
        }
        let size = self.size();
        let written = self.file()?.write_all_at(bytes, size);
        written.map_err(|cause| self.failed("write", names::LOG_SUFFIX, cause))?;
        // Size and marks move together: a rebuild that sees one unchanged knows that the other is.
        let mut marks = self.marks.lock();
        let mut position = size;
        for header in headers {
            marks.note(header, position, self.base_offset, self.settings.index_interval);
            position += header.size() as u64;
        }
        self.size.store(size + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Cuts the `.log` back to its whole batches.
    pub fn undo_append(&self) -> Result<()> {
        let cut = self.file()?.set_len(self.size());
        cut.map_err(|cause| self.failed("cut", names::LOG_SUFFIX, cause))
    }

    /// Ends appending: the largest timestamp goes into the time index, all entries into their files, and blocks that
    /// were reserved and not used go back.
    pub fn retire(&self, reserved: bool) -> Result<()> {
        self.load()?;
        self.marks.lock().note_last(self.base_offset);
        self.store_indexes()?;
        if reserved { self.undo_append() } else { Ok(()) }
    }

    /// fdatasync of the `.log`, and with `indexes` of the index files, which then hold all entries.
    pub fn sync(&self, indexes: bool) -> Result<()> {
        let synced = self.file()?.sync_data();
        synced.map_err(|cause| self.failed("sync", names::LOG_SUFFIX, cause))?;
        if indexes {
            self.load()?;
            self.store_indexes()?;
            for (file, suffix) in [
                (self.index_file()?, names::INDEX_SUFFIX),
                (self.time_index_file()?, names::TIME_INDEX_SUFFIX),
            ] {
                file.sync_data().map_err(|cause| self.failed("sync", suffix, cause))?;
            }
            self.sync_aborted()?;
        }
        Ok(())
    }

    /// Forgets the open files.
    pub fn close(&self) {
        self.log.close();
        self.index.close();
        self.time_index.close();
        self.aborted.close();
    }

    /// Entries of the larger index, in bytes of the larger entry; what `segment.index.bytes` bounds.
    pub fn index_bytes(&self) -> u64 {
        let marks = self.marks.lock();
        (marks.offsets.len() * 8).max(marks.times.len() * 12) as u64
    }

    /// When the first batch was appended for the purpose of rolling by age, milliseconds since the epoch: its largest
    /// timestamp, or the segment's birth when it carries none.
    pub fn first_timestamp(&self) -> i64 {
        self.marks.lock().first_timestamp
    }

    /// The largest timestamp and the last offset of the first batch that has it; `None` without any.
    pub fn max_timestamp(&self) -> Result<Option<(i64, i64)>> {
        self.load()?;
        let marks = self.marks.lock();
        Ok((marks.max_timestamp >= 0).then_some((marks.max_timestamp, marks.max_timestamp_offset)))
    }

    /// Milliseconds since the epoch of the last write to the `.log`.
    pub fn modified_ms(&self) -> Result<i64> {
        let path = self.path_of(names::LOG_SUFFIX);
        let modified = self.pool.disk.modified_ms(&path);
        modified.map_err(|cause| self.failed("look at", names::LOG_SUFFIX, cause))
    }

    fn index_file(&self) -> Result<Arc<dyn DiskFile>> {
        self.slot_file(&self.index, names::INDEX_SUFFIX)
    }

    fn time_index_file(&self) -> Result<Arc<dyn DiskFile>> {
        self.slot_file(&self.time_index, names::TIME_INDEX_SUFFIX)
    }

    fn slot_file(&self, slot: &Arc<FileSlot>, suffix: &'static str) -> Result<Arc<dyn DiskFile>> {
        // What was replaced is not made anew once it was removed.
        let is_live = *self.named.lock() == Named::Live;
        let mode = if is_live { OpenMode::Create } else { OpenMode::ReadWrite };
        let opened = slot.get(&self.pool, mode, || self.path_of(suffix));
        opened.map_err(|cause| self.failed("open", suffix, cause))
    }

    /// Writes the pending entries of both indexes.
    fn store_indexes(&self) -> Result<()> {
        let _io = self.index_io.lock();
        self.store_one(&self.index, names::INDEX_SUFFIX, |marks| &mut marks.offsets)?;
        self.store_one(&self.time_index, names::TIME_INDEX_SUFFIX, |marks| &mut marks.times)
    }

    fn store_one<E: IndexEntry>(
        &self,
        slot: &Arc<FileSlot>,
        suffix: &'static str,
        of: impl Fn(&mut Marks) -> &mut SparseIndex<E>,
    ) -> Result<()> {
        let (bytes, position) = of(&mut self.marks.lock()).begin_store();
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.slot_file(slot, suffix)?.write_all_at(&bytes, position);
        written.map_err(|cause| self.failed("write", suffix, cause))?;
        of(&mut self.marks.lock()).end_store(bytes.len());
        Ok(())
    }

    /// Looks at the index files once; rebuilds them when they are missing or cannot be right.
    fn load(&self) -> Result<()> {
        if self.marks.lock().loaded {
            return Ok(());
        }
        let io = self.index_io.lock();
        if self.marks.lock().loaded {
            return Ok(());
        }
        match self.adopt_files() {
            Ok(true) => Ok(()),
            Ok(false) => self.rebuild_locked(&io),
            Err(error) if error.is_missing() => self.rebuild_locked(&io),
            Err(error) => Err(error),
        }
    }

    /// Takes the index files as they are when their ends agree with the `.log`.
    fn adopt_files(&self) -> Result<bool> {
        let open = |suffix| {
            let opened = self.pool.disk.open(&self.path_of(suffix), OpenMode::Read);
            opened.map_err(|cause| self.failed("open", suffix, cause))
        };
        let (index, times) = (open(names::INDEX_SUFFIX)?, open(names::TIME_INDEX_SUFFIX)?);
        let Some((entries, last)) = self.ends(&*index, names::INDEX_SUFFIX)? else { return Ok(false) };
        let Some((time_entries, last_time)) = self.ends(&*times, names::TIME_INDEX_SUFFIX)? else {
            return Ok(false);
        };
        if self.size() > 0 && time_entries == 0 || entries == 0 && self.size() > self.settings.index_interval
        {
            return Ok(false);
        }
        let mut fresh = Marks { loaded: true, ..Marks::empty(-1) };
        fresh.offsets.adopt(entries, last);
        fresh.times.adopt(time_entries, last_time);
        if let Some(last) = last_time {
            fresh.max_timestamp = last.timestamp;
            fresh.max_timestamp_offset = self.base_offset + i64::from(last.relative);
        }
        // A clean end of a segment indexes all but the last stretch; how long that is, is found by who appends.
        fresh.first_timestamp = self.marks.lock().first_timestamp;
        if !self.agree_with_log(&*index, &fresh)? {
            return Ok(false);
        }
        *self.marks.lock() = fresh;
        Ok(true)
    }

    /// Entries and last entry of an index file; `None` when the length is not that of entries.
    fn ends<E: IndexEntry>(
        &self,
        file: &dyn DiskFile,
        suffix: &'static str,
    ) -> Result<Option<(usize, Option<E>)>> {
        let failed = |cause| self.failed("read", suffix, cause);
        let len = file.len().map_err(failed)? as usize;
        if !len.is_multiple_of(E::BYTES) {
            return Ok(None);
        }
        let entries = len / E::BYTES;
        let last = match entries.checked_sub(1) {
            Some(i) => Some(read_one(file, i).map_err(failed)?),
            None => None,
        };
        Ok(Some((entries, last)))
    }

    /// [`SegmentError::Io`] of one of the segment's files.
    fn failed(&self, action: &'static str, suffix: &str, cause: io::Error) -> SegmentError {
        SegmentError::Io { action, file: self.path_of(suffix), cause }
    }

    /// [`SegmentError::Bad`] of the `.log`.
    fn bad(&self, offset: i64, reason: impl Into<String>) -> SegmentError {
        SegmentError::Bad { offset, file: self.path_of(names::LOG_SUFFIX), reason: reason.into() }
    }
}
