//! From batch to batch to the end of a log: where it ends, which transactions are open there, which were aborted on the way.
//!
//! Up to the recovery point headers are enough. Behind it each checksum is looked at, and the first batch that is not whole is
//! where the log ends, as its broker would cut it; a reader that skips damage goes on behind it.
use std::sync::Arc;

use super::damage::Damage;
use super::error::{DirectoryError, Result};
use super::fits::Neighbours;
use super::resume::next_batch;
use super::segments::SegmentFiles;
use crate::disk::DiskFile;
use crate::error::TopicPartition;
use crate::producers::Producers;
use crate::scan::{Found, Scanner, marker_at};
use crate::types::AbortedTxn;
use pylog_record::header::BatchHeader;

/// From where a walk begins, and what is known there.
pub(super) struct From {
    /// The offset up to which `producers` know the log.
    pub offset: i64,
    /// Producers with their open transactions.
    pub producers: Producers,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// One past the last offset.
    pub end: i64,
    /// First offset of the oldest transaction that is open at the end.
    pub first_open: Option<i64>,
    /// The transactions that were aborted behind where the walk began.
    pub aborted: Vec<AbortedTxn>,
    /// What lies behind the recovery point and is no batch.
    pub damage: Vec<Damage>,
}

pub(super) struct Walk<'a> {
    at: &'a TopicPartition,
    segments: &'a [SegmentFiles],
    /// Before it everything was on the device.
    trusted_end: i64,
    skip_damaged: bool,
    known_to: i64,
    producers: Producers,
    /// One past the last batch so far.
    expected: i64,
    /// Whether the walk begins in the middle of a file, and no batch counted yet.
    in_the_middle: bool,
    was_compacted: bool,
    /// Whether the log ends here although more bytes follow.
    cut: bool,
    walked: Walked,
}

impl<'a> Walk<'a> {
    pub fn new(
        at: &'a TopicPartition,
        segments: &'a [SegmentFiles],
        trusted_end: i64,
        skip_damaged: bool,
        was_compacted: bool,
    ) -> Self {
        Self {
            at,
            segments,
            trusted_end,
            skip_damaged,
            known_to: 0,
            producers: Producers::default(),
            expected: 0,
            in_the_middle: false,
            was_compacted,
            cut: false,
            walked: Walked::default(),
        }
    }

    /// Walks from what is known to the end.
    pub fn run(mut self, from: From) -> Result<Walked> {
        let Some(last) = self.segments.last() else { return Ok(self.walked) };
        let first = self.segments.partition_point(|s| s.base_offset <= from.offset).saturating_sub(1);
        (self.known_to, self.producers) = (from.offset, from.producers);
        self.expected = self.segments.get(first).map_or(0, |segment| segment.base_offset);
        for (i, segment) in self.segments.iter().enumerate().skip(first) {
            let file = segment.open()?;
            let len = file.len().map_err(|cause| segment.failed(&cause))?;
            let start = if i == first { segment.start_near(&*file, from.offset) } else { 0 };
            self.in_the_middle = start > 0;
            self.expected = self.expected.max(segment.base_offset);
            let mut next = Some(start);
            while let Some(position) = next {
                next = self.stretch(segment, &file, position..len)?;
            }
            if self.cut {
                break;
            }
        }
        self.walked.end = if self.cut { self.expected } else { self.expected.max(last.base_offset) };
        self.walked.first_open = self.producers.first_open_offset();
        Ok(self.walked)
    }

    /// Walks batches of one file; where to go on in it.
    fn stretch(
        &mut self,
        segment: &SegmentFiles,
        file: &Arc<dyn DiskFile>,
        place: std::ops::Range<u64>,
    ) -> Result<Option<u64>> {
        let checked = self.expected >= self.trusted_end;
        let mut scanner = match checked {
            true => Scanner::checked(&**file, place.start, place.end),
            false => Scanner::headers(&**file, place.start, place.end),
        };
        loop {
            let here = scanner.position;
            let reason = match scanner.step().map_err(|cause| segment.failed(&cause))? {
                Found::End => return Ok(None),
                Found::Bad(bad) => bad.to_string(),
                Found::Batch(header)
                    if self.follows(&header, segment, &**file, scanner.position..place.end)? =>
                {
                    self.note(segment, &**file, &header, here)?;
                    if !checked && self.expected >= self.trusted_end {
                        return Ok(Some(scanner.position));
                    }
                    continue;
                }
                Found::Batch(header) => format!("offset {} stands there", header.base_offset),
            };
            let found = next_batch(&**file, here, place.end, self.expected);
            let found = found.map_err(|cause| segment.failed(&cause))?;
            if checked {
                self.damaged(segment, here..found.map_or(place.end, |(next, _)| next), found, reason);
            }
            self.cut = checked && !self.skip_damaged;
            let found = found.filter(|_| !self.cut);
            self.expected = found.map_or(self.expected, |(_, header)| header.base_offset);
            return Ok(found.map(|(next, _)| next));
        }
    }

    fn follows(
        &self,
        header: &BatchHeader,
        segment: &SegmentFiles,
        file: &dyn DiskFile,
        behind: std::ops::Range<u64>,
    ) -> Result<bool> {
        let next = self.segments.iter().find(|other| other.base_offset > segment.base_offset);
        let neighbours = Neighbours {
            within: segment.base_offset..next.map_or(i64::MAX, |next| next.base_offset),
            expected: (!self.in_the_middle).then_some(self.expected),
            was_compacted: self.was_compacted,
        };
        neighbours.fit(header, file, behind.start, behind.end).map_err(|cause| segment.failed(&cause))
    }

    fn note(
        &mut self,
        segment: &SegmentFiles,
        file: &dyn DiskFile,
        header: &BatchHeader,
        position: u64,
    ) -> Result<(), DirectoryError> {
        self.in_the_middle = false;
        self.expected = header.last_offset() + 1;
        if header.last_offset() >= self.known_to {
            let end = marker_at(file, header, position).map_err(|cause| segment.failed(&cause))?;
            let ended = self.producers.note(header, end, 0);
            self.walked.aborted.extend(ended.and_then(|ended| ended.aborted()));
        }
        Ok(())
    }

    fn damaged(
        &mut self,
        segment: &SegmentFiles,
        bytes: std::ops::Range<u64>,
        next: Option<(u64, BatchHeader)>,
        reason: String,
    ) {
        let behind = self.segments.iter().filter(|other| other.base_offset > segment.base_offset).count();
        let more = match (self.skip_damaged, behind) {
            (true, _) | (false, 0) => String::new(),
            (false, behind) => format!("; {behind} later files are not read either"),
        };
        self.walked.damage.push(Damage {
            at: self.at.clone(),
            file: segment.log(),
            position: bytes.start,
            bytes: bytes.end - bytes.start,
            offset: self.expected,
            next_offset: next.map(|(_, header)| header.base_offset),
            reason: reason + &more,
        });
    }
}
