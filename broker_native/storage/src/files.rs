//! Open files of segments, bounded in number, and small files replaced as a whole.
//!
//! A segment asks its [`FileSlot`] for the file each time; the [`FilePool`] closes slots that were not used lately when
//! more than its limit are open, or when no file descriptor is left ([`IdleClosingDisk`]). A file that was closed here
//! stays open for the holders of its `Arc`.
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::disk::{Disk, DiskFile, OpenMode};
use super::error::{Result, StorageError};
use super::idle_closing_disk::IdleClosingDisk;
use super::{TopicPartition, names};

/// Largest small file that is read as a whole: a checkpoint of a million partitions is smaller.
const SMALL_FILE_MAX_BYTES: u64 = /* 256 MiB */ 256 << 20;

/// How many idle files are closed at once when no descriptor is left: enough to begin a segment.
const CLOSED_AT_ONCE: usize = 8;

/// The files of segments, opened when needed.
pub(super) struct FilePool {
    /// Where the files are. It closes idle ones when no descriptor is left for another.
    pub disk: Arc<dyn Disk>,
    max_open: usize,
    open: Arc<OpenFiles>,
}

/// The files that are open, in the order of a clock hand.
#[derive(Default)]
struct OpenFiles {
    ring: Mutex<VecDeque<Weak<FileSlot>>>,
}

/// One file that is opened when needed.
#[derive(Default)]
pub(super) struct FileSlot {
    file: Mutex<Option<Arc<dyn DiskFile>>>,
    used: AtomicBool,
    in_ring: AtomicBool,
}

impl FilePool {
    /// A pool that keeps about `max_open` files open.
    pub fn new(disk: Arc<dyn Disk>, max_open: usize) -> Self {
        let open = Arc::<OpenFiles>::default();
        let files = Arc::clone(&open);
        let disk = IdleClosingDisk::new(disk, move || files.close_idle());
        Self { disk: Arc::new(disk), max_open: max_open.max(1), open }
    }

    /// Closes some idle files; whether there were any.
    pub fn close_idle(&self) -> bool {
        self.open.close_idle()
    }

    /// Files open now.
    #[cfg(test)]
    pub fn open_files(&self) -> usize {
        self.open
            .ring
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|slot| slot.file.lock().is_some())
            .count()
    }

    fn admit(&self, slot: &Arc<FileSlot>) {
        if slot.in_ring.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut ring = self.open.ring.lock();
        // Two rounds: the first takes the marks off, the second closes.
        for _ in 0..2 * ring.len() {
            if ring.len() < self.max_open {
                break;
            }
            let Some(oldest) = ring.pop_front() else { break };
            let Some(candidate) = oldest.upgrade() else { continue };
            if candidate.used.swap(false, Ordering::Relaxed) || !candidate.evict() {
                ring.push_back(oldest);
            }
        }
        ring.push_back(Arc::downgrade(slot));
    }
}

impl OpenFiles {
    /// Closes up to [`CLOSED_AT_ONCE`] idle files, however lately they were used; whether there were any.
    pub fn close_idle(&self) -> bool {
        let mut ring = self.ring.lock();
        let mut closed = 0;
        for _ in 0..ring.len() {
            if closed == CLOSED_AT_ONCE {
                break;
            }
            let Some(oldest) = ring.pop_front() else { break };
            match oldest.upgrade() {
                Some(slot) if slot.evict() => closed += 1,
                Some(_) => ring.push_back(oldest),
                None => {}
            }
        }
        closed > 0
    }
}

impl FileSlot {
    /// The file, opened by `path` and `mode` when it is not open.
    pub fn get(
        self: &Arc<Self>,
        pool: &FilePool,
        mode: OpenMode,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<Arc<dyn DiskFile>> {
        self.used.store(true, Ordering::Relaxed);
        let mut held = self.file.lock();
        if let Some(file) = &*held {
            return Ok(file.clone());
        }
        let file = pool.disk.open(&path(), mode)?;
        *held = Some(file.clone());
        drop(held);
        pool.admit(self);
        Ok(file)
    }

    /// Keeps others from opening the file as long as the guard lives: its name is about to change.
    pub fn hold(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.file.lock()
    }

    /// Forgets the file, so that the next use opens it by its name again.
    pub fn close(&self) {
        *self.file.lock() = None;
    }

    /// Closes an idle slot; `false` when another thread is just taking its file.
    fn evict(&self) -> bool {
        let Some(mut held) = self.file.try_lock() else { return false };
        *held = None;
        self.in_ring.store(false, Ordering::Relaxed);
        true
    }
}

/// When a replaced file must be on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncWhen {
    /// Before the call returns: after a loss of power the file is the old or the new one, whole.
    Now,
    /// Some time: a loss of power may leave it missing or empty.
    Later,
}

/// Replaces the file at `path` by `bytes`: written beside it, renamed over it.
///
/// # Errors
/// [`StorageError::DiskFull`], [`StorageError::OutOfFiles`] (for `at`) and [`StorageError::Io`]; the old file is still there.
pub(super) fn replace(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    when: SyncWhen,
    at: &TopicPartition,
) -> Result<()> {
    let mut tmp = path.as_os_str().to_owned();
    tmp.push(names::TMP_SUFFIX);
    let tmp = PathBuf::from(tmp);
    let written = (|| {
        let file = disk.open(&tmp, OpenMode::CreateEmpty)?;
        file.write_all_at(bytes, 0)?;
        if when == SyncWhen::Now {
            file.sync_data()?;
        }
        disk.rename(&tmp, path)?;
        match path.parent() {
            Some(dir) if when == SyncWhen::Now => disk.sync_dir(dir),
            _ => Ok(()),
        }
    })();
    written.map_err(|cause| StorageError::of_io(at, "replace", path, &cause))
}

/// The text of a small file; `None` when it is missing.
///
/// # Errors
/// [`StorageError::Malformed`] when it is huge or not UTF-8, [`StorageError::Io`].
pub(super) fn read_text(disk: &dyn Disk, path: &Path) -> Result<Option<String>> {
    let Some(bytes) = read_bytes(disk, path)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| malformed(path, "it is not text"))?;
    Ok(Some(text))
}

/// The bytes of a small file; `None` when it is missing.
///
/// # Errors
/// [`StorageError::Malformed`] when it is huge, [`StorageError::Io`].
pub(super) fn read_bytes(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    let read = |e: io::Error| StorageError::io("read", path, &e);
    let file = match disk.open(path, OpenMode::Read) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(read)?,
    };
    let len = file.len().map_err(read)?;
    if len > SMALL_FILE_MAX_BYTES {
        return Err(malformed(path, "it is far too large"));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).map_err(read)?;
    Ok(Some(bytes))
}

/// [`StorageError::Malformed`] for a file.
pub(super) fn malformed(path: &Path, reason: impl Into<String>) -> StorageError {
    StorageError::Malformed { file: path.to_path_buf(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn no_more_files_stay_open_than_allowed_and_each_can_be_used_again() {
        let dir = tempfile::tempdir().unwrap();
        let pool = FilePool::new(Arc::new(RealDisk), 10);
        let slots: Vec<Arc<FileSlot>> = (0..100).map(|_| Arc::default()).collect();
        for round in 0..3_u8 {
            for (i, slot) in slots.iter().enumerate() {
                let path = || dir.path().join(i.to_string());
                slot.get(&pool, OpenMode::Create, path)
                    .unwrap()
                    .write_all_at(&[round], round.into())
                    .unwrap();
                assert!(pool.open_files() <= 10, "{} are open", pool.open_files());
            }
        }
        let bytes = read_bytes(&RealDisk, &dir.path().join("57")).unwrap();
        assert_eq!(bytes, Some(vec![0, 1, 2]));
    }
}
