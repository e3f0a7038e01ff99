//! What a follower writes: batches as they were fetched, with the offsets and epochs that the leader gave them.
//!
//! What fits into the active segment is written at once. A marker that aborts a transaction begins a new run, so that its
//! entry in the `.txnindex` is there before it.
use std::sync::Arc;

use super::append::{end_mark, flush_need};
use super::mark::Mark;
use super::replicated::Replicated;
use super::role::Role;
use super::view::TxnChange;
use super::{PartitionLog, Writer};
use crate::config::LogConfig;
use crate::error::{Result, StorageError};
use crate::segment::{Segment, SegmentSettings};
use pylog_record::batches;
use pylog_record::control::{EndTxn, Marker, end_txn};
use pylog_record::header::{BatchError, BatchHeader};

/// Batches that follow one another, and their bytes.
pub(super) struct Fetched<'a> {
    pub batches: Vec<(BatchHeader, Option<EndTxn>)>,
    bytes: &'a [u8],
    /// Why what follows them is not a batch; it is an error only when no good batch comes before.
    pub bad: Option<BatchError>,
}

impl<'a> Fetched<'a> {
    /// The good batches at the front of `bytes`. A last one that was cut off is no batch.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut fetched = Fetched { batches: Vec::new(), bytes: &[], bad: None };
        let mut size = 0;
        let mut next_offset = 0;
        for found in batches(bytes) {
            match found.and_then(|view| good(&view, next_offset)) {
                Ok((header, end)) => {
                    next_offset = header.last_offset() + 1;
                    size += header.size();
                    fetched.batches.push((header, end));
                }
                Err(bad) => {
                    fetched.bad = Some(bad);
                    break;
                }
            }
        }
        fetched.bytes = bytes.get(..size).unwrap_or_default();
        fetched
    }

    /// Takes those away that end before `offset`.
    fn skip_before(&mut self, offset: i64) {
        let count = self.batches.partition_point(|(header, _)| header.last_offset() < offset);
        let size: usize = self.batches.drain(..count).map(|(header, _)| header.size()).sum();
        self.bytes = self.bytes.get(size..).unwrap_or_default();
    }

    /// Takes the first `count` batches.
    fn take(&mut self, count: usize) -> (Vec<(BatchHeader, Option<EndTxn>)>, &'a [u8]) {
        let run: Vec<_> = self.batches.drain(..count).collect();
        let size = run.iter().map(|(header, _)| header.size()).sum();
        let (bytes, rest) = self.bytes.split_at_checked(size).unwrap_or_default();
        self.bytes = rest;
        (run, bytes)
    }
}

/// A batch that may stand at `next_offset` or behind, and what it says when it is a marker.
fn good(
    view: &(BatchHeader, &[u8]),
    next_offset: i64,
) -> std::result::Result<(BatchHeader, Option<EndTxn>), BatchError> {
    let (header, batch) = view;
    header.verify_crc(batch)?;
    if header.last_offset_delta < 0 || header.base_offset < next_offset {
        return Err(BatchError::Malformed("its offsets do not go on"));
    }
    if header.base_offset.checked_add(header.last_offset_delta.into()).is_none_or(|last| last == i64::MAX) {
        return Err(BatchError::Malformed("an offset beyond all"));
    }
    // A control batch that is no marker ends nothing.
    let end = if header.is_control() { end_txn(view).ok().flatten() } else { None };
    Ok((*header, end))
}

impl PartitionLog {
    /// Writes the batches that one fetch brought for this partition, as they are. Those that the log holds already are
    /// left out, a last one that was cut off is ignored; offsets may be missing between them (compaction).
    ///
    /// # Errors
    /// [`StorageError::NotFollower`]; [`StorageError::InvalidBatch`] when the first batch is damaged, or begins before the
    /// log's end and ends behind it; those of [`PartitionLog::append`] for the disk. What came before stays written.
    pub fn append_replica(&self, batches: &[u8]) -> Result<Replicated> {
        let config = self.config();
        let now_ms = self.shared.clock.now_ms();
        let mut fetched = Fetched::of(batches);
        let mut writer = self.writing();
        self.refuse_unusable(&writer)?;
        if writer.role != Role::Follower {
            return Err(self.not_follower());
        }
        fetched.skip_before(writer.next_offset);
        let count = fetched.batches.len();
        if let Some((first, _)) = fetched.batches.first() {
            let first = *first;
            if first.base_offset < writer.next_offset {
                self.begin_before_start(&mut writer, &first, &config, now_ms)?;
            }
        } else if let Some(bad) = fetched.bad {
            return Err(StorageError::InvalidBatch { at: self.at.clone(), reason: bad.to_string() });
        }
        let had = writer.next_offset;
        while !fetched.batches.is_empty() {
            self.write_run(&mut writer, &mut fetched, &config, now_ms)?;
        }
        writer.producers.bound(self.shared.config.producer_id_max_count);
        let log_end_offset = writer.next_offset;
        let need = flush_need(&mut writer, log_end_offset - had, &config);
        drop(writer);
        // A follower with `durability=flushed` flushes before it reports its offset to the leader.
        if config.flush_ms < i64::MAX || config.flush_messages < i64::MAX {
            self.ask_for_flush(need);
        }
        Ok(Replicated { log_end_offset, batches: count })
    }

    /// Writes as many batches as fit, at least one.
    fn write_run(
        &self,
        writer: &mut Writer,
        fetched: &mut Fetched<'_>,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<()> {
        let Some((first, end)) = fetched.batches.first().copied() else { return Ok(()) };
        if self.is_roll_due(&writer.active, 0, &first, config, now_ms) {
            self.roll(writer, config, now_ms)?;
        }
        let count = self.run_length(writer, fetched, config, now_ms);
        self.allow_gaps(writer, fetched.batches.get(..count).unwrap_or_default())?;
        let is_indexed = self.index_aborted(writer, &first, end)?;
        let (run, bytes) = fetched.take(count);
        let headers: Vec<BatchHeader> = run.iter().map(|(header, _)| *header).collect();
        writer.active.append_run(bytes, &headers).map_err(|error| {
            if is_indexed {
                writer.active.drop_last_aborted();
            }
            self.undo(&writer.active, error)
        })?;
        self.show_run(writer, &run, bytes.len(), now_ms);
        Ok(())
    }

    /// How many batches of the front go into the active segment by one write.
    fn run_length(&self, writer: &Writer, fetched: &Fetched<'_>, config: &LogConfig, now_ms: i64) -> usize {
        let mut bytes = 0;
        let fits = |(i, (header, end)): &(usize, &(BatchHeader, Option<EndTxn>))| {
            let aborts = end.is_some_and(|end| end.marker == Marker::Abort);
            let fits = *i == 0 || !aborts && !self.is_roll_due(&writer.active, bytes, header, config, now_ms);
            bytes += header.size() as u64;
            fits
        };
        fetched.batches.iter().enumerate().take_while(fits).count()
    }

    /// Where offsets are missing, the log must know that they may be, now and after a restart.
    pub(super) fn allow_gaps(&self, writer: &Writer, run: &[(BatchHeader, Option<EndTxn>)]) -> Result<()> {
        let mut next = writer.next_offset;
        let mut gap = |header: &BatchHeader| {
            let missing = header.base_offset != next;
            next = header.last_offset() + 1;
            missing
        };
        if writer.active.has_gaps() || !run.iter().any(|(header, _)| gap(header)) {
            return Ok(());
        }
        let start = self.view.log_start_offset();
        self.shared.update_cleaner_offsets(|offsets| _ = offsets.entry(self.at.clone()).or_insert(start))?;
        writer.active.allow_gaps();
        Ok(())
    }

    /// Shows the batches of a run, which was written, to readers.
    fn show_run(
        &self,
        writer: &mut Writer,
        run: &[(BatchHeader, Option<EndTxn>)],
        bytes: usize,
        now_ms: i64,
    ) {
        let mut ended = Vec::new();
        let mut ends = Vec::with_capacity(run.len());
        let mut position = writer.active.size() - bytes as u64;
        for (header, end) in run {
            self.note_epoch(writer, header.partition_leader_epoch, header.base_offset);
            writer.next_offset = header.last_offset() + 1;
            ended.extend(writer.producers.note(header, *end, now_ms));
            position += header.size() as u64;
            ends.push(Mark { position, ..end_mark(writer) });
        }
        self.flush.written(writer.active.base_offset, now_ms);
        let transactions = TxnChange { first_open_offset: writer.producers.first_open_offset(), ended };
        self.view.show_run(end_mark(writer), ends, transactions);
    }

    /// The log is empty and begins in the middle of the leader's batch, of which DeleteRecords took the front: its segment
    /// begins where the batch does.
    pub(super) fn begin_before_start(
        &self,
        writer: &mut Writer,
        first: &BatchHeader,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<()> {
        let view = self.view.now();
        let (is_empty, segments) = (view.log_start_offset == view.end.offset, view.segments);
        if !is_empty || writer.active.size() > 0 || segments.len() != 1 {
            let reason = format!(
                "it has offsets {} to {}, but the log ends at {}",
                first.base_offset,
                first.last_offset(),
                writer.next_offset
            );
            return Err(StorageError::InvalidBatch { at: self.at.clone(), reason });
        }
        let settings = SegmentSettings::of(config, self.was_compacted());
        let made = Segment::create(&self.shared.pool, &self.dir, first.base_offset, settings, now_ms);
        let made = Arc::new(made.map_err(|error| self.poison_unless_it_passes(error))?);
        self.bury_segments(&segments);
        self.flush.name_made();
        writer.active = made.clone();
        writer.next_offset = first.base_offset;
        self.view.set_only_segment(made);
        Ok(())
    }
}
