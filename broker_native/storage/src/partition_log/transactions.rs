//! Transactions in the log: the markers that end them, the guard at their beginning, what holds the last stable offset
//! back, and which aborted ones a reader must hide.
use std::ops::Range;

use super::append::CheckedBatch;
use super::view::View;
use super::{PartitionLog, Writer};
use crate::config::LogConfig;
use crate::error::{Result, StorageError};
use crate::types::{AbortedTxn, AppendOptions, Appended, ProducerInfo, TxnMarker, Verification};
use pylog_record::control::{EndTxn, end_txn_batch};
use pylog_record::header::BatchHeader;

impl PartitionLog {
    /// Writes the marker that ends a producer's transaction, and fences the epochs before the marker's. A producer
    /// without an open transaction gets its marker, too: the coordinator may not know.
    ///
    /// It is acknowledged only after [`PartitionLog::wait_durable`] says so.
    ///
    /// # Errors
    /// [`StorageError::InvalidProducerEpoch`], [`StorageError::TransactionCoordinatorFenced`]; those of
    /// [`PartitionLog::append`] for the disk. After an error nothing is in the log.
    pub fn append_marker(&self, marker: TxnMarker, how: AppendOptions) -> Result<Appended> {
        let config = self.config();
        // A marker of this cluster would stand where a batch of the other one belongs.
        self.refuse_mirror(&config)?;
        self.put_marker(marker, how, &config)
    }

    /// As [`PartitionLog::append_marker`], whoever may write to the log.
    pub(super) fn put_marker(
        &self,
        marker: TxnMarker,
        how: AppendOptions,
        config: &LogConfig,
    ) -> Result<Appended> {
        let now_ms = how.now_ms.unwrap_or_else(|| self.shared.clock.now_ms());
        let batch = end_txn_batch(marker.producer_id, marker.producer_epoch, marker.end(), now_ms);
        let mut batch = batch.map_err(|bad| self.invalid(bad.to_string()))?;
        self.put_control(&mut batch, Some(&marker), how, config)
    }

    /// Writes a control batch, which is that of `marker`, or of another kind.
    pub(super) fn put_control(
        &self,
        batch: &mut [u8],
        marker: Option<&TxnMarker>,
        how: AppendOptions,
        config: &LogConfig,
    ) -> Result<Appended> {
        let now_ms = how.now_ms.unwrap_or_else(|| self.shared.clock.now_ms());
        let header = BatchHeader::parse(batch).ok().flatten();
        let header = header.ok_or_else(|| self.invalid("no control batch".into()))?;
        let writer = self.writing();
        self.refuse_unusable(&writer)?;
        let leader_epoch = self.epoch_to_write(&writer, how.leader_epoch)?;
        marker.map_or(Ok(()), |marker| writer.producers.check_marker(marker, &self.at))?;
        let checked = CheckedBatch { batch, header, end: marker.map(TxnMarker::end), leader_epoch };
        self.put(writer, checked, config, now_ms)
    }

    pub(super) fn invalid(&self, reason: String) -> StorageError {
        StorageError::InvalidBatch { at: self.at.clone(), reason }
    }

    /// First offset of the producer's open transaction in this partition.
    pub fn open_transaction(&self, producer_id: i64) -> Option<i64> {
        self.writing().producers.txn_first_offset(producer_id)
    }

    /// Begins to ask the transaction coordinator whether the transaction of a batch, which begins at `base_sequence`, holds
    /// this partition; what is given goes into [`AppendOptions::verified`] when it does. `None`: the transaction is open
    /// here, so the coordinator need not be asked. `epoch_bumps`: the producer gets a new epoch with each transaction
    /// (`transaction.version` 2).
    ///
    /// # Errors
    /// [`StorageError::InvalidProducerEpoch`].
    pub fn begin_verification(
        &self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        epoch_bumps: bool,
    ) -> Result<Option<Verification>> {
        let now_ms = self.shared.clock.now_ms();
        let mut writer = self.writing();
        if let Some(current) = writer.producers.epoch(producer_id) {
            if producer_epoch < current {
                let (at, found) = (self.at.clone(), producer_epoch);
                return Err(StorageError::InvalidProducerEpoch { at, producer_id, found, current });
            }
            if producer_epoch == current && writer.producers.txn_first_offset(producer_id).is_some() {
                return Ok(None);
            }
        }
        let begun =
            writer.verifications.begin(producer_id, producer_epoch, base_sequence, epoch_bumps, now_ms);
        Ok(Some(begun))
    }

    /// What is known of the partition's producers, by id.
    pub fn producers(&self) -> Vec<ProducerInfo> {
        self.writing().producers.infos()
    }

    /// Puts the transaction that a marker with `header` is about to abort into the index; whether there was one.
    pub(super) fn index_aborted(
        &self,
        writer: &Writer,
        header: &BatchHeader,
        end: Option<EndTxn>,
    ) -> Result<bool> {
        let ended =
            end.and_then(|end| writer.producers.ended_by(header.producer_id, end.marker, header.base_offset));
        let Some(aborted) = ended.and_then(|ended| ended.aborted()) else { return Ok(false) };
        let appended = writer.active.append_aborted(&aborted);
        let is_new = appended.map_err(|error| self.poison_unless_it_passes(error))?;
        if is_new {
            self.flush.name_made();
        }
        Ok(true)
    }

    /// The aborted transactions that overlap `offsets`, which lie before the last stable offset of `view`.
    pub(super) fn aborted_in(&self, view: &View, offsets: Range<i64>) -> Result<Vec<AbortedTxn>> {
        let mut found = Vec::new();
        let first = view.segments.partition_point(|s| s.base_offset <= offsets.start).saturating_sub(1);
        for segment in view.segments.iter().skip(first) {
            match segment.aborted_in(&offsets, &mut found) {
                Ok(true) => break,
                Ok(false) => {}
                // Retention was faster than this look at the segments.
                Err(error) if error.is_missing() && self.offsets().log_start_offset > offsets.start => {
                    return Err(self.out_of_range(offsets.start));
                }
                Err(error) => return Err(error.of(&self.at)),
            }
        }
        Ok(found)
    }
}
