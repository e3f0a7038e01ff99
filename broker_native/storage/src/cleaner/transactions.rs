//! Which batches of a log belong to aborted transactions, and which markers may go. Pure.
//!
//! Fed with every batch from the log's front on. A marker may go once a walk met no batch of its transaction: the
//! batches were removed by earlier walks. The entry of an aborted transaction stays in the `.txnindex` as long as its
//! marker must.
use std::collections::{HashMap, HashSet};

use crate::types::AbortedTxn;
use pylog_record::control::Marker;
use pylog_record::header::BatchHeader;

/// What a walk knows of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerUse {
    /// Whether no batch of its transaction was met.
    pub done: bool,
    /// The entry that is still needed.
    pub aborted: Option<AbortedTxn>,
}

/// An aborted transaction that the walk is in.
#[derive(Debug, Clone, Copy)]
struct Open {
    entry: AbortedTxn,
    met: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// Aborted transactions that begin further on, the next one last.
    coming: Vec<AbortedTxn>,
    aborted: HashMap<i64, Open>,
    /// Producers of whose open transaction a batch was met, which then was committed.
    committed: HashSet<i64>,
}

impl Transactions {
    /// Adds aborted transactions that begin where the walk has not been yet.
    pub fn expect(&mut self, aborted: impl IntoIterator<Item = AbortedTxn>) {
        self.coming.extend(aborted);
        self.coming.sort_unstable_by_key(|txn| std::cmp::Reverse((txn.first_offset, txn.producer_id)));
        self.coming.dedup();
    }

    /// Takes a batch with records; says whether they were aborted.
    pub fn data(&mut self, header: &BatchHeader) -> bool {
        self.open_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some(open) = self.aborted.get_mut(&header.producer_id) {
            open.met = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Takes a control batch; `marker` is `None` for another kind or when its record was removed before.
    pub fn control(&mut self, header: &BatchHeader, marker: Option<Marker>) -> MarkerUse {
        self.open_up_to(header.last_offset());
        match marker {
            Some(Marker::Abort) => {
                let ended = self.aborted.remove(&header.producer_id).filter(|open| open.met);
                MarkerUse { done: ended.is_none(), aborted: ended.map(|open| open.entry) }
            }
            Some(Marker::Commit) => {
                let met = self.committed.remove(&header.producer_id);
                MarkerUse { done: !met, aborted: None }
            }
            None => MarkerUse { done: header.records_count == 0, aborted: None },
        }
    }

    fn open_up_to(&mut self, offset: i64) {
        while self.coming.last().is_some_and(|txn| txn.first_offset <= offset) {
            let Some(entry) = self.coming.pop() else { return };
            self.aborted.entry(entry.producer_id).or_insert(Open { entry, met: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x30;

    fn batch(offset: i64, producer_id: i64, attributes: i16) -> BatchHeader {
        BatchHeader {
            base_offset: offset,
            batch_length: 100,
            partition_leader_epoch: 0,
            crc: 0,
            attributes,
            last_offset_delta: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            records_count: 1,
        }
    }

    fn aborted(producer_id: i64, first_offset: i64, last_offset: i64) -> AbortedTxn {
        AbortedTxn { producer_id, first_offset, last_offset, last_stable_offset: 0 }
    }

    #[test]
    fn aborted_data_goes_at_once_and_its_marker_one_walk_later() {
        let entry = aborted(1, 10, 12);
        let mut first = Transactions::default();
        first.expect([entry]);
        assert!(!first.data(&batch(9, 1, TRANSACTIONAL)), "before the transaction");
        first.control(&batch(9, 1, CONTROL), Some(Marker::Commit));
        assert!(first.data(&batch(10, 1, TRANSACTIONAL)));
        assert!(!first.data(&batch(11, 2, TRANSACTIONAL)), "another producer");
        let kept = first.control(&batch(12, 1, CONTROL), Some(Marker::Abort));
        assert_eq!(kept, MarkerUse { done: false, aborted: Some(entry) });
        let mut second = Transactions::default();
        second.expect([entry]);
        let gone = second.control(&batch(12, 1, CONTROL), Some(Marker::Abort));
        assert_eq!(gone, MarkerUse { done: true, aborted: None });
    }

    #[test]
    fn a_commit_marker_stays_as_long_as_a_batch_of_its_transaction_does() {
        let mut walk = Transactions::default();
        walk.data(&batch(0, 1, TRANSACTIONAL));
        assert!(!walk.control(&batch(1, 1, CONTROL), Some(Marker::Commit)).done);
        assert!(walk.control(&batch(2, 1, CONTROL), Some(Marker::Commit)).done, "of an empty transaction");
        assert!(!walk.data(&batch(3, 1, 0)), "not transactional");
        assert!(walk.control(&batch(4, 1, CONTROL), Some(Marker::Commit)).done);
    }

    #[test]
    fn transactions_of_one_producer_are_told_apart() {
        let mut walk = Transactions::default();
        walk.expect([aborted(1, 20, 21), aborted(1, 0, 1)]);
        assert!(walk.data(&batch(0, 1, TRANSACTIONAL)));
        walk.control(&batch(1, 1, CONTROL), Some(Marker::Abort));
        assert!(!walk.data(&batch(10, 1, TRANSACTIONAL)), "this one was committed");
        walk.control(&batch(11, 1, CONTROL), Some(Marker::Commit));
        assert!(walk.data(&batch(20, 1, TRANSACTIONAL)));
    }

    #[test]
    fn an_emptied_marker_may_go_and_a_control_batch_of_another_kind_stays() {
        let mut walk = Transactions::default();
        assert!(walk.control(&BatchHeader { records_count: 0, ..batch(5, 1, CONTROL) }, None).done);
        assert!(!walk.control(&batch(6, 1, CONTROL), None).done);
    }
}
