//! Batches that are not fetched from brokers: those of a data directory, and of an archive. The thread of their reader.
use std::fmt::Debug;
use std::sync::mpsc::SyncSender;

use super::outlet::{Outlet, damaged};
use super::plan::{OffsetRange, RangeOutput, ReadPlan};
use crate::error::Result;
use crate::net::stop::Stop;
use pylog_columnar::{BatchDecoder, DecodeOptions};
use pylog_record::batches;

/// Of an aborted transaction the producer's id, its first offset and that of its marker.
pub type Aborted = (i64, i64, i64);

/// Who brings the batches. Used by one thread, not by that which made it.
pub trait Feed: Debug + Send {
    /// Turns to a range; gives the transactions in it whose records are to be hidden.
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` and others that a broker answers with; `KAFKA_STORAGE_ERROR`.
    fn turn_to(&mut self, range: &OffsetRange) -> Result<Vec<Aborted>>;

    /// Puts the next whole batches of the range into `piece`, with checksums that are right; `false` at its end. The first of all may begin
    /// before the range, the last end behind it.
    ///
    /// # Errors
    /// `CORRUPT_BATCH`; those of [`Feed::turn_to`].
    fn next_piece(&mut self, piece: &mut Vec<u8>) -> Result<bool>;
}

/// The thread of a reader: batches of a feed, range after range.
pub(super) struct FeedPump {
    feed: Box<dyn Feed>,
    plan: ReadPlan,
    options: DecodeOptions,
    rows_left: usize,
    outlet: Outlet,
    stop: Stop,
    piece: Vec<u8>,
}

impl FeedPump {
    /// # Errors
    /// `INVALID_ARGUMENT` for a plan that contradicts itself.
    pub fn new(
        feed: Box<dyn Feed>,
        plan: ReadPlan,
        stop: Stop,
        sender: SyncSender<RangeOutput>,
    ) -> Result<Self> {
        let outlet = Outlet::new(&plan, sender)?;
        let (batch_bytes, max_rows) = (plan.batch_bytes, plan.max_rows);
        let options = DecodeOptions { batch_bytes, max_rows, ..DecodeOptions::default() };
        let rows_left = plan.limit.unwrap_or(usize::MAX);
        Ok(Self { feed, plan, options, rows_left, outlet, stop, piece: Vec::new() })
    }

    pub fn run(mut self) {
        if let Err(error) = self.pump() {
            self.outlet.fail(error);
        }
    }

    fn pump(&mut self) -> Result<()> {
        let ranges = self.plan.ranges.clone();
        for (index, range) in ranges.iter().enumerate() {
            self.outlet.turn_to(index, range.topic_partition.clone());
            let mut decoder = self.plan.decoder(range, self.options, self.rows_left);
            if !self.read(range, &mut decoder)? {
                return Ok(());
            }
            self.rows_left = decoder.rows_left();
            let last = index + 1 == ranges.len() || self.rows_left == 0 || self.stop.is_stopped();
            if !self.outlet.flush(&mut decoder, last)? || last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads one range to its end; false when the consumer is gone.
    fn read(&mut self, range: &OffsetRange, decoder: &mut BatchDecoder) -> Result<bool> {
        decoder.add_whole_aborted(self.feed.turn_to(range)?);
        while !decoder.at_end() && !self.stop.is_stopped() {
            if !self.feed.next_piece(&mut self.piece)? {
                decoder.pass(range.end.unwrap_or(range.start));
                break;
            }
            for view in batches(&self.piece).map_while(std::result::Result::ok) {
                decoder.push_checked(&view).map_err(|error| damaged(&error))?;
                if !self.outlet.hand_full_over(decoder)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
