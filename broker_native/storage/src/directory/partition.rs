//! One partition of a data directory.
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::damage::Damage;
use super::error::{DirectoryError, Result};
use super::resume::next_batch;
use super::segments::{SegmentFiles, segments_in};
use super::walk::{From, Walk, Walked};
use crate::disk::{Disk, DiskFile, OpenMode, RealDisk};
use crate::error::TopicPartition;
use crate::files::read_bytes;
use crate::first_record::first_record;
use crate::names;
use crate::producers::Producers;
use crate::scan::{Found, Scanner};
use crate::segment::read_aborted;
use crate::types::AbortedTxn;
use pylog_record::header::BatchError;

/// How often the files are listed again while a broker renames and removes them: each time it was quicker than this reader, which may be
/// held up for long on a busy machine.
pub(super) const LOOKS: usize = 100;

/// What the checkpoints and the caller say of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub log_start: i64,
    pub recovery_point: Option<i64>,
    pub was_compacted: bool,
    pub skip_damaged: bool,
}

/// Where a log begins and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// First offset that may be read.
    pub log_start_offset: i64,
    /// One past the last record that `read_committed` consumers see.
    pub last_stable_offset: i64,
    /// One past the last record.
    pub log_end_offset: i64,
    /// What lies at the end and is not read.
    pub damage: Vec<Damage>,
}

/// The files of one partition. Cheap to make; what was found out is kept.
#[derive(Debug)]
pub struct PartitionFiles {
    at: TopicPartition,
    dir: PathBuf,
    said: Said,
    segments: Mutex<Arc<Vec<SegmentFiles>>>,
    walked: Mutex<Option<Arc<Walked>>>,
}

impl PartitionFiles {
    pub(super) fn open(at: TopicPartition, dir: PathBuf, said: Said) -> Result<Self> {
        let segments = Mutex::new(Arc::new(look(&dir)?));
        Ok(Self { at, dir, said, segments, walked: Mutex::default() })
    }

    /// Which partition.
    pub fn at(&self) -> &TopicPartition {
        &self.at
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Of each segment the first offset and the bytes of its batches.
    ///
    /// # Errors
    /// [`DirectoryError::File`].
    pub fn sizes(&self) -> Result<Vec<(i64, u64)>> {
        self.looking(|| {
            self.segments().iter().map(|segment| Ok((segment.base_offset, segment.bytes()?))).collect()
        })
    }

    /// Where the log begins and ends.
    ///
    /// # Errors
    /// [`DirectoryError::File`].
    pub fn bounds(&self) -> Result<Bounds> {
        let walked = self.walked()?;
        let mut damage = walked.damage.clone();
        damage.extend(self.missing_end(walked.end));
        Ok(Bounds {
            log_start_offset: self.log_start().min(walked.end),
            last_stable_offset: walked.first_open.map_or(walked.end, |first| first.min(walked.end)),
            log_end_offset: walked.end,
            damage,
        })
    }

    /// The transactions with records in `offsets` that were aborted.
    ///
    /// # Errors
    /// [`DirectoryError::File`].
    pub fn aborted(&self, offsets: &Range<i64>) -> Result<Vec<AbortedTxn>> {
        let segments = self.segments();
        let first = segments.partition_point(|s| s.base_offset <= offsets.start).saturating_sub(1);
        let mut found = Vec::new();
        for segment in segments.iter().skip(first) {
            match self.stored_aborted(segment)? {
                Some(stored) => found.extend(stored),
                // An index that makes no sense: the batches say it, too.
                None => {
                    let all = From { offset: 0, producers: Producers::default() };
                    found = self.walk(all)?.aborted;
                    break;
                }
            }
        }
        found.extend(self.walked()?.aborted.iter().copied());
        found.retain(|txn| txn.last_offset >= offsets.start && txn.first_offset < offsets.end);
        Ok(found)
    }

    /// Offset and timestamp of the first record with a timestamp of `timestamp_ms` or later.
    ///
    /// # Errors
    /// [`DirectoryError::Damaged`] when bytes that are no batch may have had an earlier one, unless damage is skipped;
    /// [`DirectoryError::File`].
    pub fn first_at(&self, timestamp_ms: i64) -> Result<Option<(i64, i64)>> {
        self.looking(|| self.first_at_once(timestamp_ms))
    }

    fn first_at_once(&self, timestamp_ms: i64) -> Result<Option<(i64, i64)>> {
        let (segments, log_start) = (self.segments(), self.log_start());
        let first = segments.partition_point(|s| s.base_offset <= log_start).saturating_sub(1);
        for (i, segment) in segments.iter().enumerate().skip(first) {
            let is_last = i + 1 == segments.len();
            if !is_last && segment.is_before(timestamp_ms) {
                continue;
            }
            if let Some(found) = self.first_in(segment, timestamp_ms, log_start)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record of a segment from `from_offset` on that is not older than a time.
    fn first_in(
        &self,
        segment: &SegmentFiles,
        timestamp_ms: i64,
        from_offset: i64,
    ) -> Result<Option<(i64, i64)>> {
        let file = segment.open()?;
        let failed = |cause: std::io::Error| segment.failed(&cause);
        let len = file.len().map_err(failed)?;
        let (mut scanner, mut next) = (Scanner::headers(&*file, 0, len), segment.base_offset);
        loop {
            let position = scanner.position;
            let header = match scanner.step().map_err(failed)? {
                Found::Batch(header) => header,
                Found::End => return Ok(None),
                Found::Bad(bad) => match self.pass_damage(segment, &*file, position..len, next, &bad)? {
                    Some(next) => {
                        scanner.position = next;
                        continue;
                    }
                    None => return Ok(None),
                },
            };
            next = header.last_offset().saturating_add(1);
            let passed = header.max_timestamp < timestamp_ms || header.last_offset() < from_offset;
            if passed || header.is_control() {
                continue;
            }
            let mut batch = vec![0; header.size()];
            file.read_exact_at(&mut batch, position).map_err(failed)?;
            if let Some(found) = first_record(&header, &batch, timestamp_ms, from_offset) {
                return Ok(Some(found));
            }
        }
    }

    /// Where a search goes on behind bytes that are no batch; `None` where the log ends with them.
    fn pass_damage(
        &self,
        segment: &SegmentFiles,
        file: &dyn DiskFile,
        bytes: Range<u64>,
        offset: i64,
        bad: &BatchError,
    ) -> Result<Option<u64>> {
        if !self.said.skip_damaged && offset >= self.trusted_end() {
            return Ok(None);
        }
        let found =
            next_batch(file, bytes.start, bytes.end, offset).map_err(|cause| segment.failed(&cause))?;
        if self.said.skip_damaged {
            return Ok(found.map(|(position, _)| position));
        }
        Err(DirectoryError::Damaged(Box::new(Damage {
            at: self.at.clone(),
            file: segment.log(),
            position: bytes.start,
            bytes: found.map_or(bytes.end, |(position, _)| position) - bytes.start,
            offset,
            next_offset: found.map(|(_, header)| header.base_offset),
            reason: bad.to_string(),
        })))
    }

    /// The segments, as they were listed last.
    pub(super) fn segments(&self) -> Arc<Vec<SegmentFiles>> {
        Arc::clone(&self.segments.lock())
    }

    /// Lists the segments again.
    pub(super) fn look_again(&self) -> Result<Arc<Vec<SegmentFiles>>> {
        let segments = Arc::new(look(&self.dir)?);
        *self.segments.lock() = Arc::clone(&segments);
        Ok(segments)
    }

    pub(super) fn skips_damaged(&self) -> bool {
        self.said.skip_damaged
    }

    pub(super) fn was_compacted(&self) -> bool {
        self.said.was_compacted
    }

    /// First offset that may be read.
    pub(super) fn log_start(&self) -> i64 {
        let first = self.segments().first().map_or(0, |segment| segment.base_offset);
        self.said.log_start.max(first)
    }

    /// Up to where everything was on the device; without a recovery point all but the last segment, which brokers sync when they begin
    /// the next one.
    pub(super) fn trusted_end(&self) -> i64 {
        let last = || self.segments().last().map_or(0, |segment| segment.base_offset);
        self.said.recovery_point.unwrap_or_else(last)
    }

    fn walked(&self) -> Result<Arc<Walked>> {
        let mut kept = self.walked.lock();
        if let Some(walked) = &*kept {
            return Ok(Arc::clone(walked));
        }
        let walked = Arc::new(self.walk_from_snapshot()?);
        *kept = Some(Arc::clone(&walked));
        Ok(walked)
    }

    fn walk_from_snapshot(&self) -> Result<Walked> {
        self.looking(|| self.walk(self.snapshot()?))
    }

    /// Asks again when a file was renamed or removed meanwhile.
    fn looking<T>(&self, question: impl Fn() -> Result<T>) -> Result<T> {
        let mut look = 1;
        loop {
            match question() {
                Err(error) if error.is_missing_file() && look < LOOKS => drop(self.look_again()?),
                answer => return answer,
            }
            look += 1;
        }
    }

    fn walk(&self, from: From) -> Result<Walked> {
        let segments = self.segments();
        let Said { skip_damaged, was_compacted, .. } = self.said;
        let walk = Walk::new(&self.at, &segments, self.trusted_end(), skip_damaged, was_compacted);
        let walked = walk.run(from)?;
        let end = walked.end.max(if segments.is_empty() { self.said.log_start } else { 0 });
        Ok(Walked { end, ..walked })
    }

    /// The newest snapshot of producers before the recovery point; the log's begin without one.
    fn snapshot(&self) -> Result<From> {
        let listed =
            RealDisk.list(&self.dir).map_err(|cause| DirectoryError::io("list", &self.dir, &cause))?;
        let named = listed.iter().filter_map(|entry| names::parse_segment_file(&entry.name));
        let mut offsets: Vec<i64> =
            named.filter(|(_, suffix)| *suffix == names::SNAPSHOT_SUFFIX).map(|(offset, _)| offset).collect();
        offsets.retain(|offset| *offset <= self.trusted_end());
        offsets.sort_unstable();
        for offset in offsets.into_iter().rev() {
            let path = names::segment_file(&self.dir, offset, names::SNAPSHOT_SUFFIX);
            let bytes = read_bytes(&RealDisk, &path).unwrap_or_default();
            if let Some(producers) = bytes.and_then(|bytes| Producers::from_snapshot(&bytes, 0)) {
                return Ok(From { offset, producers });
            }
        }
        Ok(From { offset: 0, producers: Producers::default() })
    }

    /// What the segment's `.txnindex` says; `None` when it makes no sense.
    fn stored_aborted(&self, segment: &SegmentFiles) -> Result<Option<Vec<AbortedTxn>>> {
        for path in segment.beside(names::TXN_INDEX_SUFFIX) {
            if let Ok(file) = RealDisk.open(&path, OpenMode::Read) {
                return read_aborted(&*file).map_err(|cause| DirectoryError::io("read", &path, &cause));
            }
        }
        Ok(Some(Vec::new()))
    }

    fn missing_end(&self, end: i64) -> Option<Damage> {
        let recovery_point = self.said.recovery_point.filter(|point| *point > end)?;
        Some(Damage {
            at: self.at.clone(),
            file: self.segments().last().map_or_else(|| self.dir.clone(), SegmentFiles::log),
            position: 0,
            bytes: 0,
            offset: end,
            next_offset: None,
            reason: format!(
                "the log ends here, and its broker had synced it up to offset {recovery_point}; was all of it copied?"
            ),
        })
    }
}

/// The segments; once more when a `.swap` was renamed meanwhile.
fn look(dir: &Path) -> Result<Vec<SegmentFiles>> {
    let mut look = 1;
    loop {
        match segments_in(dir) {
            Err(error) if error.is_missing_file() && look < LOOKS => look += 1,
            found => return found,
        }
    }
}
