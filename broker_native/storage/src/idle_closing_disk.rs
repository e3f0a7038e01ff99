//! A disk that closes idle files: when no file descriptor is left for a call, some of segments are closed and it is tried again.
//!
//! So a broker whose descriptors are all in use goes on beginning segments, opening logs and writing checkpoints for as long
//! as it has idle files. A call fails for want of descriptors when none is left, or when the limit was set below those in use.
//!
//! All methods may be called from any thread.
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::disk::{DirEntry, Disk, DiskFile, DiskLock, OpenMode};
use super::error::Want;

/// See the module.
pub(super) struct IdleClosingDisk {
    disk: Arc<dyn Disk>,
    /// Closes some files that are not in use; whether there were any.
    close_idle: Box<dyn Fn() -> bool + Send + Sync>,
}

impl IdleClosingDisk {
    /// Calls `disk`; `close_idle` closes some files that are not in use, and says whether there were any.
    pub fn new(disk: Arc<dyn Disk>, close_idle: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { disk, close_idle: Box::new(close_idle) }
    }

    /// What `call` gives when there is a descriptor for it.
    fn with_room<T>(&self, call: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match call() {
                // Each time takes files out of those that may be closed, so it ends.
                Err(cause) if Want::of(&cause) == Some(Want::Files) && (self.close_idle)() => {}
                done => return done,
            }
        }
    }
}

impl Disk for IdleClosingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.with_room(|| self.disk.open(path, mode))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        self.disk.file_len(path)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        self.disk.modified_ms(path)
    }

    fn is_link(&self, path: &Path) -> bool {
        self.disk.is_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.with_room(|| self.disk.list(dir))
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.with_room(|| self.disk.remove_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.with_room(|| self.disk.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        self.with_room(|| self.disk.lock(path))
    }
}
