//! Timestamp -> offset, to the record: the time index leads near, the batch's records say which.
use super::PartitionLog;
use super::mark::bound_of;
use super::view::View;
use crate::error::{Result, StorageError};
use crate::first_record::first_record;
use crate::names;
use crate::scan::{Found, Scanner};
use crate::segment::{Bound, Segment};

impl PartitionLog {
    /// Offset and timestamp of the first visible record with a timestamp of `timestamp_ms` or later; `None` when there
    /// is none.
    ///
    /// # Errors
    /// As [`PartitionLog::read`].
    pub fn offset_for_timestamp(&self, timestamp_ms: i64) -> Result<Option<(i64, i64)>> {
        self.look(|view| self.offset_for_timestamp_in(view, timestamp_ms))
    }

    fn offset_for_timestamp_in(&self, view: &View, timestamp_ms: i64) -> Result<Option<(i64, i64)>> {
        let first =
            view.segments.partition_point(|s| s.base_offset <= view.log_start_offset).saturating_sub(1);
        for (i, segment) in view.segments.iter().enumerate().skip(first) {
            let newest = segment.max_timestamp().map_err(|error| error.of(&self.at))?;
            if newest.is_none_or(|(newest, _)| newest < timestamp_ms) {
                continue;
            }
            let bound = bound_of(segment, view.high_watermark, view.segments.get(i + 1));
            if let Some(found) = self.first_in(segment, bound, timestamp_ms, view.log_start_offset)? {
                return Ok((found.0 < view.high_watermark.offset).then_some(found));
            }
        }
        Ok(None)
    }

    /// Offset and timestamp of the first visible record with the largest timestamp; `None` without any.
    ///
    /// # Errors
    /// As [`PartitionLog::read`].
    pub fn max_timestamp_offset(&self) -> Result<Option<(i64, i64)>> {
        self.look(|view| self.max_timestamp_offset_in(view))
    }

    fn max_timestamp_offset_in(&self, view: &View) -> Result<Option<(i64, i64)>> {
        let mut best: Option<(usize, i64)> = None;
        for (i, segment) in view.segments.iter().enumerate() {
            let newest = segment.max_timestamp().map_err(|error| error.of(&self.at))?;
            match newest {
                Some((newest, _)) if best.is_none_or(|(_, most)| newest > most) => best = Some((i, newest)),
                _ => {}
            }
        }
        let Some((i, timestamp_ms)) = best else { return Ok(None) };
        let Some(segment) = view.segments.get(i) else { return Ok(None) };
        let bound = bound_of(segment, view.high_watermark, view.segments.get(i + 1));
        let found = self.first_in(segment, bound, timestamp_ms, view.log_start_offset)?;
        Ok(found.filter(|(offset, _)| visible(view, *offset)))
    }

    /// The first record of `[from_offset, bound)` in `segment` with a timestamp of `timestamp_ms` or later.
    fn first_in(
        &self,
        segment: &Segment,
        bound: Bound,
        timestamp_ms: i64,
        from_offset: i64,
    ) -> Result<Option<(i64, i64)>> {
        let wrong = |error: crate::segment::SegmentError| error.of(&self.at);
        let near = segment.time_entry_before(timestamp_ms).map_err(wrong)?;
        let near = near.map_or(segment.base_offset, |e| segment.base_offset + i64::from(e.relative));
        let file = segment.file().map_err(wrong)?;
        let Some((position, _)) = segment.find(&file, near.max(from_offset), bound, None).map_err(wrong)?
        else {
            return Ok(None);
        };
        let read = |e: std::io::Error| StorageError::io("read", &segment.path_of(names::LOG_SUFFIX), &e);
        let mut scanner = Scanner::headers(&*file, position, bound.position);
        loop {
            let position = scanner.position;
            let header = match scanner.step().map_err(read)? {
                Found::Batch(header) => header,
                Found::End => return Ok(None),
                Found::Bad(bad) => {
                    return Err(StorageError::Corrupt {
                        at: self.at.clone(),
                        offset: near,
                        file: segment.path_of(names::LOG_SUFFIX),
                        reason: format!("{bad} (byte {position})"),
                    });
                }
            };
            if header.max_timestamp < timestamp_ms
                || header.last_offset() < from_offset
                || header.is_control()
            {
                continue;
            }
            let mut batch = vec![0; header.size()];
            file.read_exact_at(&mut batch, position).map_err(read)?;
            if let Some(found) = first_record(&header, &batch, timestamp_ms, from_offset) {
                return Ok(Some(found));
            }
        }
    }
}

fn visible(view: &View, offset: i64) -> bool {
    (view.log_start_offset..view.high_watermark.offset).contains(&offset)
}
