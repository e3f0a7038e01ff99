//! Transaction markers, and which batches an aborted transaction hides from a `read_committed` reader.
//!
//! A marker is a control batch of one record, all integers big-endian:
//! ```text
//! key:   version i16 = 0 | type i16 (0 abort, 1 commit)
//! value: version i16 = 0 | coordinator_epoch i32
//! ```
use std::collections::HashMap;

use super::batches::{BatchView, body};
use super::builder::BatchBuilder;
use super::compression::Codec;
use super::header::BatchError;
use super::layout;
use super::reader::{RecordRef, records};

/// Version of key and value that is written; readers take later ones, whose fields begin alike.
const VERSION: i16 = 0;
/// A marker has no sequence.
const NO_SEQUENCE: i32 = -1;
/// The kind of the control record at which a mirror ended. Readers pass over kinds that they do not know.
const MIRROR_END: i16 = 10_000;

/// What ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Its records are to be hidden.
    Abort,
    /// Its records are to be shown.
    Commit,
}

impl Marker {
    /// Kafka's number of it.
    pub const fn code(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
        }
    }
}

/// What a marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxn {
    /// How the transaction ended.
    pub marker: Marker,
    /// Epoch of the transaction coordinator that decided so.
    pub coordinator_epoch: i32,
}

/// The marker of a control batch; `None` for kinds that are not markers of transactions, and for one whose record
/// compaction removed.
///
/// # Errors
/// [`BatchError::Malformed`] when the batch holds no well-formed control record.
pub fn marker(view: &BatchView<'_>) -> Result<Option<Marker>, BatchError> {
    first_record(view)?.as_ref().map_or(Ok(None), kind)
}

/// The marker of a control batch with its value; `None` for kinds that are not markers of transactions.
///
/// # Errors
/// [`BatchError::Malformed`] when the batch holds no well-formed control record.
pub fn end_txn(view: &BatchView<'_>) -> Result<Option<EndTxn>, BatchError> {
    let Some(record) = first_record(view)? else { return Ok(None) };
    let Some(marker) = kind(&record)? else { return Ok(None) };
    let epoch = record.value.and_then(|value| value.get(2..)?.first_chunk::<4>());
    let epoch = epoch.ok_or(BatchError::Malformed("a transaction marker without a coordinator epoch"))?;
    Ok(Some(EndTxn { marker, coordinator_epoch: i32::from_be_bytes(*epoch) }))
}

/// The record of a control batch; `None` when compaction took it and left the header.
fn first_record<'a>(view: &BatchView<'a>) -> Result<Option<RecordRef<'a>>, BatchError> {
    records(body(view.1), &view.0).next().transpose()
}

fn kind(record: &RecordRef<'_>) -> Result<Option<Marker>, BatchError> {
    const NO_KEY: BatchError = BatchError::Malformed("a control batch without a control key");
    let key = record.key.and_then(|key| key.first_chunk::<4>()).ok_or(NO_KEY)?;
    Ok(match i16::from_be_bytes([key[2], key[3]]) {
        0 => Some(Marker::Abort),
        1 => Some(Marker::Commit),
        _ => None,
    })
}

/// The control batch that ends the producer's transaction.
///
/// # Errors
/// None with these sizes; those of the builder.
pub fn end_txn_batch(
    producer_id: i64,
    producer_epoch: i16,
    end: EndTxn,
    timestamp_ms: i64,
) -> Result<Vec<u8>, BatchError> {
    let key = [VERSION.to_be_bytes(), end.marker.code().to_be_bytes()].concat();
    let value = [&VERSION.to_be_bytes()[..], &end.coordinator_epoch.to_be_bytes()].concat();
    let mut builder = BatchBuilder::new();
    builder.set_producer(producer_id, producer_epoch, NO_SEQUENCE);
    builder.set_transactional(true);
    builder.set_control(true);
    builder.append(timestamp_ms, Some(&key), Some(&value), &[])?;
    builder.finish(Codec::None)
}

/// The control batch at which a mirror ended: the producers before it are another cluster's.
///
/// # Errors
/// None with these sizes; those of the builder.
pub fn mirror_end_batch(timestamp_ms: i64) -> Result<Vec<u8>, BatchError> {
    let key = [VERSION.to_be_bytes(), MIRROR_END.to_be_bytes()].concat();
    let mut builder = BatchBuilder::new();
    builder.set_producer(layout::MIRROR_END_PRODUCER_ID, -1, NO_SEQUENCE);
    builder.set_control(true);
    builder.append(timestamp_ms, Some(&key), Some(&VERSION.to_be_bytes()), &[])?;
    builder.finish(Codec::None)
}

/// Tells batches of aborted transactions from others, as the batches of one partition pass by in offset order.
#[derive(Debug, Clone, Default)]
pub struct AbortedFilter {
    /// `(first_offset, producer_id, last_offset)`, latest first, so that the next one to start is popped.
    pending: Vec<(i64, i64, i64)>,
    /// The last offsets of the transactions that have begun, by their producers.
    open: HashMap<i64, i64>,
}

impl AbortedFilter {
    /// Adds transactions that a fetch answer names as aborted: `(producer_id, first_offset)`. Their markers end them.
    ///
    /// Answers repeat the transactions that reach over their border; naming one twice changes nothing, because a
    /// producer has one transaction open at a time.
    pub fn extend(&mut self, aborted: impl IntoIterator<Item = (i64, i64)>) {
        self.extend_whole(aborted.into_iter().map(|(producer_id, first)| (producer_id, first, i64::MAX)));
    }

    /// Adds aborted transactions of which the offset of the marker is known, too: `(producer_id, first_offset, last_offset)`. They end
    /// there, also when the marker is not shown.
    pub fn extend_whole(&mut self, aborted: impl IntoIterator<Item = (i64, i64, i64)>) {
        self.pending.extend(aborted.into_iter().map(|(producer_id, first, last)| (first, producer_id, last)));
        self.pending.sort_unstable_by(|a, b| b.cmp(a));
        self.pending.dedup();
    }

    /// Whether the records of this batch are hidden. Call it once for every batch, control batches included.
    ///
    /// # Errors
    /// [`BatchError::Malformed`] for a control batch without a control record.
    pub fn hides(&mut self, view: &BatchView<'_>) -> Result<bool, BatchError> {
        let header = &view.0;
        if self.pending.is_empty() && self.open.is_empty() {
            return Ok(header.is_control());
        }
        while self.pending.last().is_some_and(|&(first, ..)| first <= header.last_offset()) {
            self.open.extend(self.pending.pop().map(|(_, producer_id, last)| (producer_id, last)));
        }
        if header.is_control() {
            if marker(view)? == Some(Marker::Abort) {
                self.open.remove(&header.producer_id);
            }
            return Ok(true);
        }
        let open_to = self.open.get(&header.producer_id).copied();
        Ok(header.is_transactional() && open_to.is_some_and(|last| header.base_offset <= last))
    }
}
