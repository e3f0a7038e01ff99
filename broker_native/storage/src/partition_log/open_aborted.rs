//! The indexes of aborted transactions when a log is opened: taken over as they are where all was on the device, written
//! by recovery behind that, made anew from all batches when one cannot be right.
use super::opening::Opening;
use crate::error::Result;
use crate::names;
use crate::producers::Producers;
use crate::segment::{Bound, SegmentError};

impl Opening<'_> {
    /// Lets the segments know of the files that were found.
    pub fn adopt_aborted(&mut self) -> Result<()> {
        for segment in &self.segments {
            let found = self.with_aborted.contains(&segment.base_offset);
            let plausible = !found || segment.adopt_aborted().map_err(|error| error.of(self.at))?;
            if !plausible || self.has_other_aborted(segment)? {
                self.bad_aborted.push(segment.base_offset);
            }
        }
        Ok(())
    }

    /// When an index of a segment that is still there cannot be right: all of them anew, by walking all batches.
    /// Otherwise only an entry goes whose marker was never written.
    pub fn mend_aborted(&mut self) -> Result<()> {
        let wrong = |error: SegmentError| error.of(self.at);
        let there = |base: &i64| self.segments.iter().any(|segment| segment.base_offset == *base);
        if !self.bad_aborted.iter().any(there) {
            let Some(active) = self.segments.last() else { return Ok(()) };
            let mut aborted = active.aborted_txns().map_err(wrong)?;
            aborted.retain(|txn| txn.last_offset < self.next_offset);
            return active.replace_aborted(&aborted).map(drop).map_err(wrong);
        }
        let now_ms = self.shared.clock.now_ms();
        let mut producers = Producers::default();
        for segment in &self.segments {
            let mut aborted = Vec::new();
            let bound = Bound { position: segment.size(), offset: i64::MAX };
            let walked = segment.walk(self.log_start_offset, bound, |header, end| {
                aborted.extend(producers.note(header, end, now_ms).and_then(|ended| ended.aborted()));
            });
            walked.map_err(wrong)?;
            if segment.replace_aborted(&aborted).map_err(wrong)? {
                self.notes.push(format!(
                    "{} was not what the batches say and is made anew",
                    segment.path_of(names::TXN_INDEX_SUFFIX).display()
                ));
            }
        }
        self.unsynced_names = true;
        self.unsynced_from = self.segments.first().map_or(0, |s| s.base_offset).min(self.unsynced_from);
        Ok(())
    }
}
