//! One cleaning of one log: which offset each key stands at last, then every segment written anew without what is out
//! of date, group by group.
//!
//! No lock is held meanwhile. What is cleaned is on the device before the first segment is replaced: an old record goes
//! only when the newer one survives a loss of power.
use std::sync::Arc;

use super::bounds::{CleanerConfig, Pace};
use super::filter::{Rules, Scratch, clean};
use super::offset_map::OffsetMap;
use super::select::{Candidate, Dirt, groups};
use super::stats::Stats;
use super::stream::{BatchStream, StreamError};
use super::transactions::Transactions;
use crate::error::{Result, StorageError};
use crate::names;
use crate::partition_log::PartitionLog;
use crate::segment::{Bound, Segment, SegmentError};
use crate::types::AbortedTxn;
use pylog_record::header::BatchHeader;

/// Why a cleaning ended.
pub(super) enum Ended {
    /// All was done; up to this offset the log is clean.
    At(i64),
    /// [`Pace`] ended it, or the log changed meanwhile. Segments that were replaced so far stay replaced.
    Early,
}

/// Cleans `log`. Writes down nothing in the data directory but the recovery point, which all that is compacted lies before.
pub(super) fn clean_log(
    log: &PartitionLog,
    dirt: &Dirt,
    settings: &CleanerConfig,
    pace: &dyn Pace,
    stats: &mut Stats,
) -> Result<Ended> {
    log.checkpoint_durably()?;
    let before = |s: &&Arc<Segment>| s.base_offset < dirt.first_uncleanable;
    let segments: Vec<_> = log.segments().iter().filter(before).cloned().collect();
    let config = log.config();
    let mut buffers = Buffers { read: Vec::new(), scratch: Scratch::default(), io_bytes: settings.io_bytes };
    let Some((map, end)) = build_map(log, &segments, dirt, settings, &mut buffers, pace, stats)? else {
        return Ok(Ended::Early);
    };
    let count = segments.partition_point(|s| s.base_offset < end);
    let segments = segments.get(..count).unwrap_or_default();
    let candidates = segments.iter().map(|s| candidate(s, false).map_err(|e| log.wrong(e)));
    let candidates = candidates.collect::<Result<Vec<_>>>()?;
    let rules = Rules {
        map: &map,
        latest_offset: end - 1,
        now_ms: log.now_ms(),
        delete_retention_ms: config.delete_retention_ms,
        producers: log.last_records(),
    };
    let mut work = Work { log, rules, transactions: Transactions::default(), buffers, pace };
    for group in groups(&candidates, dirt.first_uncleanable, &config) {
        let ends = group.end == segments.len();
        let old = segments.get(group).unwrap_or_default();
        if !work.clean_group(old, ends, stats)? {
            return Ok(Ended::Early);
        }
    }
    Ok(Ended::At(end))
}

/// What the choice of logs and groups needs to know of a segment.
pub(super) fn candidate(segment: &Segment, first_ms: bool) -> Result<Candidate, SegmentError> {
    let newest_ms = match segment.max_timestamp()? {
        Some((newest, _)) => newest,
        // Compaction left nothing of it.
        None if segment.size() == 0 => i64::MIN,
        None => segment.modified_ms()?,
    };
    Ok(Candidate {
        base_offset: segment.base_offset,
        size: segment.size(),
        newest_ms,
        first_ms: if first_ms { segment.first_batch_timestamp()? } else { -1 },
        index_bytes: segment.index_sizes()?,
    })
}

/// Memory of one cleaning, used again and again.
struct Buffers {
    read: Vec<u8>,
    scratch: Scratch,
    io_bytes: usize,
}

/// The map of the dirty part, and the offset behind the last that it knows; `None` when `pace` ends it.
fn build_map(
    log: &PartitionLog,
    segments: &[Arc<Segment>],
    dirt: &Dirt,
    settings: &CleanerConfig,
    buffers: &mut Buffers,
    pace: &dyn Pace,
    stats: &mut Stats,
) -> Result<Option<(OffsetMap, i64)>> {
    let (start, bound) = (dirt.first_dirty, dirt.first_uncleanable);
    let wanted = u64::try_from(bound - start).unwrap_or(0);
    let mut map = OffsetMap::new(settings.dedupe_bytes, settings.load_factor, wanted);
    stats.map_bytes = map.bytes();
    let mut transactions = Transactions::default();
    transactions.expect(log.aborted_between(start, bound)?);
    let first = segments.partition_point(|s| s.base_offset <= start).saturating_sub(1);
    for segment in segments.iter().skip(first) {
        let wrong = |error| log.wrong(error);
        let file = segment.file().map_err(wrong)?;
        let size = segment.size();
        let whole = Bound { position: size, offset: i64::MAX };
        let found = segment.find(&file, start, whole, None).map_err(wrong)?;
        let position = found.map_or(size, |(position, _)| position);
        let mut stream = BatchStream::new(&*file, position, size, &mut buffers.read, buffers.io_bytes);
        while let Some((header, batch)) = stream.next().map_err(|e| stream_error(log, segment, e))? {
            stats.map_bytes_read += batch.len() as u64;
            if !pace.step(batch.len() as u64) {
                return Ok(None);
            }
            if header.is_control() {
                let marker = pylog_record::control::marker(&(header, batch)).ok().flatten();
                transactions.control(&header, marker);
            } else if !transactions.data(&header)
                && let Some(unfit) = buffers.scratch.index(&header, batch, start, &mut map)
            {
                return Ok(Some((map, unfit)));
            }
        }
    }
    Ok(Some((map, bound)))
}

/// The rewriting of one log.
struct Work<'a> {
    log: &'a PartitionLog,
    rules: Rules<'a>,
    transactions: Transactions,
    buffers: Buffers,
    pace: &'a dyn Pace,
}

/// Batches that wait to be written.
#[derive(Default)]
struct PendingWrite {
    bytes: Vec<u8>,
    headers: Vec<BatchHeader>,
}

impl Work<'_> {
    /// Writes what stays of `old` into one segment that takes their place; `false` when it did not. `ends`: nothing
    /// behind them is cleaned.
    fn clean_group(&mut self, old: &[Arc<Segment>], ends: bool, stats: &mut Stats) -> Result<bool> {
        let Some(first) = old.first() else { return Ok(true) };
        let cleaned = self.log.create_cleaned(first.base_offset)?;
        let replaced = match self.fill(&cleaned, old, ends, stats) {
            Ok(Some(aborted)) => {
                stats.bytes_written += cleaned.size();
                self.log.replace_segments(old, cleaned, &aborted)
            }
            Ok(None) => {
                self.log.discard(&cleaned);
                Ok(false)
            }
            Err(error) => {
                self.log.discard(&cleaned);
                Err(error)
            }
        };
        if matches!(replaced, Ok(true)) {
            stats.segments_before += old.len() as u64;
            stats.segments_after += 1;
        }
        replaced
    }

    /// Writes what stays of `old`; gives the entries of its `.txnindex`, `None` when the pace ends it.
    fn fill(
        &mut self,
        cleaned: &Segment,
        old: &[Arc<Segment>],
        ends: bool,
        stats: &mut Stats,
    ) -> Result<Option<Vec<AbortedTxn>>> {
        let mut pending = PendingWrite::default();
        let mut aborted = Vec::new();
        for (i, segment) in old.iter().enumerate() {
            let last = ends && i + 1 == old.len();
            if !self.copy(cleaned, segment, last, (&mut pending, &mut aborted), stats)? {
                return Ok(None);
            }
        }
        self.write(cleaned, &mut pending)?;
        Ok(Some(aborted))
    }

    /// Copies what stays of one segment.
    fn copy(
        &mut self,
        cleaned: &Segment,
        segment: &Segment,
        last: bool,
        (pending, aborted): (&mut PendingWrite, &mut Vec<AbortedTxn>),
        stats: &mut Stats,
    ) -> Result<bool> {
        let log = self.log;
        let file = segment.file().map_err(|e| log.wrong(e))?;
        let size = segment.size();
        self.transactions.expect(log.aborted_of(segment)?);
        let mut read = std::mem::take(&mut self.buffers.read);
        let mut stream = BatchStream::new(&*file, 0, size, &mut read, self.buffers.io_bytes);
        loop {
            let ends_at = stream.position();
            let Some((header, batch)) = stream.next().map_err(|e| stream_error(log, segment, e))? else {
                break;
            };
            let last = last && ends_at + header.size() as u64 == size;
            let before = pending.bytes.len();
            let done = clean(
                &self.rules,
                &mut self.transactions,
                &mut self.buffers.scratch,
                (&header, batch),
                last,
                &mut pending.bytes,
            );
            let done = done.map_err(|bad| stream_error(log, segment, StreamError::Bad(bad, ends_at)))?;
            stats.note(&header, &done);
            pending.headers.extend(done.header);
            aborted.extend(done.aborted);
            let moved = batch.len() + pending.bytes.len() - before;
            if pending.bytes.len() >= self.buffers.io_bytes {
                self.write(cleaned, pending)?;
            }
            if !self.pace.step(moved as u64) {
                self.buffers.read = read;
                return Ok(false);
            }
        }
        self.buffers.read = read;
        Ok(true)
    }

    fn write(&self, cleaned: &Segment, pending: &mut PendingWrite) -> Result<()> {
        // Index entries are 32 bits wide.
        if cleaned.size() + pending.bytes.len() as u64 > i32::MAX as u64 {
            let reason =
                "compression made it larger than a segment can be; make segment.bytes smaller".into();
            let (offset, file) = (cleaned.base_offset, cleaned.path_of(names::LOG_SUFFIX));
            return Err(self.log.wrong(SegmentError::Bad { offset, file, reason }));
        }
        if !pending.bytes.is_empty() {
            let written = cleaned.append_run(&pending.bytes, &pending.headers);
            written.map_err(|e| self.log.wrong(e))?;
        }
        pending.bytes.clear();
        pending.headers.clear();
        Ok(())
    }
}

fn stream_error(log: &PartitionLog, segment: &Segment, error: StreamError) -> StorageError {
    let file = segment.path_of(names::LOG_SUFFIX);
    log.wrong(match error {
        StreamError::Io(cause) => SegmentError::Io { action: "read", file, cause },
        StreamError::Bad(bad, position) => {
            let reason = format!("{bad} (byte {position})");
            SegmentError::Bad { offset: segment.base_offset, file, reason }
        }
    })
}
