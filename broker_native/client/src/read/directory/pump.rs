//! The thread of a reader of a directory: batches of its files, range after range.
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::answers::Directory;
use crate::error::Result;
use crate::net::stop::Stop;
use crate::read::outlet::{Outlet, damaged};
use crate::read::plan::{OffsetRange, RangeOutput, ReadPlan};
use pylog_columnar::{BatchDecoder, DecodeOptions};
use pylog_record::batches;
use pylog_storage::directory::cursor::Cursor;

/// See the module.
pub(in crate::read) struct DirectoryPump {
    directory: Arc<Directory>,
    plan: ReadPlan,
    options: DecodeOptions,
    rows_left: usize,
    outlet: Outlet,
    stop: Stop,
    piece: Vec<u8>,
}

impl DirectoryPump {
    /// # Errors
    /// `INVALID_ARGUMENT` for a plan that contradicts itself.
    pub fn new(
        directory: Arc<Directory>,
        plan: ReadPlan,
        stop: Stop,
        sender: SyncSender<RangeOutput>,
    ) -> Result<Self> {
        let outlet = Outlet::new(&plan, sender)?;
        let (batch_bytes, max_rows) = (plan.batch_bytes, plan.max_rows);
        let options = DecodeOptions { batch_bytes, max_rows, ..DecodeOptions::default() };
        let rows_left = plan.limit.unwrap_or(usize::MAX);
        Ok(Self { directory, plan, options, rows_left, outlet, stop, piece: Vec::new() })
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
        let offsets = range.start..range.end.unwrap_or(range.start);
        let (files, aborted) = self.directory.range(&range.topic_partition, &offsets)?;
        decoder.add_whole_aborted(aborted);
        let mut cursor = Cursor::new(files, &offsets);
        let mut piece = std::mem::take(&mut self.piece);
        while !decoder.at_end() && !self.stop.is_stopped() {
            if !self.directory.next_piece(&mut cursor, &mut piece)? {
                decoder.pass(offsets.end);
                break;
            }
            for view in batches(&piece).map_while(std::result::Result::ok) {
                decoder.push_checked(&view).map_err(|error| damaged(&error))?;
                if !self.outlet.hand_full_over(decoder)? {
                    return Ok(false);
                }
            }
        }
        self.piece = piece;
        Ok(true)
    }
}
