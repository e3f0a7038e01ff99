//! The thread of a [`super::range::RangeReader`]: fetches, decodes and hands on, range after range.
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use super::fetcher::{Fetched, Fetcher};
use super::local::{LocalCounters, LocalRun, Piece};
use super::outlet::{Outlet, damaged};
use super::plan::{RangeOutput, ReadPlan};
use super::standstill::Standstill;
use crate::config::Settings;
use crate::error::{ClientError, Result, kind};
use crate::metadata::cluster::Cluster;
use crate::net::stop::Stop;
use pylog_columnar::{BatchDecoder, DecodeOptions};
use pylog_record::batches;

/// What the first fetch of a reader that wants only some rows, or of a small range, asks for; each further one
/// asks for more.
const FIRST_SMALL_FETCH_BYTES: i64 = 64 * 1024;

/// See the module.
pub(crate) struct Pump {
    plan: ReadPlan,
    options: DecodeOptions,
    /// Where the thread is.
    range_index: usize,
    end: i64,
    follow: bool,
    /// Rows that may still come, over all ranges.
    rows_left: usize,
    /// Whether ranges of one partition follow each other: then they are small, and one answer may serve several.
    in_pieces: bool,
    /// The last answer with the offsets it covers, when the next range may find its records there.
    kept: Option<(Range<i64>, Fetched)>,
    fetcher: Fetcher,
    decoder: BatchDecoder,
    outlet: Outlet,
    stop: Stop,
    bytes_fetched: Arc<AtomicU64>,
    piece: Piece,
}

impl Pump {
    pub(crate) fn new(
        cluster: Cluster,
        plan: ReadPlan,
        stop: Stop,
        sender: SyncSender<RangeOutput>,
        bytes_fetched: Arc<AtomicU64>,
        local: Arc<LocalCounters>,
    ) -> Result<Self> {
        let settings = cluster.settings();
        let options = decode_options(&plan, settings);
        let rows_left = plan.limit.unwrap_or(usize::MAX);
        let Some(first) = plan.ranges.first() else {
            return Err(ClientError::invalid("a reader needs at least one range"));
        };
        let decoder = plan.decoder(first, options, rows_left);
        let mut outlet = Outlet::new(&plan, sender)?;
        outlet.turn_to(0, first.topic_partition.clone());
        let mut fetcher = Fetcher::new(cluster, first.topic_partition.clone(), first.start);
        if plan.local_reads {
            fetcher.allow_local_reads(local);
        }
        let in_pieces = plan.ranges.windows(2).any(|pair| match pair {
            [range, next] => range.topic_partition.has_name_of(&next.topic_partition),
            _ => false,
        });
        if plan.limit.is_some() || in_pieces {
            fetcher.set_max_bytes(FIRST_SMALL_FETCH_BYTES);
        }
        Ok(Self {
            options,
            range_index: 0,
            end: first.end.unwrap_or(i64::MAX),
            follow: first.end.is_none(),
            rows_left,
            in_pieces,
            kept: None,
            fetcher,
            decoder,
            outlet,
            stop,
            bytes_fetched,
            piece: Piece::default(),
            plan,
        })
    }

    pub(crate) fn run(mut self) {
        if let Err(error) = self.pump() {
            self.outlet.fail(error);
        }
    }

    fn pump(&mut self) -> Result<()> {
        for index in 0..self.plan.ranges.len() {
            if index > 0 {
                self.turn_to(index);
            }
            if !self.read_range()? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn turn_to(&mut self, index: usize) {
        let Some(range) = self.plan.ranges.get(index) else { return };
        self.range_index = index;
        self.outlet.turn_to(index, range.topic_partition.clone());
        self.end = range.end.unwrap_or(i64::MAX);
        self.follow = range.end.is_none();
        let same = self
            .plan
            .ranges
            .get(index - 1)
            .is_some_and(|last| last.topic_partition.has_name_of(&range.topic_partition));
        // Markers before this range would be needed to know which aborted transactions have ended.
        self.kept = self.kept.take().filter(|(covered, fetched)| {
            same && covered.contains(&range.start) && fetched.aborted.is_empty()
        });
        self.fetcher.turn_to(range.topic_partition.clone(), range.start);
        if self.in_pieces {
            self.fetcher.set_max_bytes(FIRST_SMALL_FETCH_BYTES);
        }
        self.decoder = self.plan.decoder(range, self.options, self.rows_left);
    }

    /// Reads one range to its end; false when nothing more is to be read.
    fn read_range(&mut self) -> Result<bool> {
        let mut standstill = Standstill::new();
        while !self.decoder.at_end() && !self.stop.is_stopped() {
            let fetched = self.answer()?;
            let before = self.decoder.next_offset();
            let (next, epoch) = next_position(&fetched, before);
            self.fetcher.advance(next, epoch);
            if self.in_pieces {
                self.kept = Some((before..next, fetched.clone()));
            }
            // A reader that wants only some rows may have them with this answer.
            if next > before && next < self.end && self.plan.limit.is_none() {
                self.fetcher.ask();
            }
            if !self.decode(&fetched)? {
                return Ok(false);
            }
            if self.decoder.next_offset() > before {
                standstill.end();
            } else if fetched.in_file.is_none() {
                let end = (!self.follow).then_some(self.end);
                if let Some(behind) = standstill.look(&mut self.fetcher, &fetched, end)? {
                    self.decoder.pass(behind);
                    self.fetcher.advance(self.decoder.next_offset(), None);
                }
            }
            self.fetcher.grow_max_bytes();
        }
        self.rows_left = self.decoder.rows_left();
        self.finish_range()
    }

    /// What is known already of this range's first records, else the brokers' next answer.
    fn answer(&mut self) -> Result<Fetched> {
        if let Some((covered, fetched)) = self.kept.take()
            && covered.contains(&self.decoder.next_offset())
        {
            return Ok(fetched);
        }
        let fetched = self.fetcher.fetch()?;
        self.bytes_fetched.fetch_add(fetched.records.len() as u64, Ordering::Relaxed);
        Ok(fetched)
    }

    /// Hands on what is left of a range; whether there is something to read after it.
    fn finish_range(&mut self) -> Result<bool> {
        let more =
            self.rows_left > 0 && self.range_index + 1 < self.plan.ranges.len() && !self.stop.is_stopped();
        Ok(self.outlet.flush(&mut self.decoder, !more)? && more)
    }

    /// Decodes an answer and hands full batches on; false when the consumer is gone.
    fn decode(&mut self, fetched: &Fetched) -> Result<bool> {
        self.decoder.add_aborted(fetched.aborted.iter().copied());
        if let Some(run) = &fetched.in_file {
            return self.decode_file(run.clone());
        }
        for view in batches(&fetched.records) {
            let view = view.map_err(|error| self.corrupt(&error.to_string()))?;
            self.decoder.push(&view).map_err(|error| damaged(&error))?;
            if !self.outlet.hand_full_over(&mut self.decoder)? {
                return Ok(false);
            }
        }
        self.flush_follower()
    }

    /// The same for batches in a file. A doubt sends the reader back to the wire, from where the last good batch ended.
    fn decode_file(&mut self, mut run: LocalRun) -> Result<bool> {
        let mut piece = std::mem::take(&mut self.piece);
        while !self.decoder.at_end() {
            match run.next_piece(&mut piece) {
                Ok(true) => {}
                Ok(false) => {
                    self.decoder.pass(run.end_offset());
                    break;
                }
                Err(doubt) => {
                    self.kept = None;
                    self.fetcher.doubt(doubt, self.decoder.next_offset());
                    break;
                }
            }
            for view in batches(piece.bytes()).map_while(std::result::Result::ok) {
                self.decoder.push_checked(&view).map_err(|error| damaged(&error))?;
                if !self.outlet.hand_full_over(&mut self.decoder)? {
                    return Ok(false);
                }
            }
            self.fetcher.read_from_file(piece.bytes().len(), run.batch_epoch());
        }
        self.piece = piece;
        self.flush_follower()
    }

    fn flush_follower(&mut self) -> Result<bool> {
        // A consumer that polls wants what is there now rather than a full batch.
        if self.follow { self.outlet.flush(&mut self.decoder, false) } else { Ok(true) }
    }

    fn corrupt(&self, what: &str) -> ClientError {
        let message = format!(
            "partition {} holds damaged bytes at or after offset {}: {what}",
            self.fetcher.name(),
            self.decoder.next_offset()
        );
        ClientError::fatal(kind::CORRUPT_BATCH, message)
    }
}

pub(super) fn decode_options(plan: &ReadPlan, settings: &Settings) -> DecodeOptions {
    DecodeOptions {
        batch_bytes: plan.batch_bytes,
        max_rows: plan.max_rows,
        max_decompressed_bytes: usize::try_from(settings.decompressed_batch_max_bytes).unwrap_or(usize::MAX),
        check_crcs: settings.check_crcs,
    }
}

/// The offset after the last whole batch of an answer and that batch's epoch, found by its headers alone; of batches in a file the
/// broker said the offset, and the epoch is not known yet.
fn next_position(fetched: &Fetched, before: i64) -> (i64, Option<i32>) {
    if let Some(run) = &fetched.in_file {
        return (run.end_offset(), None);
    }
    let last = batches(&fetched.records).map_while(std::result::Result::ok).last();
    last.map_or((before, None), |(header, _)| {
        (header.last_offset().saturating_add(1).max(before), Some(header.partition_leader_epoch))
    })
}
