//! Indexes made anew from the `.log`, and the scan that recovery does.
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::bound::Bound;
use super::marks::Marks;
use super::{Checked, Result, Segment};
use crate::disk::OpenMode;
use crate::index::{IndexEntry, OffsetEntry, SparseIndex, TimeEntry, read_growing};
use crate::names;
use crate::scan::{Found, Scanner};
use pylog_record::control::EndTxn;
use pylog_record::header::BatchHeader;

/// What a recovery scan saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// One past the last offset of the good batches.
    pub next_offset: i64,
    /// Bytes of good batches.
    pub position: u64,
    /// Why the scan ended before the end of the file.
    pub torn: Option<String>,
}

impl Segment {
    /// Makes both indexes anew, as far as the `.log` can be walked.
    pub(super) fn rebuild(&self) -> Result<()> {
        let io = self.index_io.lock();
        self.rebuild_locked(&io)
    }

    pub(super) fn rebuild_locked(&self, _io: &MutexGuard<'_, ()>) -> Result<()> {
        // Appends go on meanwhile; the last round sees none.
        while !self.replace_indexes(self.walk_for_marks()?)? {}
        Ok(())
    }

    /// The marks of the batches that are there, and the size that was walked.
    fn walk_for_marks(&self) -> Result<(Marks, u64)> {
        let file = self.file()?;
        let size = self.size();
        let mut marks = Marks::empty(-1);
        let mut scanner = Scanner::headers(&*file, 0, size);
        let mut next = Some(self.base_offset);
        loop {
            let position = scanner.position;
            match scanner.step().map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
                Found::Batch(header) if self.fits(&header, next) => {
                    marks.note(&header, position, self.base_offset, self.settings.index_interval);
                    next = Some(header.last_offset() + 1);
                }
                _ => break,
            }
        }
        marks.note_last(self.base_offset);
        if size == 0 {
            marks.first_timestamp = self.marks.lock().first_timestamp;
        }
        Ok((marks, size))
    }

    /// Writes all entries of `marks` to new files and takes it over, unless the segment has grown beyond `size`.
    fn replace_indexes(&self, (mut marks, size): (Marks, u64)) -> Result<bool> {
        self.index.close();
        self.time_index.close();
        self.write_whole(&mut marks.offsets, names::INDEX_SUFFIX)?;
        self.write_whole(&mut marks.times, names::TIME_INDEX_SUFFIX)?;
        // Another thread may have opened an old file in between.
        self.index.close();
        self.time_index.close();
        let mut current = self.marks.lock();
        if self.size() != size {
            return Ok(false);
        }
        *current = marks;
        Ok(true)
    }

    /// Walks the end of a segment that was closed cleanly, CRCs checked, so that it can be appended to; gives one
    /// past its last offset.
    pub fn find_end(&self) -> Result<i64> {
        self.load()?;
        let file = self.file()?;
        let (start, size) = {
            let mut marks = self.marks.lock();
            marks.since_entry = 0;
            (marks.offsets.last().map_or(0, |entry| entry.position as u64), self.size())
        };
        let mut scanner = Scanner::checked(&*file, start, size);
        let mut next = self.base_offset;
        loop {
            let position = scanner.position;
            let expected = if position == start { self.expected_at(start) } else { Some(next) };
            let Some(header) = self.step(&mut scanner, expected)? else { break };
            self.marks.lock().note(&header, position, self.base_offset, self.settings.index_interval);
            next = header.last_offset() + 1;
        }
        *self.checked.lock() = Checked { start, end: Bound { position: size, offset: next } };
        self.find_first_timestamp()?;
        Ok(next)
    }

    /// Reads what [`Segment::first_timestamp`] gives from the files.
    fn find_first_timestamp(&self) -> Result<()> {
        let file = self.file()?;
        let first = Scanner::headers(&*file, 0, self.size()).step();
        let timestamp = match first.map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
            Found::Batch(header) if header.max_timestamp >= 0 => header.max_timestamp,
            _ => self.modified_ms()?,
        };
        self.marks.lock().first_timestamp = timestamp;
        Ok(())
    }

    /// Writes all entries of `marks` over what the files hold. Not by a rename as [`Segment::rebuild`] does: ext4 brings
    /// a file to the device when another is renamed over it, 2 ms for each of maybe thousands of logs that are
    /// recovered, and after a crash in between the segment is recovered again.
    fn overwrite_indexes(&self, mut marks: Marks) -> Result<()> {
        self.write_over(&mut marks.offsets, names::INDEX_SUFFIX)?;
        self.write_over(&mut marks.times, names::TIME_INDEX_SUFFIX)?;
        *self.marks.lock() = marks;
        Ok(())
    }

    fn write_over<E: IndexEntry>(&self, index: &mut SparseIndex<E>, suffix: &'static str) -> Result<()> {
        let (bytes, position) = index.begin_store();
        let written = self.pool.disk.open(&self.path_of(suffix), OpenMode::Create).and_then(|file| {
            file.write_all_at(&bytes, position)?;
            file.set_len(bytes.len() as u64)
        });
        written.map_err(|cause| self.failed("rebuild", suffix, cause))?;
        let (entries, last) = (index.len(), index.last());
        index.adopt(entries, last);
        Ok(())
    }

    /// One index file, written beside the old one and renamed over it: a crash leaves the old or the new one.
    fn write_whole<E: IndexEntry>(&self, index: &mut SparseIndex<E>, suffix: &'static str) -> Result<()> {
        let (bytes, position) = index.begin_store();
        let path = self.path_of(suffix);
        let tmp = path.with_extension(format!("{suffix}{}", names::TMP_SUFFIX));
        let disk = &*self.pool.disk;
        let written = disk
            .open(&tmp, OpenMode::CreateEmpty)
            .and_then(|file| file.write_all_at(&bytes, position))
            .and_then(|()| disk.rename(&tmp, &path));
        written.map_err(|cause| self.failed("rebuild", suffix, cause))?;
        let (entries, last) = (index.len(), index.last());
        index.adopt(entries, last);
        Ok(())
    }

    /// Checks every batch from about `from_offset` on and rebuilds the indexes behind it. Nothing is cut: the caller
    /// decides what a bad batch means, see [`Segment::cut`].
    ///
    /// Batches before `from_offset` are believed when the index leads past them; `visit` sees every batch that is
    /// walked. When the good batches end before `durable_offset`, nothing at all is changed.
    pub fn recover(
        &self,
        from_offset: i64,
        durable_offset: i64,
        mut visit: impl FnMut(&BatchHeader, Option<EndTxn>),
    ) -> Result<Scanned> {
        let file = self.file()?;
        let io = self.index_io.lock();
        let (mut marks, start) = self.resume(from_offset)?;
        let mut scanner = Scanner::checked(&*file, start.position, self.size());
        let mut next = start.offset;
        let torn = loop {
            let position = scanner.position;
            match scanner.step().map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
                Found::Batch(header) if self.fits(&header, Some(next)) => {
                    marks.note(&header, position, self.base_offset, self.settings.index_interval);
                    next = header.last_offset() + 1;
                    visit(&header, self.end_txn_at(&*file, &header, position)?);
                }
                Found::Batch(header) => {
                    scanner.position = position;
                    break Some(format!("offset {} at byte {position}", header.base_offset));
                }
                Found::Bad(bad) => break Some(format!("{bad} (byte {position})")),
                Found::End => break None,
            }
        };
        let position = scanner.position;
        if torn.is_none() || next >= durable_offset {
            // The bad bytes are no longer part of the segment; the caller decides whether the file is cut.
            self.size.store(position, Ordering::Release);
            self.trusted_from.store(start.position, Ordering::Release);
            // A segment that nobody appends to is looked at by its index alone, as one that was retired.
            marks.note_last(self.base_offset);
            self.overwrite_indexes(marks)?;
            self.find_first_timestamp()?;
        }
        drop(io);
        Ok(Scanned { next_offset: next, position, torn })
    }

    /// Cuts the file to the good batches that [`Segment::recover`] found, on the device too: bytes that come back
    /// after a loss of power could look like batches behind newer ones.
    pub fn cut(&self) -> Result<()> {
        self.undo_append()?;
        self.sync(false)
    }

    /// Forgets cached pages, so that recovery sees what the device holds.
    pub fn drop_cache(&self) -> Result<()> {
        let file = self.file()?;
        let len = file.drop_cache().and_then(|()| file.len());
        let len = len.map_err(|cause| self.failed("sync", names::LOG_SUFFIX, cause))?;
        self.size.store(len, Ordering::Release);
        Ok(())
    }

    /// What the indexes say about the batches before `from_offset`, and where to walk from.
    fn resume(&self, from_offset: i64) -> Result<(Marks, Bound)> {
        let first_timestamp = self.marks.lock().first_timestamp;
        let fresh = || Marks { first_timestamp, ..Marks::empty(-1) };
        let front = Bound { position: 0, offset: self.base_offset };
        let (Some(mut offsets), Some(mut times)) = (
            self.growing::<OffsetEntry>(names::INDEX_SUFFIX)?,
            self.growing::<TimeEntry>(names::TIME_INDEX_SUFFIX)?,
        ) else {
            return Ok((fresh(), front));
        };
        let limit = i32::try_from(from_offset - self.base_offset).unwrap_or(i32::MAX);
        offsets.retain(|entry| entry.relative < limit && entry.position > 0);
        let file = self.file()?;
        let Some(last) = offsets.last().copied() else { return Ok((fresh(), front)) };
        times.retain(|entry| entry.relative <= last.relative);
        let Some(last_time) = times.last().copied() else { return Ok((fresh(), front)) };
        let Some(header) = self.batch_of(&*file, last)? else { return Ok((fresh(), front)) };
        let mut marks = fresh();
        offsets.into_iter().for_each(|entry| marks.offsets.push(entry));
        times.into_iter().for_each(|entry| marks.times.push(entry));
        marks.max_timestamp = last_time.timestamp;
        marks.max_timestamp_offset = self.base_offset + i64::from(last_time.relative);
        Ok((marks, Bound { position: last.position as u64, offset: header.base_offset }))
    }

    /// The entries of an index file up to the first that does not grow; `None` when the file is missing.
    fn growing<E: IndexEntry>(&self, suffix: &'static str) -> Result<Option<Vec<E>>> {
        let path = self.path_of(suffix);
        match self.pool.disk.open(&path, OpenMode::Read) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => {
                // No segment has more entries than one for each byte it may index.
                let limit = (self.size() / self.settings.index_interval.max(1) + 1) as usize;
                let entries = opened.and_then(|file| read_growing(&*file, limit.min(1 << 24)));
                entries.map(Some).map_err(|cause| self.failed("read", suffix, cause))
            }
        }
    }

    /// Whether a batch may stand where offset `next` is due; `None`: anywhere in the segment.
    pub(super) fn fits(&self, header: &BatchHeader, next: Option<i64>) -> bool {
        let continues = match next {
            Some(next) if !self.has_gaps() => header.base_offset == next,
            next => header.base_offset >= next.unwrap_or(self.base_offset),
        };
        continues && header.last_offset() - self.base_offset <= i64::from(i32::MAX)
    }

    /// The offset that is due at the start of a walk from `position`; `None` when only the batch itself knows.
    pub(super) fn expected_at(&self, position: u64) -> Option<i64> {
        (position == 0).then_some(self.base_offset)
    }
}
