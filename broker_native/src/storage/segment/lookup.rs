//! Reading a segment: where an offset is, where a run of whole batches ends, whether its bytes are what was written.
//!
//! An index entry is believed only when the batch it points to has the offset it names; otherwise the indexes are
//! rebuilt once. A batch that is not what its neighbours promise is [`SegmentError::Bad`].
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::marks::Marks;
use super::{Result, Segment, SegmentError};
use crate::record::header::BatchHeader;
use crate::storage::disk::DiskFile;
use crate::storage::index::{OffsetEntry, TimeEntry, search};
use crate::storage::names;
use crate::storage::scan::{Found, Scanner};

/// How far a reader may go in this segment: a batch boundary and the offset that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) struct Bound {
    pub position: u64,
    pub offset: i64,
}

/// A run of whole batches.
#[derive(Clone)]
pub(in crate::storage) struct Piece {
    pub file: Arc<dyn DiskFile>,
    pub position: u64,
    pub len: usize,
    /// One past the last offset of the run.
    pub next_offset: i64,
}

impl Segment {
    /// Up to `max_bytes` of whole batches before `bound`, from the one that holds `offset` (or the next one there is).
    /// `None` when there is none. `hint`: a position where a batch that may hold `offset` is known to begin.
    pub fn slice(
        &self,
        offset: i64,
        bound: Bound,
        max_bytes: usize,
        min_one_batch: bool,
        hint: Option<u64>,
    ) -> Result<Option<Piece>> {
        let file = self.file()?;
        let Some((position, first)) = self.find(&file, offset, bound, hint)? else { return Ok(None) };
        let left = bound.position - position;
        let end = if left <= max_bytes as u64 {
            bound
        } else if first.size() > max_bytes {
            let len = if min_one_batch { first.size() as u64 } else { 0 };
            Bound { position: position + len, offset: if len > 0 { first.last_offset() + 1 } else { offset } }
        } else {
            self.boundary(&*file, Bound { position, offset }, position + max_bytes as u64, bound)?
        };
        let end = self.check(&*file, Bound { position, offset: first.base_offset }, end)?;
        let len = (end.position - position) as usize;
        Ok(Some(Piece { file, position, len, next_offset: end.offset }))
    }

    /// Position and header of the first batch before `bound` whose last offset is `offset` or more.
    pub fn find(
        &self,
        file: &Arc<dyn DiskFile>,
        offset: i64,
        bound: Bound,
        hint: Option<u64>,
    ) -> Result<Option<(u64, BatchHeader)>> {
        if let Some(found) =
            hint.map(|position| self.at_hint(file, offset, position, bound)).transpose()?.flatten()
        {
            return Ok(Some(found));
        }
        self.load()?;
        let start = match self.entry_before(offset)? {
            Some(entry) if self.is_true(&**file, entry)? => entry.position as u64,
            Some(_) => {
                self.rebuild()?;
                let entry = self.entry_before(offset)?;
                entry.map_or(0, |entry| entry.position as u64)
            }
            None => 0,
        };
        let mut scanner = Scanner::headers(&**file, start, bound.position);
        let mut next = self.base_offset;
        loop {
            let position = scanner.position;
            match self.step(&mut scanner, next)? {
                Some(header) if header.last_offset() >= offset => return Ok(Some((position, header))),
                Some(header) => next = header.last_offset() + 1,
                None => return Ok(None),
            }
        }
    }

    /// Shows `visit` the batches before `bound`, from the one that holds `offset` on.
    pub fn walk(&self, offset: i64, bound: Bound, mut visit: impl FnMut(&BatchHeader)) -> Result<()> {
        let file = self.file()?;
        let Some((position, first)) = self.find(&file, offset, bound, None)? else { return Ok(()) };
        let mut scanner = Scanner::headers(&*file, position, bound.position);
        let mut next = first.base_offset;
        while let Some(header) = self.step(&mut scanner, next)? {
            next = header.last_offset() + 1;
            visit(&header);
        }
        Ok(())
    }

    fn at_hint(
        &self,
        file: &Arc<dyn DiskFile>,
        offset: i64,
        position: u64,
        bound: Bound,
    ) -> Result<Option<(u64, BatchHeader)>> {
        if position >= bound.position {
            return Ok(None);
        }
        let header = self.step(&mut Scanner::headers(&**file, position, bound.position), self.base_offset)?;
        Ok(header.filter(|h| h.base_offset <= offset && offset <= h.last_offset()).map(|h| (position, h)))
    }

    /// The next batch of a walk, whose offsets must be `next` or more.
    pub(super) fn step(&self, scanner: &mut Scanner<'_>, next: i64) -> Result<Option<BatchHeader>> {
        let position = scanner.position;
        match scanner.step().map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
            Found::Batch(header) if header.base_offset < next => {
                Err(self.bad(next, format!("offset {} at byte {position}", header.base_offset)))
            }
            Found::Batch(header) => Ok(Some(header)),
            Found::Bad(bad) => Err(self.bad(next, format!("{bad} (byte {position})"))),
            Found::End => Ok(None),
        }
    }

    /// The index entry to start from for `offset`.
    fn entry_before(&self, offset: i64) -> Result<Option<OffsetEntry>> {
        let relative = i32::try_from(offset - self.base_offset).unwrap_or(i32::MAX);
        self.offset_entry(|entry| entry.relative <= relative)
    }

    /// The last offset entry that satisfies `wanted`, which holds for a prefix.
    fn offset_entry(&self, wanted: impl Fn(&OffsetEntry) -> bool) -> Result<Option<OffsetEntry>> {
        let stored = {
            let marks = self.marks.lock();
            if let Some(entry) = marks.offsets.search_pending(&wanted) {
                return Ok(Some(entry));
            }
            marks.offsets.stored()
        };
        if stored == 0 {
            return Ok(None);
        }
        let found = search(&*self.index_file()?, stored, &wanted);
        self.or_rebuilt(found, |marks| marks.offsets.search_pending(&wanted))
    }

    /// The last time entry with a timestamp below `timestamp_ms`: all before it is older, too.
    pub fn time_entry_before(&self, timestamp_ms: i64) -> Result<Option<TimeEntry>> {
        self.load()?;
        let wanted = |entry: &TimeEntry| entry.timestamp < timestamp_ms;
        let stored = {
            let marks = self.marks.lock();
            if let Some(entry) = marks.times.search_pending(wanted) {
                return Ok(Some(entry));
            }
            marks.times.stored()
        };
        if stored == 0 {
            return Ok(None);
        }
        let found = search(&*self.time_index_file()?, stored, wanted);
        self.or_rebuilt(found, |marks| marks.times.search_pending(wanted))
    }

    /// What a search of an index file gave; a file that became shorter than it was is rebuilt, without an entry.
    fn or_rebuilt<E>(
        &self,
        found: std::io::Result<Option<E>>,
        pending: impl Fn(&Marks) -> Option<E>,
    ) -> Result<Option<E>> {
        match found {
            Err(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.rebuild()?;
                Ok(pending(&self.marks.lock()))
            }
            other => other.map_err(|cause| self.failed("read", names::INDEX_SUFFIX, cause)),
        }
    }

    /// Whether a batch with the entry's last offset begins at the entry's position.
    pub(super) fn is_true(&self, file: &dyn DiskFile, entry: OffsetEntry) -> Result<bool> {
        let Ok(position) = u64::try_from(entry.position) else { return Ok(false) };
        let found = Scanner::headers(file, position, self.size()).step();
        let found = found.map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))?;
        let last_offset = self.base_offset + i64::from(entry.relative);
        Ok(matches!(found, Found::Batch(header) if header.last_offset() == last_offset))
    }

    /// Whether the newest entries of both indexes are true.
    pub(super) fn agree_with_log(&self, index: &dyn DiskFile, marks: &Marks) -> Result<bool> {
        let file = self.file()?;
        if let Some(last) = marks.offsets.last() {
            if !self.is_true(&*file, last)? {
                return Ok(false);
            }
        }
        let Some(last) = marks.times.last() else { return Ok(true) };
        let near = search(index, marks.offsets.stored(), |e: &OffsetEntry| e.relative <= last.relative);
        let near = near.map_err(|cause| self.failed("read", names::INDEX_SUFFIX, cause))?;
        let start = near.map_or(0, |entry| entry.position.max(0) as u64);
        let last_offset = self.base_offset + i64::from(last.relative);
        let mut scanner = Scanner::headers(&*file, start, self.size());
        loop {
            match scanner.step().map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
                Found::Batch(header) if header.last_offset() < last_offset => {}
                Found::Batch(header) => {
                    return Ok(header.last_offset() == last_offset && header.max_timestamp == last.timestamp);
                }
                Found::Bad(_) | Found::End => return Ok(false),
            }
        }
    }

    /// The last batch boundary in `[from, limit]`, which lies before `bound`.
    fn boundary(&self, file: &dyn DiskFile, from: Bound, limit: u64, bound: Bound) -> Result<Bound> {
        self.load()?;
        let entry = self.offset_entry(|entry| entry.position as u64 <= limit)?;
        let start = match entry {
            Some(entry) if entry.position as u64 > from.position && self.is_true(file, entry)? => {
                entry.position as u64
            }
            _ => from.position,
        };
        let mut scanner = Scanner::headers(file, start, bound.position);
        // Without a batch behind `start` that fits, the run ends at `start`, whose offset that batch tells.
        let mut end = None;
        let mut next = self.base_offset;
        while let Some(header) = self.step(&mut scanner, next)? {
            if scanner.position > limit {
                return Ok(end.unwrap_or(Bound { position: start, offset: header.base_offset }));
            }
            next = header.last_offset() + 1;
            end = Some(Bound { position: scanner.position, offset: next });
        }
        Ok(end.unwrap_or(from))
    }

    /// Checks the CRCs of `[from, end)` as far as this process has not yet, and that offsets grow. Gives the end of
    /// what is good; an error when the first batch is not.
    fn check(&self, file: &dyn DiskFile, from: Bound, end: Bound) -> Result<Bound> {
        let trusted = self.trusted_from.load(Ordering::Acquire);
        let known = *self.checked.lock();
        if from.position >= trusted || (known.0 <= from.position && end.position.min(trusted) <= known.1) {
            return Ok(end);
        }
        let mut scanner = Scanner::checked(file, from.position, end.position);
        let mut next = from.offset;
        let mut good = end;
        loop {
            let position = scanner.position;
            match self.step(&mut scanner, next) {
                Ok(Some(header)) => next = header.last_offset() + 1,
                Ok(None) => break,
                Err(SegmentError::Bad { .. }) if position > from.position => {
                    good = Bound { position, offset: next };
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let mut known = self.checked.lock();
        let touches = known.0 <= from.position && from.position <= known.1;
        *known = if touches { (known.0, known.1.max(good.position)) } else { (from.position, good.position) };
        Ok(good)
    }
}
