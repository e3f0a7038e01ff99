//! Reading: from an offset to a run of whole batches in one file, never beyond what the reader may see.
use std::io::ErrorKind;

use super::PartitionLog;
use super::mark::{Mark, bound_of};
use super::read_hints::Hint;
use super::view::View;
use crate::error::{Result, StorageError};
use crate::segment::{BatchRun, Segment};
use crate::types::{LogSlice, ReadUpTo};

impl PartitionLog {
    /// Finds up to `max_bytes` of whole batches from the one that holds `offset` (its first records may lie before);
    /// with `min_one_batch` the first is given even when it is larger. Nothing behind `upto` is given: an empty slice
    /// says that there is nothing to read yet.
    ///
    /// No lock is held while files are read. Batches that this process has neither written nor checked are checked.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`]; [`StorageError::Corrupt`] when the batch is damaged;
    /// [`StorageError::Poisoned`] for records that a poisoned log would have to get first; [`StorageError::Io`].
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
        upto: ReadUpTo,
    ) -> Result<LogSlice> {
        self.look(|view| self.read_in(view, offset, max_bytes, min_one_batch, upto))
    }

    /// Does `what` with a look at the segments; again, when compaction removed a file of it meanwhile, or a
    /// truncation cut one.
    pub(super) fn look<T>(&self, what: impl Fn(&View) -> Result<T>) -> Result<T> {
        loop {
            let view = self.view.now();
            match what(&view) {
                Err(StorageError::Io { kind: ErrorKind::NotFound | ErrorKind::UnexpectedEof, .. })
                    if !self.view.has_segments_of(&view) => {}
                done => return done,
            }
        }
    }

    /// What [`PartitionLog::read`] finds in one look at the segments.
    fn read_in(
        &self,
        view: &View,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
        upto: ReadUpTo,
    ) -> Result<LogSlice> {
        if offset < view.log_start_offset || offset > view.end.offset {
            return Err(self.out_of_range(offset));
        }
        let limit = self.limit(view, offset, upto)?;
        if offset >= limit.offset {
            return match self.poisoned() {
                Some(error) => Err(error),
                None => self.nothing(view, offset),
            };
        }
        let first = view.segments.partition_point(|s| s.base_offset <= offset).saturating_sub(1);
        for (i, segment) in view.segments.iter().enumerate().skip(first) {
            if segment.base_offset > limit.segment {
                break;
            }
            let bound = bound_of(segment, limit, view.segments.get(i + 1));
            let hint = self.view.hint(offset, segment.id);
            match segment.slice(offset, bound, max_bytes, min_one_batch, hint) {
                Ok(Some(run)) => {
                    let mut slice = self.found(view, offset, segment, run);
                    if upto == ReadUpTo::LastStable {
                        slice.aborted = self.aborted_in(view, offset..slice.next_offset)?;
                    }
                    return Ok(slice);
                }
                Ok(None) if segment.may_end_before(offset, bound) => {}
                Ok(None) => return Err(segment.missing(offset, bound).of(&self.at)),
                // Retention was faster than this look at the segments.
                Err(error) if error.is_missing() && self.offsets().log_start_offset > offset => {
                    return Err(self.out_of_range(offset));
                }
                Err(error) => return Err(error.of(&self.at)),
            }
        }
        self.nothing(view, offset)
    }

    fn found(&self, view: &View, from: i64, segment: &Segment, run: BatchRun) -> LogSlice {
        let BatchRun { file, position, len, next_offset } = run;
        if len > 0 {
            let position = position + len as u64;
            let hint = Hint { offset: next_offset, segment_id: segment.id, position };
            self.view.note_read(from, hint);
        }
        let (offsets, aborted) = (view.offsets(), Vec::new());
        LogSlice { file, segment: segment.base_offset, position, len, next_offset, offsets, aborted }
    }

    fn nothing(&self, view: &View, offset: i64) -> Result<LogSlice> {
        let Some(active) = view.segments.last() else {
            return Err(StorageError::NotFound { at: self.at.clone() });
        };
        let file = active.file().map_err(|error| error.of(&self.at))?;
        let offsets = view.offsets();
        let (segment, aborted) = (active.base_offset, Vec::new());
        Ok(LogSlice { file, segment, position: 0, len: 0, next_offset: offset, offsets, aborted })
    }

    /// The batch boundary that a reader from `offset` on may not pass.
    fn limit(&self, view: &View, offset: i64, upto: ReadUpTo) -> Result<Mark> {
        let stable = view.offsets().last_stable_offset;
        match upto {
            ReadUpTo::LogEnd => Ok(view.end),
            // There is nothing to read; where the boundary lies need not be looked up.
            ReadUpTo::LastStable if offset >= stable => Ok(Mark { offset: stable, ..view.high_watermark }),
            ReadUpTo::LastStable if stable < view.high_watermark.offset => self.mark_of(view, stable),
            ReadUpTo::HighWatermark | ReadUpTo::LastStable => Ok(view.high_watermark),
        }
    }

    /// The boundary where the batch of `offset` begins.
    fn mark_of(&self, view: &View, offset: i64) -> Result<Mark> {
        let first = view.segments.partition_point(|s| s.base_offset <= offset).saturating_sub(1);
        for (i, segment) in view.segments.iter().enumerate().skip(first) {
            let bound = bound_of(segment, view.end, view.segments.get(i + 1));
            let found = segment.file().and_then(|file| segment.find(&file, offset, bound, None));
            if let Some((position, header)) = found.map_err(|error| error.of(&self.at))? {
                return Ok(Mark { offset: header.base_offset, segment: segment.base_offset, position });
            }
        }
        Ok(view.end)
    }
}
