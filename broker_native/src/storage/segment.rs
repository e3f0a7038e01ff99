//! One segment: a `.log` of batches with its two sparse indexes.
//!
//! A segment knows positions and offsets; when to roll, flush or remove is decided by the log. Appends come from one
//! thread at a time (the log's append lock); everything else from any.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::{Disk, DiskFile, OpenMode};
use super::names;
use super::scan::{Found, Scanner};

/// One segment.
pub(super) struct Segment {
    /// First offset that can be in it; its file name.
    pub base_offset: i64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Bytes of whole batches, published after each append.
    size: AtomicU64,
}

impl Segment {
    /// Opens or makes the segment's files.
    pub fn open(disk: &dyn Disk, dir: &Path, base_offset: i64, mode: OpenMode) -> io::Result<Self> {
        let path = names::segment_file(dir, base_offset, names::LOG_SUFFIX);
        let file = disk.open(&path, mode)?;
        let size = AtomicU64::new(file.len()?);
        Ok(Self { base_offset, path, file, size })
    }

    /// Bytes of whole batches.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The `.log`.
    pub fn file(&self) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file.clone())
    }

    /// The `.log`'s name, for errors.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Writes `batch` behind the last one.
    pub fn append(&self, batch: &[u8]) -> io::Result<()> {
        let size = self.size();
        self.file.write_all_at(batch, size)?;
        self.size.store(size + batch.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Cuts the `.log` to `size` bytes.
    pub fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)?;
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    /// Position of the first batch whose last offset is `offset` or more, within the first `end` bytes.
    pub fn find(&self, offset: i64, end: u64) -> io::Result<Option<u64>> {
        let mut scanner = Scanner::headers(&*self.file, 0, end);
        loop {
            let position = scanner.position;
            match scanner.step()? {
                Found::Batch(header) if header.last_offset() >= offset => return Ok(Some(position)),
                Found::Batch(_) => {}
                Found::End => return Ok(None),
                Found::Bad(bad) => return Err(io::Error::new(io::ErrorKind::InvalidData, bad)),
            }
        }
    }
}
