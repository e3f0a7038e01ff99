//! Transaction markers, and which batches an aborted transaction hides from a `read_committed` reader.
use std::collections::HashSet;

use super::batches::{BatchView, body};
use super::header::BatchError;
use super::reader::records;

/// What ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Its records are to be hidden.
    Abort,
    /// Its records are to be shown.
    Commit,
}

/// The marker of a control batch; `None` for kinds that are not markers of transactions.
///
/// # Errors
/// [`BatchError::Malformed`] when the batch holds no well-formed control record.
pub fn marker(view: &BatchView<'_>) -> Result<Option<Marker>, BatchError> {
    const NO_KEY: BatchError = BatchError::Malformed("a control batch without a control key");
    let record = records(body(view.1), &view.0).next().ok_or(NO_KEY)??;
    // The key is: version i16, kind i16.
    let key = record.key.and_then(|key| key.first_chunk::<4>()).ok_or(NO_KEY)?;
    Ok(match i16::from_be_bytes([key[2], key[3]]) {
        0 => Some(Marker::Abort),
        1 => Some(Marker::Commit),
        _ => None,
    })
}

/// Tells batches of aborted transactions from others, as the batches of one partition pass by in offset order.
#[derive(Debug, Clone, Default)]
pub struct AbortedFilter {
    /// `(first_offset, producer_id)`, latest first, so that the next one to start is popped.
    pending: Vec<(i64, i64)>,
    open: HashSet<i64>,
}

impl AbortedFilter {
    /// Adds transactions that a fetch answer names as aborted: `(producer_id, first_offset)`.
    ///
    /// Answers repeat the transactions that reach over their border; naming one twice changes nothing, because a
    /// producer has one transaction open at a time.
    pub fn extend(&mut self, aborted: impl IntoIterator<Item = (i64, i64)>) {
        self.pending.extend(aborted.into_iter().map(|(producer_id, first)| (first, producer_id)));
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
        while self.pending.last().is_some_and(|&(first, _)| first <= header.last_offset()) {
            self.open.extend(self.pending.pop().map(|(_, producer_id)| producer_id));
        }
        if header.is_control() {
            if marker(view)? == Some(Marker::Abort) {
                self.open.remove(&header.producer_id);
            }
            return Ok(true);
        }
        Ok(header.is_transactional() && self.open.contains(&header.producer_id))
    }
}
