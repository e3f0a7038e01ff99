//! Transactions in a log: markers, the last stable offset, what a reader of committed data must hide.
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use pylog_record::control::{Marker, marker};
use pylog_record::{BatchBuilder, Codec, batches};
use pylog_storage::{
    AbortedTxn, AppendOptions, Appended, Durability, LogConfig, PartitionLog, ReadUpTo, StorageError,
    TxnMarker,
};
use pylog_testkit::sim::{Fault, SimDisk};

use crate::support::{Broker, NOW_MS, durable, fill, scratch, small_segments};

const COMMITTED: ReadUpTo = ReadUpTo::LastStable;

/// Producers of a test, with the sequence each goes on with.
#[derive(Default)]
pub struct Writers(HashMap<i64, i32>);

impl Writers {
    /// One batch of `count` records in the producer's transaction, verified where that is asked for.
    pub fn write(&mut self, log: &PartitionLog, id: i64, count: i32) -> Result<Appended, StorageError> {
        let sequence = self.0.entry(id).or_default();
        let verified = log.begin_verification(id, 0, *sequence, false)?;
        let how = AppendOptions { verified, ..AppendOptions::client(0) };
        let done = log.append(&mut batch(id, *sequence, count), how)?;
        *sequence += count;
        Ok(done)
    }
}

fn batch(id: i64, sequence: i32, count: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_producer(id, 0, sequence);
    builder.set_transactional(true);
    (0..count).for_each(|_| builder.append(NOW_MS, None, Some(&[b'x'; 40]), &[]).unwrap());
    builder.finish(Codec::None).unwrap()
}

pub fn abort(producer_id: i64) -> TxnMarker {
    TxnMarker {
        producer_id,
        producer_epoch: 0,
        marker: Marker::Abort,
        coordinator_epoch: 0,
        transaction_version: 1,
    }
}

fn end(log: &PartitionLog, producer_id: i64, how: Marker) -> i64 {
    let marker = TxnMarker { marker: how, ..abort(producer_id) };
    log.append_marker(marker, AppendOptions::coordinator(0)).unwrap().base_offset
}

fn stable(log: &PartitionLog) -> i64 {
    log.offsets().last_stable_offset
}

/// What the batches themselves say: the first unstable offset, and the aborted transactions by (first offset, producer).
fn scanned(log: &PartitionLog) -> (i64, BTreeMap<(i64, i64), i64>) {
    let offsets = log.offsets();
    let (mut open, mut aborted) = (BTreeMap::new(), BTreeMap::new());
    let mut at = offsets.log_start_offset;
    while at < offsets.log_end_offset {
        let slice = log.read(at, 1 << 20, true, ReadUpTo::LogEnd).unwrap();
        for view in batches(&slice.read().unwrap()) {
            let view = view.unwrap();
            let header = view.0;
            if header.is_control() {
                let first = open.remove(&header.producer_id);
                if let (Some(first), Some(Marker::Abort)) = (first, marker(&view).unwrap()) {
                    aborted.insert((first, header.producer_id), header.base_offset);
                }
            } else if header.is_transactional() {
                open.entry(header.producer_id).or_insert(header.base_offset);
            }
        }
        at = slice.next_offset;
    }
    (open.values().copied().min().unwrap_or(offsets.log_end_offset), aborted)
}

/// Every committed read of the log, small and large, names exactly the aborted transactions that overlap it.
pub fn check_reads(log: &PartitionLog) -> usize {
    check_some_reads(log, 1)
}

/// The same, from each `step`th offset.
fn check_some_reads(log: &PartitionLog, step: usize) -> usize {
    let (first_unstable, aborted) = scanned(log);
    assert_eq!(stable(log), first_unstable);
    let mut named = 0;
    for max_bytes in [1, 700, 1 << 20] {
        for from in (log.offsets().log_start_offset..first_unstable).step_by(step) {
            let slice = log.read(from, max_bytes, true, COMMITTED).unwrap();
            assert!(slice.len > 0 && slice.next_offset <= first_unstable, "from {from}: {slice:?}");
            let mut found: Vec<_> = slice.aborted.iter().map(key_and_end).collect();
            found.sort_unstable();
            let overlap =
                |((first, _), end): &(&(i64, i64), &i64)| **end >= from && *first < slice.next_offset;
            let wanted: Vec<_> = aborted.iter().filter(overlap).map(|(key, end)| (*key, *end)).collect();
            assert_eq!(found, wanted, "[{from}, {})", slice.next_offset);
            named += found.len();
        }
    }
    named
}

fn key_and_end(txn: &AbortedTxn) -> ((i64, i64), i64) {
    ((txn.first_offset, txn.producer_id), txn.last_offset)
}

/// Many transactions of four producers, over many segments, some open at the end.
fn mixed(log: &PartitionLog) {
    let mut writers = Writers::default();
    for i in 0..160_i64 {
        match i * 7 % 11 {
            0 | 3 | 6 | 9 => drop(writers.write(log, i % 4, 1 + (i % 3) as i32).unwrap()),
            1 | 5 => _ = end(log, i % 4, Marker::Abort),
            2 => _ = end(log, i % 4, Marker::Commit),
            _ => drop(fill(log, 1, 60).unwrap()),
        }
    }
    writers.write(log, 1, 1).unwrap();
    fill(log, 3, 10).unwrap();
}

const STOPS: [&str; 3] = ["clean", "killed", "checkpoint, then killed"];

fn end_by(broker: Broker, stop: &str) {
    match stop {
        "clean" => broker.manager.close().unwrap(),
        "killed" => {}
        _ => {
            broker.clock.advance_ms(120_000);
            assert!(broker.manager.run_maintenance().is_empty());
        }
    }
}

#[test]
fn a_committed_reader_stops_before_the_oldest_open_transaction() {
    let dir = scratch();
    let log = Broker::real(dir.path(), LogConfig::default()).unwrap().log;
    let mut writers = Writers::default();
    fill(&log, 2, 1).unwrap();
    writers.write(&log, 1, 2).unwrap();
    writers.write(&log, 2, 1).unwrap();
    fill(&log, 1, 1).unwrap();
    assert_eq!((stable(&log), log.offsets().high_watermark), (2, 6));
    assert_eq!((log.open_transaction(1), log.open_transaction(2)), (Some(2), Some(4)));
    assert_eq!(end(&log, 1, Marker::Commit), 6);
    assert_eq!(stable(&log), 4);
    assert_eq!(log.read(4, 1_000, true, COMMITTED).unwrap().len, 0);
    end(&log, 2, Marker::Abort);
    assert_eq!((stable(&log), log.open_transaction(2)), (8, None));
    let slice = log.read(0, 10_000, true, COMMITTED).unwrap();
    assert_eq!(slice.next_offset, 8);
    let aborted = AbortedTxn { producer_id: 2, first_offset: 4, last_offset: 7, last_stable_offset: 8 };
    assert_eq!(slice.aborted, [aborted]);
    assert!(log.read(0, 10_000, true, ReadUpTo::HighWatermark).unwrap().aborted.is_empty());
}

#[test]
fn every_committed_read_tells_the_aborted_transactions_that_overlap_it_before_and_after_each_kind_of_stop() {
    for stop in STOPS {
        let dir = scratch();
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        mixed(&broker.log);
        assert!(check_reads(&broker.log) > 500);
        end_by(broker, stop);
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        assert!(check_reads(&broker.log) > 500, "{stop}");
    }
}

#[test]
fn an_index_of_aborted_transactions_that_cannot_be_right_is_made_anew() {
    let cases = STOPS.iter().flat_map(|stop| ["cut", "zeros", "order"].map(|damage| (*stop, damage)));
    for (stop, damage) in cases {
        let dir = scratch();
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        mixed(&broker.log);
        end_by(broker, stop);
        let mut hurt = 0;
        for entry in std::fs::read_dir(dir.path().join("flights-0")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|suffix| suffix == "txnindex") {
                let mut bytes = std::fs::read(&path).unwrap();
                match damage {
                    "cut" => drop(bytes.pop()),
                    "zeros" => bytes.fill(0),
                    _ => bytes.extend_from_within(..34),
                }
                std::fs::write(&path, bytes).unwrap();
                hurt += 1;
            }
        }
        assert!(hurt > 2, "{hurt} files");
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        assert!(check_reads(&broker.log) > 500, "{stop}, {damage}");
    }
}

#[test]
fn segments_without_an_aborted_transaction_have_no_file_for_them_and_removed_ones_leave_none() {
    let dir = scratch();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let files = || {
        let names = std::fs::read_dir(dir.path().join("flights-0")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("txnindex")).count()
    };
    let mut writers = Writers::default();
    for _ in 0..40 {
        writers.write(&broker.log, 9, 1).unwrap();
        end(&broker.log, 9, Marker::Commit);
    }
    assert_eq!(files(), 0);
    mixed(&broker.log);
    assert!(files() > 2);
    (0..4).for_each(|id| _ = end(&broker.log, id, Marker::Commit));
    broker.log.delete_records_before(-1).unwrap();
    assert!(files() <= 1, "{} files", files());
    assert_eq!(check_reads(&broker.log), 0);
}

#[test]
fn a_marker_that_is_not_durable_holds_the_stable_offset_of_a_flushed_log_back() {
    let disk = SimDisk::new();
    let config = LogConfig { durability: Durability::Flushed, flush_ms: 1_000_000, ..LogConfig::default() };
    let broker = Broker::on(Arc::new(disk), Path::new("/data"), config).unwrap();
    let log = &broker.log;
    let first = Writers::default().write(log, 1, 1).unwrap();
    durable(log, first.last_offset).unwrap();
    assert_eq!((stable(log), log.offsets().high_watermark), (0, 1));
    let marker = end(log, 1, Marker::Abort);
    assert_eq!((stable(log), log.open_transaction(1)), (0, None), "ended, but nobody may see it yet");
    durable(log, marker).unwrap();
    assert_eq!(stable(log), 2);
    assert_eq!(log.read(0, 1_000, true, COMMITTED).unwrap().aborted.len(), 1);
}

#[test]
fn a_marker_written_meanwhile_makes_a_verification_worthless() {
    let dir = scratch();
    let log = Broker::real(dir.path(), LogConfig::default()).unwrap().log;
    let begun = log.begin_verification(1, 0, 0, false).unwrap();
    assert!(begun.is_some());
    end(&log, 1, Marker::Abort);
    let how = AppendOptions { verified: begun, ..AppendOptions::client(0) };
    let late = log.append(&mut batch(1, 0, 1), how);
    assert!(matches!(late, Err(StorageError::Unverified { .. })), "{late:?}");
    assert!(matches!(
        log.append(&mut batch(1, 0, 1), AppendOptions::client(0)),
        Err(StorageError::Unverified { .. })
    ));
    assert_eq!(log.offsets().log_end_offset, 1, "only the marker");
    Writers::default().write(&log, 1, 1).unwrap();
    assert_eq!(log.begin_verification(1, 0, 1, false).unwrap(), None, "it is open here");
}

#[test]
fn a_control_batch_is_not_taken_from_a_producer() {
    let dir = scratch();
    let log = Broker::real(dir.path(), LogConfig::default()).unwrap().log;
    let mut builder = BatchBuilder::new();
    builder.set_producer(1, 0, 0);
    builder.set_transactional(true);
    builder.set_control(true);
    builder.append(NOW_MS, Some(&[0, 0, 0, 1]), Some(&[0; 6]), &[]).unwrap();
    let refused = log.append(&mut builder.finish(Codec::None).unwrap(), AppendOptions::client(0));
    assert!(matches!(refused, Err(StorageError::InvalidBatch { .. })), "{refused:?}");
}

#[test]
fn an_entry_whose_marker_was_never_written_hides_nothing_of_a_transaction_that_is_committed_later() {
    for at in 0..4 {
        let disk = SimDisk::new();
        let open = || Broker::on(Arc::new(disk.clone()), Path::new("/data"), LogConfig::default()).unwrap();
        let broker = open();
        Writers::default().write(&broker.log, 1, 3).unwrap();
        broker.clock.advance_ms(120_000);
        assert!(broker.manager.run_maintenance().is_empty());
        disk.inject(Fault::Halt(at));
        let cut_short = broker.log.append_marker(abort(1), AppendOptions::coordinator(0));
        drop(broker);
        disk.crash_processes();
        let broker = open();
        if cut_short.is_err() {
            assert_eq!(broker.log.open_transaction(1), Some(0), "halted at {at}");
            end(&broker.log, 1, Marker::Commit);
        }
        assert_eq!(check_reads(&broker.log) > 0, cut_short.is_ok(), "halted at {at}");
    }
}

#[test]
fn among_a_thousand_aborted_transactions_of_one_segment_each_read_finds_its_own() {
    let dir = scratch();
    let log = Broker::real(dir.path(), LogConfig::default()).unwrap().log;
    let mut writers = Writers::default();
    // One that spans all the others keeps the stable offset of their entries at its beginning.
    writers.write(&log, 9, 1).unwrap();
    for i in 0..1_000 {
        writers.write(&log, i % 2, 1).unwrap();
        end(&log, i % 2, Marker::Abort);
        if i == 500 {
            end(&log, 9, Marker::Abort);
        }
    }
    assert!(check_some_reads(&log, 41) > 10_000);
}
