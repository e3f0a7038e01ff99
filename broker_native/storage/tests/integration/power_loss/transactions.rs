//! Transactions in the runs: three producers whose transactions overlap, are committed, aborted and left open. After a cut
//! the last stable offset and what a reader of committed data hides are what the batches that are left say.
//!
//! Where DeleteRecords took the beginning of a transaction away, the log may know of it (from a snapshot) or not: both
//! answers are allowed for what is before the first batch that is left, none for that batch.
use std::collections::{HashMap, HashSet};

use pylog_record::control::{AbortedFilter, EndTxn, Marker, end_txn_batch, marker};
use pylog_record::{BatchBuilder, BatchHeader, Codec, batches};
use pylog_storage::{AppendOptions, Clock, PartitionLog, ReadUpTo, StorageError, TxnMarker};

use crate::power_loss::Run;

/// Transactional producers.
pub const WRITERS: usize = 3;
const FIRST_WRITER_ID: i64 = 100;

/// One of them: what its next batch is to carry.
#[derive(Default, Clone, Copy)]
pub struct Writer {
    epoch: i16,
    sequence: i32,
}

/// What the batches say.
#[derive(Default)]
struct Expected {
    /// First offset, and first offset that was not deleted, of open transactions.
    open: HashMap<i64, (i64, Option<i64>)>,
    /// Data batches of each open transaction.
    pending: HashMap<i64, Vec<i64>>,
    /// Base offsets of the data batches of aborted transactions.
    hidden: HashSet<i64>,
    /// Producer and marker of each.
    aborted: HashSet<(i64, i64)>,
    writers: [Writer; WRITERS],
}

fn id_of(writer: usize) -> i64 {
    FIRST_WRITER_ID + writer as i64
}

impl Run {
    pub fn writer(&mut self) -> usize {
        self.dice.below(WRITERS as u64) as usize
    }

    pub fn append_txn(&mut self, log: &PartitionLog, writer: usize) -> Result<(), StorageError> {
        let Writer { epoch, sequence } = self.transactional[writer];
        let count = 1 + self.dice.below(3) as i32;
        let mut builder = BatchBuilder::new();
        builder.set_producer(id_of(writer), epoch, sequence);
        builder.set_transactional(true);
        for _ in 0..count {
            let value = format!("in-transaction-{}", self.next_value);
            self.next_value += 1;
            builder.append(self.clock.now_ms(), None, Some(value.as_bytes()), &[]).unwrap();
        }
        let mut batch = builder.finish(Codec::None).unwrap();
        let verified = log.begin_verification(id_of(writer), epoch, sequence, false)?;
        self.try_at_end(log, &batch, count);
        let done = log.append(&mut batch, AppendOptions { verified, ..AppendOptions::client(0) })?;
        self.transactional[writer].sequence += count;
        self.acknowledge(log, done.last_offset)
    }

    pub fn end_txn(&mut self, log: &PartitionLog, writer: usize, marker: Marker) -> Result<(), StorageError> {
        let producer_epoch = self.transactional[writer].epoch + 1;
        let (producer_id, coordinator_epoch) = (id_of(writer), 0);
        let end = EndTxn { marker, coordinator_epoch };
        let batch = end_txn_batch(producer_id, producer_epoch, end, self.clock.now_ms()).unwrap();
        self.try_at_end(log, &batch, 1);
        let txn_marker =
            TxnMarker { producer_id, producer_epoch, marker, coordinator_epoch, transaction_version: 2 };
        let done = log.append_marker(txn_marker, AppendOptions::coordinator(0))?;
        self.transactional[writer] = Writer { epoch: producer_epoch, sequence: 0 };
        self.acknowledge(log, done.last_offset)
    }

    /// Holds the log against what the batches that were written say, and goes on where they end.
    pub fn check_transactions(&mut self, log: &PartitionLog) {
        let name = &self.name;
        let offsets = log.offsets();
        let (start, end) = (offsets.log_start_offset, offsets.log_end_offset);
        let expected = self.expected(start);
        let first = |offset: i64| offset.max(start);
        let known = expected.open.values().map(|(all, _)| first(*all)).min().unwrap_or(end);
        let left = expected.open.values().filter_map(|(_, left)| left.map(first)).min().unwrap_or(end);
        let stable = offsets.last_stable_offset;
        assert!((known..=left).contains(&stable), "{name}: stable {stable}, not in [{known}, {left}]");
        let mut at = start;
        while at < stable {
            let slice = log.read(at, 1_500, true, ReadUpTo::LastStable).unwrap();
            assert!(slice.len > 0, "{name}: nothing at {at}, stable is {stable}");
            let mut filter = AbortedFilter::default();
            for txn in &slice.aborted {
                let entry = (txn.producer_id, txn.last_offset);
                assert!(expected.aborted.contains(&entry), "{name}: {txn:?} was not aborted");
                assert!(txn.last_offset >= at && txn.first_offset < slice.next_offset, "{name}: {txn:?}");
                filter.extend([(txn.producer_id, txn.first_offset)]);
            }
            for view in batches(&slice.read().unwrap()) {
                let view = view.unwrap();
                let hides = filter.hides(&view).unwrap();
                let wanted = view.0.is_control() || expected.hidden.contains(&view.0.base_offset);
                assert_eq!(hides, wanted, "{name}: {:?} read from {at}", view.0);
            }
            at = slice.next_offset;
        }
        self.transactional = expected.writers;
    }

    fn expected(&self, start: i64) -> Expected {
        let mut expected = Expected::default();
        for tried in &self.tried {
            let (header, batch) = batches(&tried.batch).next().unwrap().unwrap();
            let Some(writer) = (0..WRITERS).find(|writer| id_of(*writer) == header.producer_id) else {
                continue;
            };
            if header.is_control() {
                expected.end(marker(&(header, batch)).unwrap(), header.producer_id, tried.base_offset);
                expected.writers[writer] = Writer { epoch: header.producer_epoch, sequence: 0 };
            } else {
                expected.data(&header, tried.base_offset, tried.last_offset >= start);
                let sequence = header.base_sequence + header.records_count;
                expected.writers[writer] = Writer { epoch: header.producer_epoch, sequence };
            }
        }
        expected
    }
}

impl Expected {
    fn data(&mut self, header: &BatchHeader, offset: i64, is_left: bool) {
        let (_, left) = self.open.entry(header.producer_id).or_insert((offset, None));
        if is_left {
            left.get_or_insert(offset);
        }
        self.pending.entry(header.producer_id).or_default().push(offset);
    }

    fn end(&mut self, how: Option<Marker>, producer_id: i64, offset: i64) {
        let batches = self.pending.remove(&producer_id).unwrap_or_default();
        if self.open.remove(&producer_id).is_some() && how == Some(Marker::Abort) {
            self.hidden.extend(batches);
            self.aborted.insert((producer_id, offset));
        }
    }
}
