//! Reading a segment: where an offset is, where a run of whole batches ends, whether its bytes are what was written.
//!
//! An index entry is believed only when the batch it points to has the offset it names; otherwise the indexes are
//! rebuilt once. A batch that is not what its neighbours promise is [`SegmentError::Bad`].
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::bound::{BatchRun, Bound};
use super::marks::Marks;
use super::{Checked, Result, Segment, SegmentError};
use crate::disk::DiskFile;
use crate::index::{OffsetEntry, TimeEntry, search};
use crate::names;
use crate::scan::{Found, Scanner, marker_at};
use pylog_record::control::EndTxn;
use pylog_record::header::BatchHeader;

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
    ) -> Result<Option<BatchRun>> {
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
        Ok(Some(BatchRun { file, position, len, next_offset: end.offset }))
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
        let start = self.start_before(&**file, offset)?;
        let mut scanner = Scanner::headers(&**file, start, bound.position);
        let mut next = self.expected_at(start);
        loop {
            let position = scanner.position;
            match self.step(&mut scanner, next)? {
                Some(header) if header.last_offset() >= offset => return Ok(Some((position, header))),
                Some(header) => next = Some(header.last_offset() + 1),
                None => return Ok(None),
            }
        }
    }

    /// Where a batch begins that does not end behind `offset`: the nearest that the index knows, or the first of all.
    fn start_before(&self, file: &dyn DiskFile, offset: i64) -> Result<u64> {
        self.load()?;
        match self.entry_before(offset)? {
            Some(entry) if self.batch_of(file, entry)?.is_some() => Ok(entry.position as u64),
            Some(_) => {
                self.rebuild()?;
                Ok(self.entry_before(offset)?.map_or(0, |entry| entry.position as u64))
            }
            None => Ok(0),
        }
    }

    /// The last place before `bound` where a batch ends that lies wholly before `offset`; the segment's begin without
    /// one.
    pub fn end_before(&self, offset: i64, bound: Bound) -> Result<Bound> {
        let file = self.file()?;
        let start = self.start_before(&*file, offset - 1)?;
        let mut scanner = Scanner::headers(&*file, start, bound.position);
        let mut end = Bound { position: 0, offset: self.base_offset };
        let mut next = self.expected_at(start);
        while let Some(header) = self.step(&mut scanner, next)? {
            if header.last_offset() >= offset {
                break;
            }
            end = Bound { position: scanner.position, offset: header.last_offset() + 1 };
            next = Some(end.offset);
        }
        Ok(end)
    }

    /// Shows `visit` the batches before `bound`, from the one that holds `offset` on, and what markers say.
    pub fn walk(
        &self,
        offset: i64,
        bound: Bound,
        mut visit: impl FnMut(&BatchHeader, Option<EndTxn>),
    ) -> Result<()> {
        let file = self.file()?;
        let Some((position, first)) = self.find(&file, offset, bound, None)? else { return Ok(()) };
        let mut scanner = Scanner::headers(&*file, position, bound.position);
        let mut next = Some(first.base_offset);
        loop {
            let position = scanner.position;
            let Some(header) = self.step(&mut scanner, next)? else { return Ok(()) };
            next = Some(header.last_offset() + 1);
            visit(&header, self.end_txn_at(&*file, &header, position)?);
        }
    }

    /// What the batch at `position` says when it is a transaction marker.
    pub(super) fn end_txn_at(
        &self,
        file: &dyn DiskFile,
        header: &BatchHeader,
        position: u64,
    ) -> Result<Option<EndTxn>> {
        marker_at(file, header, position).map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))
    }

    /// Whether the segment may hold nothing from `offset` to the offset of `bound`.
    pub fn may_end_before(&self, offset: i64, bound: Bound) -> bool {
        self.has_gaps() || offset >= bound.offset
    }

    /// The error of a segment that ends before `offset`.
    pub fn missing(&self, offset: i64, bound: Bound) -> SegmentError {
        self.bad(offset, format!("the file ends here, records up to {} are missing", bound.offset))
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
        let header = self.step(&mut Scanner::headers(&**file, position, bound.position), Some(offset))?;
        Ok(header.map(|header| (position, header)))
    }

    /// The next batch of a walk, which must begin where `next` says, see [`Segment::fits`].
    pub(super) fn step(&self, scanner: &mut Scanner<'_>, next: Option<i64>) -> Result<Option<BatchHeader>> {
        let position = scanner.position;
        let expected = next.unwrap_or(self.base_offset);
        match scanner.step().map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))? {
            Found::Batch(header) if self.fits(&header, next) => Ok(Some(header)),
            Found::Batch(header) => {
                let reason = format!("offset {} stands at byte {position}", header.base_offset);
                Err(self.bad(expected, reason))
            }
            Found::Bad(bad) => Err(self.bad(expected, format!("{bad} (byte {position})"))),
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

    /// The header of the batch that the entry points to; `None` when the entry is not true.
    pub(super) fn batch_of(&self, file: &dyn DiskFile, entry: OffsetEntry) -> Result<Option<BatchHeader>> {
        let Ok(position) = u64::try_from(entry.position) else { return Ok(None) };
        let found = Scanner::headers(file, position, self.size()).step();
        let found = found.map_err(|cause| self.failed("read", names::LOG_SUFFIX, cause))?;
        let last_offset = self.base_offset + i64::from(entry.relative);
        match found {
            Found::Batch(header) if header.last_offset() == last_offset => Ok(Some(header)),
            _ => Ok(None),
        }
    }

    /// Whether the newest entries of both indexes are true.
    pub(super) fn agree_with_log(&self, index: &dyn DiskFile, marks: &Marks) -> Result<bool> {
        let file = self.file()?;
        if let Some(last) = marks.offsets.last()
            && self.batch_of(&*file, last)?.is_none()
        {
            return Ok(false);
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
            Some(entry) if entry.position as u64 > from.position && self.batch_of(file, entry)?.is_some() => {
                entry.position as u64
            }
            _ => from.position,
        };
        let mut scanner = Scanner::headers(file, start, bound.position);
        // Without a batch behind `start` that fits, the run ends at `start`, whose offset that batch shows.
        let mut end: Option<Bound> = None;
        while let Some(header) = self.step(&mut scanner, end.map(|end| end.offset))? {
            if scanner.position > limit {
                return Ok(end.unwrap_or(Bound { position: start, offset: header.base_offset }));
            }
            end = Some(Bound { position: scanner.position, offset: header.last_offset() + 1 });
        }
        Ok(end.unwrap_or(from))
    }

    /// Checks the CRCs of `[from, end)` as far as this process has not yet, and that offsets grow. Gives the end of
    /// what is good; an error when the first batch is not.
    fn check(&self, file: &dyn DiskFile, from: Bound, end: Bound) -> Result<Bound> {
        let trusted = self.trusted_from.load(Ordering::Acquire);
        if from.position >= trusted {
            return Ok(end);
        }
        let known = *self.checked.lock();
        if known.start <= from.position && end.position <= known.end.position {
            return Ok(if end.position == known.end.position { known.end } else { end });
        }
        let mut scanner = Scanner::checked(file, from.position, end.position);
        let mut next = from.offset;
        let good = loop {
            let position = scanner.position;
            match self.step(&mut scanner, Some(next)) {
                Ok(Some(header)) => next = header.last_offset() + 1,
                // A segment that was cut ends early; a reader that goes on notices what is missing.
                Ok(None) => break Bound { position, offset: next },
                Err(SegmentError::Bad { .. }) if position > from.position => {
                    break Bound { position, offset: next };
                }
                Err(error) => return Err(error),
            }
        };
        let mut known = self.checked.lock();
        if !(known.start..=known.end.position).contains(&from.position) {
            *known = Checked { start: from.position, end: good };
        } else if known.end.position < good.position {
            known.end = good;
        }
        Ok(good)
    }
}
