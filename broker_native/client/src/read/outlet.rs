//! The end of a reader's thread: finished batches, as the plan wants them, to the consumer.
use std::sync::mpsc::{SyncSender, TrySendError};

use super::plan::{DecodedBatch, RangeOutput, ReadPlan};
use super::typing::Typing;
use crate::error::{ClientError, Result, kind};
use crate::metadata::topic_partition::TopicPartition;
use pylog_columnar::{BatchDecoder, DecodeError};

/// See the module.
pub(super) struct Outlet {
    sender: SyncSender<RangeOutput>,
    typing: Typing,
    /// Which range the batches are of, and its partition.
    range: Option<(usize, TopicPartition)>,
}

impl Outlet {
    /// # Errors
    /// `INVALID_ARGUMENT` for a plan that contradicts itself.
    pub fn new(plan: &ReadPlan, sender: SyncSender<RangeOutput>) -> Result<Self> {
        Ok(Self { sender, typing: Typing::new(plan)?, range: None })
    }

    /// What follows is of another range.
    pub fn turn_to(&mut self, index: usize, partition: TopicPartition) {
        self.range = Some((index, partition));
    }

    /// The last word.
    pub fn fail(&self, error: ClientError) {
        // The consumer is gone: nothing needs the result.
        let _ = self.sender.send((self.range_index(), Err(error)));
    }

    /// Hands full batches on; false when the consumer is gone.
    ///
    /// # Errors
    /// Those of the plan's formats.
    pub fn hand_full_over(&mut self, decoder: &mut BatchDecoder) -> Result<bool> {
        while let Some(batch) = decoder.next_batch() {
            let next_offset = decoder.resume_offset();
            if !self.hand_over(DecodedBatch { batch: Some(batch), next_offset, last: false })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hands on what is there; false when the consumer is gone. `last`: nothing follows.
    ///
    /// # Errors
    /// As [`Outlet::hand_full_over`].
    pub fn flush(&mut self, decoder: &mut BatchDecoder, last: bool) -> Result<bool> {
        let batch = decoder.flush().map_err(|error| damaged(&error))?;
        let next_offset = decoder.resume_offset();
        self.hand_over(DecodedBatch { batch, next_offset, last })
    }

    fn hand_over(&mut self, mut output: DecodedBatch) -> Result<bool> {
        if let (Some(batch), Some((_, partition))) = (output.batch.take(), &self.range) {
            output.batch = self.typing.apply(batch, partition)?;
        }
        Ok(match self.sender.try_send((self.range_index(), Ok(output))) {
            Ok(()) => true,
            Err(TrySendError::Full(output)) => self.sender.send(output).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        })
    }

    fn range_index(&self) -> usize {
        self.range.as_ref().map_or(0, |(index, _)| *index)
    }
}

/// The error of bytes that cannot be shown as rows.
pub(super) fn damaged(error: &DecodeError) -> ClientError {
    ClientError::fatal(kind::CORRUPT_BATCH, error.to_string())
}
