//! A log that is a copy of another cluster's: its bytes and offsets, whatever is sent again; and how that ends.
use pylog_record::batches;
use pylog_record::control::Marker;
use pylog_storage::{AppendOptions, LogConfig, PartitionLog, ReadUpTo, StorageError, TxnMarker};

use crate::support::{Broker, counted, fill, read_all, scratch, small_segments};
use crate::transactions::{Writers, abort, check_reads};

const SOURCE: &str = "another-cluster";
/// The target's own epoch, unlike the source's.
const EPOCH: i32 = 5;

fn mirror_of(source: &str) -> LogConfig {
    LogConfig { mirror_source: source.to_owned(), ..small_segments() }
}

fn how() -> AppendOptions {
    AppendOptions::client(EPOCH)
}

/// Appends what `source` has from `from` on, at most `max_bytes` at once.
fn copy(source: &PartitionLog, target: &PartitionLog, max_bytes: usize) {
    while target.offsets().log_end_offset < source.offsets().log_end_offset {
        let from = target.offsets().log_end_offset;
        let mut bytes = source.read(from, max_bytes, true, ReadUpTo::LogEnd).unwrap().read().unwrap();
        let end = target.append_mirrored(SOURCE, &mut bytes, from, how()).unwrap();
        assert!(end > from && end == target.offsets().log_end_offset);
    }
}

/// All bytes of the batches but for their leader epochs, which are to be `epoch`.
fn bytes_of(log: &PartitionLog, epoch: i32) -> Vec<u8> {
    let offsets = log.offsets();
    let (mut bytes, mut at) = (Vec::new(), offsets.log_start_offset);
    while at < offsets.log_end_offset {
        let slice = log.read(at, 1 << 20, true, ReadUpTo::LogEnd).unwrap();
        for found in batches(&slice.read().unwrap()) {
            let (header, batch) = found.unwrap();
            assert_eq!(header.partition_leader_epoch, epoch);
            header.verify_crc(batch).unwrap();
            bytes.extend_from_slice(&batch[..12]);
            bytes.extend_from_slice(&batch[16..]);
        }
        at = slice.next_offset;
    }
    bytes
}

/// Plain records, and transactions of which one stays open, over several segments.
fn filled(log: &PartitionLog) {
    let mut writers = Writers::default();
    for round in 0..30 {
        fill(log, 3, 40).unwrap();
        writers.write(log, 1 + round % 2, 2).unwrap();
        let marker = if round % 3 == 0 { Marker::Abort } else { Marker::Commit };
        log.append_marker(TxnMarker { marker, ..abort(1 + round % 2) }, AppendOptions::coordinator(0))
            .unwrap();
    }
    writers.write(log, 3, 1).unwrap();
    fill(log, 2, 40).unwrap();
}

#[test]
fn a_mirror_holds_the_sources_bytes_transactions_and_offsets_also_after_a_restart() {
    let dirs = [scratch(), scratch()];
    let source = Broker::real(dirs[0].path(), small_segments()).unwrap();
    filled(&source.log);
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    copy(&source.log, &target.log, 700);
    let wanted = bytes_of(&source.log, 0);
    assert!(bytes_of(&target.log, EPOCH) == wanted);
    let offsets = source.log.offsets();
    assert_eq!(target.log.offsets(), offsets);
    assert!(offsets.last_stable_offset < offsets.log_end_offset, "one transaction is open");
    assert!(check_reads(&target.log) > 0);
    // Killed: nothing is closed.
    drop(target);
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    assert!(bytes_of(&target.log, EPOCH) == wanted);
    assert_eq!(target.log.offsets(), offsets);
    assert!(check_reads(&target.log) > 0);
}

#[test]
fn what_is_sent_again_is_passed_over_and_what_might_be_left_out_is_refused() {
    let dirs = [scratch(), scratch()];
    let source = Broker::real(dirs[0].path(), LogConfig::default()).unwrap();
    for _ in 0..20 {
        fill(&source.log, 5, 10).unwrap();
    }
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    let all = source.log.read(0, 1 << 20, true, ReadUpTo::LogEnd).unwrap().read().unwrap();
    let half: usize = batches(&all).take(7).map(|found| found.unwrap().1.len()).sum();
    for from in [0, 0, 10] {
        assert_eq!(target.log.append_mirrored(SOURCE, &mut all[..half].to_vec(), from, how()).unwrap(), 35);
    }
    let gap = target.log.append_mirrored(SOURCE, &mut all[half..].to_vec(), 36, how());
    assert!(
        matches!(gap, Err(StorageError::OffsetOutOfRange { offset: 36, log_end_offset: 35, .. })),
        "{gap:?}"
    );
    let mut damaged = all.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let refused = target.log.append_mirrored(SOURCE, &mut damaged, 0, how());
    assert!(refused.is_err() || target.log.offsets().log_end_offset < 100, "{refused:?}");
    assert_eq!(target.log.append_mirrored(SOURCE, &mut all.clone(), 0, how()).unwrap(), 100);
    assert_eq!(read_all(&target.log, 0, 1 << 20, ReadUpTo::HighWatermark).unwrap(), counted(0, 100));
}

#[test]
fn a_mirror_leaves_out_what_the_source_leaves_out_and_begins_where_it_does() {
    let dirs = [scratch(), scratch()];
    let source = Broker::real(dirs[0].path(), small_segments()).unwrap();
    for _ in 0..20 {
        fill(&source.log, 5, 10).unwrap();
    }
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    let read = |from| source.log.read(from, 1, true, ReadUpTo::LogEnd).unwrap().read().unwrap();
    // In the middle of a batch: its front comes along.
    let start = 5_000_000_000;
    assert_eq!(target.log.begin_mirrored(SOURCE, 12, how()).unwrap(), 12);
    assert_eq!(target.log.append_mirrored(SOURCE, &mut read(12), 12, how()).unwrap(), 15);
    assert_eq!(target.log.begin_mirrored(SOURCE, start, how()).unwrap(), 15, "it has records");
    assert_eq!(target.log.append_mirrored(SOURCE, &mut read(30), 15, how()).unwrap(), 35);
    let offsets = target.log.offsets();
    assert_eq!((offsets.log_start_offset, offsets.high_watermark), (12, 35));
    let records = |log: &PartitionLog| {
        let slice = log.read(12, 1 << 20, true, ReadUpTo::HighWatermark).unwrap();
        crate::support::values(&slice.read().unwrap())
    };
    let wanted = [counted(10, 15), counted(30, 35)].concat();
    assert_eq!(records(&target.log), wanted);
    drop(target);
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    assert_eq!((records(&target.log), target.log.offsets()), (wanted, offsets));
    let dir = scratch();
    let empty = Broker::real(dir.path(), mirror_of(SOURCE)).unwrap();
    assert_eq!(empty.log.begin_mirrored(SOURCE, start, how()).unwrap(), start);
    assert_eq!((empty.log.offsets().log_start_offset, empty.log.offsets().high_watermark), (start, start));
}

#[test]
fn nobody_but_the_mirror_of_its_source_writes_to_it() {
    let (dir, other) = (scratch(), scratch());
    let target = Broker::real(dir.path(), mirror_of(SOURCE)).unwrap();
    let refused = fill(&target.log, 1, 0).unwrap_err();
    assert!(refused.to_string().contains("pylog mirror promote"), "{refused}");
    let marker = target.log.append_marker(abort(1), AppendOptions::coordinator(0));
    assert!(matches!(marker, Err(StorageError::MirrorOnly { .. })), "{marker:?}");
    for (source, config) in
        [("a-third", mirror_of(SOURCE)), (SOURCE, small_segments()), ("", small_segments())]
    {
        let log = Broker::real(other.path(), config).unwrap().log;
        let refused = log.append_mirrored(source, &mut [], 0, how());
        assert!(matches!(refused, Err(StorageError::OtherSource { .. })), "{refused:?}");
    }
    assert_eq!(target.log.offsets().log_end_offset, 0);
}

#[test]
fn at_its_end_open_transactions_are_aborted_and_the_sources_producers_forgotten_also_after_a_kill() {
    let dirs = [scratch(), scratch()];
    let source = Broker::real(dirs[0].path(), small_segments()).unwrap();
    filled(&source.log);
    let target = Broker::real(dirs[1].path(), mirror_of(SOURCE)).unwrap();
    copy(&source.log, &target.log, 1 << 20);
    assert!(matches!(target.log.end_mirrored("ended", how()), Err(StorageError::OtherSource { .. })));
    target.log.update_config(mirror_of("ended"));
    let end = target.log.end_mirrored("ended", how()).unwrap();
    assert_eq!(end, source.log.offsets().log_end_offset + 2, "an abort and the end");
    assert_eq!(target.log.offsets().last_stable_offset, end);
    assert_eq!(target.log.producers(), []);
    drop(target);
    let target = Broker::real(dirs[1].path(), small_segments()).unwrap();
    assert_eq!(target.log.producers(), []);
    assert!(check_reads(&target.log) > 0);
    // A producer of this cluster that has the id of one of the source begins with its first sequence.
    let done = Writers::default().write(&target.log, 1, 2).unwrap();
    assert_eq!((done.base_offset, done.duplicate), (end, false));
}
