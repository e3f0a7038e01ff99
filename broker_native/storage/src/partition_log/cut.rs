//! What recovery cuts from a log is kept beside it, so that an operator can look at it: `<20 digits>.log.cut` in the partition's
//! folder. The digits are the offset that the first batch in it should have had, or the base offset of a whole segment.
//!
//! No more is kept of a partition than [`ManagerConfig::recovery_kept_bytes`]; what an earlier recovery kept goes first, then what
//! does not fit. Keeping is best effort: a full disk keeps nothing, and recovery goes on. Nothing reads these files, and they go
//! with the partition.
//!
//! [`ManagerConfig::recovery_kept_bytes`]: crate::config::ManagerConfig::recovery_kept_bytes
use std::io;
use std::path::Path;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::names;
use crate::segment::Segment;

/// How much is copied at once.
const COPY_BYTES: usize = /* 1 MiB */ 1 << 20;

/// Keeps what one recovery cuts from one log.
pub(super) struct Keeper<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    left: u64,
    /// Bytes that are kept.
    pub kept: u64,
}

impl<'a> Keeper<'a> {
    /// May keep `most` bytes in `dir`; removes what an earlier recovery kept there unless `most` has room for `coming` besides.
    pub fn new(disk: &'a dyn Disk, dir: &'a Path, most: u64, coming: u64) -> Self {
        let there = disk.list(dir).unwrap_or_default();
        let kept_before = there.iter().filter(|entry| is_cut(&entry.name)).map(|entry| dir.join(&entry.name));
        let kept_before: Vec<_> = kept_before.collect();
        let mut held: u64 = kept_before.iter().map(|path| disk.file_len(path).unwrap_or(0)).sum();
        if held.saturating_add(coming) > most {
            for path in kept_before {
                // A file that stays only takes space.
                let _ = disk.remove_file(&path);
            }
            held = 0;
        }
        Self { disk, dir, left: most.saturating_sub(held), kept: 0 }
    }

    /// Keeps the bytes of a segment behind its good batches, the next of which would have `offset`. Call it before they are cut.
    pub fn tail(&mut self, segment: &Segment, offset: i64) {
        let Ok(from) = segment.file() else { return };
        let (start, end) = (segment.size(), from.len().unwrap_or(0));
        let bytes = end.saturating_sub(start);
        if bytes == 0 || bytes > self.left {
            return;
        }
        let to = names::segment_file(self.dir, offset, names::CUT_SUFFIX);
        match copy(&*from, start..end, self.disk, &to) {
            Ok(()) => self.count(bytes),
            Err(_) => _ = self.disk.remove_file(&to),
        }
    }

    /// Keeps a whole segment: its `.log` has another name then. False when it does not fit.
    pub fn segment(&mut self, segment: &Segment) -> bool {
        let path = segment.path_of(names::LOG_SUFFIX);
        let bytes = self.disk.file_len(&path).unwrap_or(u64::MAX);
        let to = names::segment_file(self.dir, segment.base_offset, names::CUT_SUFFIX);
        let keeps = bytes <= self.left && self.disk.rename(&path, &to).is_ok();
        if keeps {
            self.count(bytes);
        }
        keeps
    }

    fn count(&mut self, bytes: u64) {
        self.kept += bytes;
        self.left = self.left.saturating_sub(bytes);
    }
}

fn is_cut(name: &str) -> bool {
    names::parse_segment_file(name).is_some_and(|(_, suffix)| suffix == names::CUT_SUFFIX)
}

fn copy(from: &dyn DiskFile, bytes: std::ops::Range<u64>, disk: &dyn Disk, to: &Path) -> io::Result<()> {
    let to = disk.open(to, OpenMode::CreateEmpty)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut position = bytes.start;
    while position < bytes.end {
        let most = usize::try_from(bytes.end - position).unwrap_or(COPY_BYTES).min(COPY_BYTES);
        let Some(part) = buffer.get_mut(..most) else { break };
        from.read_exact_at(part, position)?;
        to.write_all_at(part, position - bytes.start)?;
        position += most as u64;
    }
    Ok(())
}
