//! Segments that compaction writes, and those that it takes the place of.
//!
//! The files of a segment change their names while the segment is in use: `.cleaned` while it is written, `.swap` once
//! it is whole and on the device, no suffix when it has taken its place, `.<id>.deleted` when another took its place. Readers
//! go on reading: open files stay open, and a file that was closed is opened again by the name it has then.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bound::Bound;
use super::named::Named;
use super::{Result, Segment, SegmentSettings};
use crate::disk::DiskFile;
use crate::files::FilePool;
use crate::names;
use crate::scan::{Found, Scanner};

impl Segment {
    /// Makes the files of a segment that is to take the place of others.
    pub fn create_cleaned(
        pool: &Arc<FilePool>,
        dir: &Arc<Path>,
        base_offset: i64,
        settings: SegmentSettings,
    ) -> Result<Self> {
        let settings = SegmentSettings { gaps: true, ..settings };
        Self::create_as(Named::Cleaned, pool, dir, base_offset, settings, -1)
    }

    /// Gives the files their names as `named` says. Nobody opens one meanwhile. A file that is not there (an index that
    /// was never made) stays so. `sync` makes names durable: a `.log` that comes back after a loss of power must find its
    /// `.txnindex`, which cannot be made anew from it. So that comes before, and goes after it.
    pub fn rename_to(&self, named: Named, sync: impl Fn() -> Result<()>) -> Result<()> {
        let _io = self.index_io.lock();
        let _held = [self.log.hold(), self.index.hold(), self.time_index.hold(), self.aborted.hold()];
        let before = *self.named.lock();
        let mut order = names::SEGMENT_SUFFIXES;
        let sync_behind = match named {
            Named::Deleted if self.aborted.exists() => names::LOG_SUFFIX,
            Named::Deleted => "",
            _ => {
                order.reverse();
                names::TXN_INDEX_SUFFIX
            }
        };
        for suffix in order {
            let (from, to) = (self.path_as(suffix, before), self.path_as(suffix, named));
            match self.pool.disk.rename(&from, &to) {
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && suffix != names::LOG_SUFFIX => {
                }
                renamed => {
                    renamed.map_err(|cause| self.failed("rename", suffix, cause))?;
                    if suffix == sync_behind {
                        sync()?;
                    }
                }
            }
        }
        *self.named.lock() = named;
        Ok(())
    }

    /// Cuts the files to the batches before `end`, on the device, too; gives the segment that holds them. This one has no
    /// files any more: a reader of it goes on as far as the open file reaches, and then looks again.
    pub fn cut_to(&self, end: Bound, settings: SegmentSettings) -> Result<Self> {
        let cut = self.file()?.set_len(end.position);
        cut.map_err(|cause| self.failed("cut", names::LOG_SUFFIX, cause))?;
        self.sync(false)?;
        let mut aborted = self.aborted_txns()?;
        aborted.retain(|txn| txn.last_offset < end.offset);
        {
            let _io = self.index_io.lock();
            *self.named.lock() = Named::Deleted;
            self.close();
        }
        let settings = SegmentSettings { gaps: settings.gaps || self.has_gaps(), ..settings };
        let left = Self::existing(&self.pool, &self.dir, self.base_offset, settings)?;
        if self.aborted.exists() {
            left.adopt_aborted()?;
        }
        left.replace_aborted(&aborted).map(drop)?;
        let scanned = left.recover(end.offset, end.offset, |_, _| {})?;
        if scanned.next_offset != end.offset {
            let reason = scanned.torn.unwrap_or_else(|| "the batches end before".into());
            return Err(left.bad(scanned.next_offset, reason));
        }
        Ok(left)
    }

    /// The names that its files have now.
    pub fn paths(&self) -> Vec<PathBuf> {
        names::SEGMENT_SUFFIXES.iter().map(|suffix| self.path_of(suffix)).collect()
    }

    /// Bytes of the offset index and of the time index.
    pub fn index_sizes(&self) -> Result<(u64, u64)> {
        self.load()?;
        let marks = self.marks.lock();
        Ok((marks.offsets.len() as u64 * 8, marks.times.len() as u64 * 12))
    }

    /// Largest timestamp of the first batch, milliseconds since the epoch; -1 for none.
    pub fn first_batch_timestamp(&self) -> Result<i64> {
        let file = self.file()?;
        let found = Scanner::headers(&*file, 0, self.size()).step();
        match found.map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
            Found::Batch(header) => Ok(header.max_timestamp),
            _ => Ok(-1),
        }
    }

    pub(super) fn path_as(&self, suffix: &str, named: Named) -> PathBuf {
        let mut path = names::segment_file(&self.dir, self.base_offset, suffix).into_os_string();
        match named {
            Named::Live => {}
            Named::Cleaned => path.push(names::CLEANED_SUFFIX),
            Named::Swap => path.push(names::SWAP_SUFFIX),
            // The next segment that is replaced here must not be taken for this one.
            Named::Deleted => path.push(format!(".{}{}", self.id, names::DELETED_SUFFIX)),
        }
        path.into()
    }
}

/// One past the last offset of the whole batches of a `.log` file; `base_offset` when there is none.
pub(crate) fn end_of(file: &dyn DiskFile, base_offset: i64) -> std::io::Result<i64> {
    let mut scanner = Scanner::headers(file, 0, file.len()?);
    let mut end = base_offset;
    while let Found::Batch(header) = scanner.step()? {
        end = header.last_offset() + 1;
    }
    Ok(end)
}
