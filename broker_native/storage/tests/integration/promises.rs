//! Durability, time, retention, DeleteRecords, epochs, producers: one promise a test.
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use pylog_record::{BatchBuilder, Codec};
use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::types::RetentionLimit;
use pylog_storage::{
    AppendOptions, CleanupPolicy, Durability, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo,
    RealDisk, StorageError, TimestampType,
};
use pylog_testkit::sim::SimDisk;
use uuid::Uuid;

use crate::support::{
    Broker, NOW_MS, TOPIC, append, batch, batch_at, counted, durable, fill, manager_config, read_all,
    small_segments,
};

const UPTO: ReadUpTo = ReadUpTo::HighWatermark;
const DAY_MS: i64 = 86_400_000;

/// A log whose records carry the clock's time, with producers' timestamps of any age allowed.
fn any_time() -> LogConfig {
    LogConfig { message_timestamp_after_max_ms: i64::MAX, ..small_segments() }
}

#[test]
fn one_flush_serves_many_producers_and_nothing_is_visible_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let config = ManagerConfig { flush_threads: 2, ..ManagerConfig::default() };
    let manager = LogManager::open(Arc::new(RealDisk), clock, dir.path(), config).unwrap();
    let flushed = LogConfig { durability: Durability::Flushed, ..LogConfig::default() };
    let log = manager.open_partition(TOPIC, 0, Uuid::from_u128(7), flushed, Role::Alone, 0).unwrap();
    let seen = Arc::new(AtomicI64::new(0));
    let highest = seen.clone();
    log.on_advance(Arc::new(move |offset| {
        highest.fetch_max(offset, Ordering::SeqCst);
    }));
    let (start, (sender, done)) = (Barrier::new(8), mpsc::channel());
    std::thread::scope(|scope| {
        for producer in 0..8 {
            let (log, start, sender) = (&log, &start, sender.clone());
            scope.spawn(move || {
                start.wait();
                for i in 0..50 {
                    let appended = append(log, batch(producer * 1_000 + i, 2, 10)).unwrap();
                    let (sender, watched) = (sender.clone(), log.clone());
                    let last = appended.last_offset;
                    log.wait_durable(
                        last,
                        Box::new(move |result| {
                            assert!(
                                watched.offsets().high_watermark > last,
                                "acknowledged before it is visible"
                            );
                            sender.send(result).unwrap();
                        }),
                    );
                }
            });
        }
    });
    for _ in 0..400 {
        done.recv().unwrap().unwrap();
    }
    assert!(done.try_recv().is_err(), "a callback was called twice");
    assert_eq!(log.offsets().high_watermark, 800);
    // Listeners are called after who waits, by the thread that flushes, which the close waits for.
    manager.close().unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 800);
}

#[test]
fn a_flushed_record_is_not_visible_before_somebody_flushed_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { durability: Durability::Flushed, ..LogConfig::default() };
    let broker = Broker::real(dir.path(), config.clone()).unwrap();
    let appended = fill(&broker.log, 4, 10).unwrap();
    assert_eq!(broker.log.offsets().high_watermark, 0);
    assert_eq!(broker.log.read(0, 1_000, true, UPTO).unwrap().len, 0);
    assert!(broker.log.read(0, 1_000, true, ReadUpTo::LogEnd).unwrap().len > 0);
    durable(&broker.log, appended.last_offset).unwrap();
    assert_eq!(read_all(&broker.log, 0, 1_000, UPTO).unwrap(), counted(0, 4));
    fill(&broker.log, 2, 10).unwrap();
    broker.log.update_config(LogConfig { durability: Durability::PageCache, ..config });
    assert_eq!(broker.log.offsets().high_watermark, 6, "nobody has to wait any more");
}

#[test]
fn a_timestamp_leads_to_the_first_record_that_is_not_older() {
    // Several batches for each entry of an index, and some behind the last one of a segment.
    let config = || LogConfig { index_interval_bytes: 900, ..any_time() };
    let stops = ["stopped", "killed", "killed when all was on the device"];
    for (codec, stop) in
        [Codec::None, Codec::Zstd].into_iter().flat_map(|codec| stops.map(|stop| (codec, stop)))
    {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::real(dir.path(), config()).unwrap();
        let mut all = Vec::new();
        for i in 0..60_i64 {
            // Not in order: each batch begins a little before the one before it ends.
            let mut builder = BatchBuilder::new();
            for j in 0..4 {
                let timestamp = NOW_MS + i * 100 + [0, 250, 60, 130][j];
                all.push((i * 4 + j as i64, timestamp));
                builder.append(timestamp, None, Some(&[b'x'; 40]), &[]).unwrap();
            }
            append(&broker.log, builder.finish(codec).unwrap()).unwrap();
        }
        let first = |wanted: i64| all.iter().copied().find(|(_, timestamp)| *timestamp >= wanted);
        let newest = all.iter().map(|(_, timestamp)| *timestamp).max().unwrap();
        let check = |broker: &Broker, state: &str| {
            for wanted in (NOW_MS - 50..NOW_MS + 6_500).step_by(7) {
                let found = broker.log.offset_for_timestamp(wanted).unwrap();
                assert_eq!(found, first(wanted), "{codec:?} {wanted} {stop}, {state}");
            }
            assert_eq!(
                broker.log.max_timestamp_offset().unwrap(),
                first(newest),
                "{codec:?} {stop}, {state}"
            );
        };
        check(&broker, "running");
        match stop {
            "stopped" => broker.manager.close().unwrap(),
            "killed" => {}
            _ => {
                broker.clock.advance_ms(120_000);
                assert!(broker.manager.run_maintenance().is_empty());
            }
        }
        drop(broker);
        let broker = Broker::real(dir.path(), config()).unwrap();
        check(&broker, "opened again");
        broker.manager.close().unwrap();
        // What recovery has written is all that is known then.
        check(&Broker::real(dir.path(), config()).unwrap(), "stopped and opened again");
    }
}

#[test]
fn append_time_replaces_the_producers_and_the_crc_fits() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { message_timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let broker = Broker::real(dir.path(), config).unwrap();
    broker.clock.advance_ms(5_000);
    let appended = append(&broker.log, batch_at(0, 3, 5, 1)).unwrap();
    assert_eq!(appended.log_append_time_ms, NOW_MS + 5_000);
    assert_eq!(read_all(&broker.log, 0, 1_000, UPTO).unwrap(), counted(0, 3), "read_all checks the CRC");
    assert_eq!(broker.log.offset_for_timestamp(2).unwrap(), Some((0, NOW_MS + 5_000)));
}

#[test]
fn a_timestamp_outside_the_allowed_range_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { message_timestamp_before_max_ms: DAY_MS, ..LogConfig::default() };
    let broker = Broker::real(dir.path(), config).unwrap();
    for (timestamp, fits) in [
        (NOW_MS - DAY_MS, true),
        (NOW_MS - DAY_MS - 1, false),
        (NOW_MS + 3_600_001, false),
        (/* none */ -1, true),
        (-2, false),
    ] {
        let done = append(&broker.log, batch_at(0, 1, 1, timestamp));
        assert_eq!(done.is_ok(), fits, "{timestamp}: {done:?}");
        assert!(fits || matches!(done, Err(StorageError::InvalidTimestamp { .. })));
    }
}

/// Files of the partition with this suffix.
fn count(broker: &Broker, suffix: &str) -> usize {
    let names = std::fs::read_dir(broker.log.dir()).unwrap();
    names.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(suffix)).count()
}

#[test]
fn retention_by_time_removes_whole_old_segments_and_rolls_an_old_active_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { retention_ms: DAY_MS, segment_ms: 10 * DAY_MS, ..any_time() };
    let broker = Broker::real(dir.path(), config).unwrap();
    (0..30).for_each(|_| drop(fill(&broker.log, 3, 30)));
    assert!(broker.manager.run_maintenance().is_empty());
    assert_eq!(broker.log.offsets().log_start_offset, 0, "nothing is old");
    broker.clock.advance_ms(DAY_MS + 10_000);
    assert!(broker.manager.run_maintenance().is_empty());
    let offsets = broker.log.offsets();
    assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (90, 90), "all is old");
    assert_eq!((count(&broker, ".log"), broker.log.size_bytes()), (1, 0));
    let outside = broker.log.read(89, 100, true, UPTO);
    assert!(matches!(outside, Err(StorageError::OffsetOutOfRange { log_start_offset: 90, .. })));
    assert_eq!(fill(&broker.log, 1, 1).unwrap().base_offset, 90);
}

#[test]
fn retention_by_size_keeps_at_least_so_many_bytes_and_compact_topics_keep_all() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { retention_bytes: 5_000, ..any_time() };
    let broker = Broker::real(dir.path(), config.clone()).unwrap();
    (0..60).for_each(|_| drop(fill(&broker.log, 3, 30)));
    let compact = CleanupPolicy { delete: false, compact: true };
    broker.log.update_config(LogConfig { cleanup_policy: compact, ..config.clone() });
    let before = broker.log.size_bytes();
    broker.manager.run_maintenance();
    assert_eq!(broker.log.size_bytes(), before);
    broker.log.update_config(config.clone());
    broker.manager.run_maintenance();
    let left = broker.log.size_bytes();
    assert!((5_000..7_000).contains(&left), "{left} of {before} bytes are left");
    let start = broker.log.offsets().log_start_offset;
    assert_eq!(read_all(&broker.log, start, 500, UPTO).unwrap(), counted(start, 180));
    drop(broker);
    let broker = Broker::real(dir.path(), config).unwrap();
    assert_eq!(broker.log.offsets().log_start_offset, start, "the start is kept by a kill");
}

#[test]
fn what_retention_removes_is_reported_once_with_its_offsets_bytes_and_limit() {
    let by_size = (LogConfig { retention_bytes: 2_000, ..any_time() }, RetentionLimit::Bytes(2_000));
    let by_time = (LogConfig { retention_ms: 1_000, ..any_time() }, RetentionLimit::ForMs(1_000));
    for (config, limit) in [by_size, by_time] {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::real(dir.path(), config).unwrap();
        (0..60).for_each(|_| drop(fill(&broker.log, 3, 30)));
        let (sender, receiver) = std::sync::mpsc::channel();
        broker.manager.on_retired(Box::new(move |retired| sender.send(retired.clone()).unwrap()));
        let before = broker.log.size_bytes();
        broker.clock.advance_ms(10_000);
        assert!(broker.manager.run_maintenance().is_empty());
        let retired = receiver.try_recv().unwrap();
        assert_eq!((retired.at.to_string(), retired.limit), ("flights-0".into(), limit));
        assert_eq!(retired.offsets, 0..broker.log.offsets().log_start_offset);
        assert_eq!(retired.bytes, before - broker.log.size_bytes());
        assert!(retired.segments > 0 && retired.bytes > 0);
        broker.manager.run_maintenance();
        assert!(receiver.try_recv().is_err(), "nothing more was removed");
    }
}

#[test]
fn retention_waits_for_its_interval_and_not_for_a_clock_that_was_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ManagerConfig { retention_check_interval_ms: 300_000, ..manager_config() };
    let config = LogConfig { retention_bytes: 2_000, ..any_time() };
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let broker = Broker::with(clock, Arc::new(RealDisk), dir.path(), settings, config).unwrap();
    let removed = |after_ms| {
        (0..60).for_each(|_| drop(fill(&broker.log, 3, 30)));
        let start = broker.log.offsets().log_start_offset;
        broker.clock.advance_ms(after_ms);
        assert!(broker.manager.run_maintenance().is_empty());
        broker.log.offsets().log_start_offset > start
    };
    assert!(removed(0), "the first time at once");
    assert!(!removed(60_000));
    assert!(!removed(239_999));
    assert!(removed(1));
    assert!(removed(-3_600_000));
}

#[test]
fn a_reader_goes_on_in_a_removed_segment_and_its_files_go_after_the_delay() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { retention_bytes: 2_000, file_delete_delay_ms: 5_000, ..any_time() };
    let broker = Broker::real(dir.path(), config).unwrap();
    (0..60).for_each(|_| drop(fill(&broker.log, 3, 30)));
    let slice = broker.log.read(0, 1_000, true, UPTO).unwrap();
    broker.manager.run_maintenance();
    assert!(count(&broker, ".deleted") > 0);
    broker.clock.advance_ms(5_001);
    broker.manager.run_maintenance();
    assert_eq!(count(&broker, ".deleted"), 0);
    assert_eq!(crate::support::values(&slice.read().unwrap())[0], (0, "0".into()));
}

#[test]
fn deleted_records_stay_deleted_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    (0..40).for_each(|_| drop(fill(&broker.log, 3, 30)));
    assert!(matches!(broker.log.delete_records_before(121), Err(StorageError::OffsetOutOfRange { .. })));
    assert_eq!(broker.log.delete_records_before(50).unwrap(), 50);
    assert_eq!(broker.log.delete_records_before(20).unwrap(), 50, "the start never goes back");
    assert!(broker.log.read(49, 100, true, UPTO).is_err());
    drop(broker);
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    assert_eq!(broker.log.offsets().log_start_offset, 50);
    let mut seen = read_all(&broker.log, 50, 500, UPTO).unwrap();
    seen.retain(|(offset, _)| *offset >= 50);
    assert_eq!(seen, counted(50, 120));
    assert_eq!(broker.log.delete_records_before(-1).unwrap(), 120);
    drop(broker);
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let offsets = broker.log.offsets();
    assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (120, 120));
}

#[test]
fn an_epoch_begins_with_its_first_record_and_survives() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let in_epoch = |log: &PartitionLog, leader_epoch| {
        let how = AppendOptions::client(leader_epoch);
        log.append(&mut batch(log.offsets().log_end_offset, 5, 20), how).unwrap();
    };
    in_epoch(&broker.log, 0);
    broker.log.set_role(Role::Alone, 2).unwrap();
    broker.log.set_role(Role::Alone, 3).unwrap();
    in_epoch(&broker.log, 3);
    in_epoch(&broker.log, 7);
    let expected = |log: &PartitionLog| {
        assert_eq!(log.epoch_end_offset(0), Some((0, 5)));
        assert_eq!(log.epoch_end_offset(2), Some((0, 5)), "epoch 2 has no record");
        assert_eq!(log.epoch_end_offset(3), Some((3, 10)));
        assert_eq!(log.epoch_end_offset(9), None, "of the future");
    };
    expected(&broker.log);
    drop(broker);
    let after_kill = Broker::real(dir.path(), small_segments()).unwrap();
    expected(&after_kill.log);
    after_kill.manager.close().unwrap();
    drop(after_kill);
    expected(&Broker::real(dir.path(), small_segments()).unwrap().log);
}

/// The batch of an idempotent producer.
fn idempotent(sequence: i32, epoch: i16) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.append(NOW_MS, None, Some(&[b'x'; 50]), &[]).unwrap();
    builder.set_producer(77, epoch, sequence);
    builder.finish(Codec::None).unwrap()
}

#[test]
fn a_retry_is_answered_with_its_first_offset_after_rolls_stops_and_kills() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        for sequence in (0..round * 20).rev().take(5) {
            let again = append(&broker.log, idempotent(sequence, 0)).unwrap();
            assert_eq!((again.duplicate, again.base_offset), (true, sequence.into()), "round {round}");
        }
        for sequence in round * 20..(round + 1) * 20 {
            assert!(!append(&broker.log, idempotent(sequence, 0)).unwrap().duplicate);
        }
        let gap = append(&broker.log, idempotent((round + 1) * 20 + 1, 0));
        assert!(matches!(gap, Err(StorageError::OutOfOrderSequence { .. })), "{gap:?}");
        if round % 2 == 0 {
            broker.manager.close().unwrap();
        }
    }
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    append(&broker.log, idempotent(0, 1)).unwrap();
    let fenced = append(&broker.log, idempotent(120, 0));
    assert!(
        matches!(fenced, Err(StorageError::InvalidProducerEpoch { found: 0, current: 1, .. })),
        "{fenced:?}"
    );
}

#[test]
fn a_topic_that_was_made_again_is_not_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    (0..20).for_each(|_| drop(fill(&broker.log, 3, 30)));
    let other = Uuid::from_u128(8);
    broker.manager.close().unwrap();
    drop(broker);
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let manager = LogManager::open(Arc::new(RealDisk), clock, dir.path(), manager_config()).unwrap();
    let mixed = manager.open_partition(TOPIC, 0, other, small_segments(), Role::Alone, 0);
    assert!(matches!(mixed, Err(StorageError::Mismatch { .. })));
    manager.remove_partition(TOPIC, 0).unwrap();
    assert!(matches!(manager.remove_partition(TOPIC, 0), Err(StorageError::NotFound { .. })));
    let log = manager.open_partition(TOPIC, 0, other, small_segments(), Role::Alone, 0).unwrap();
    assert_eq!(log.offsets().log_end_offset, 0);
    assert_eq!(manager.partitions_on_disk().unwrap().len(), 1);
}

#[test]
fn a_topic_of_many_partitions_is_removed_with_a_few_changes_of_the_disk_beside_the_renames() {
    let disk = SimDisk::new();
    let broker =
        Broker::on(Arc::new(disk.clone()), std::path::Path::new("/data"), LogConfig::default()).unwrap();
    let open = |partition| {
        let id = Uuid::from_u128(7);
        broker.manager.open_partition(TOPIC, partition, id, LogConfig::default(), Role::Alone, 0).unwrap()
    };
    for partition in 0..50 {
        fill(&open(partition), 1, 1).unwrap();
    }
    broker.clock.advance_ms(120_000);
    assert!(broker.manager.run_maintenance().is_empty(), "all have a recovery point");
    let before = disk.changes();
    broker.manager.remove_partitions(TOPIC, 0..50).unwrap();
    assert!(disk.changes() - before < 50 + 20, "{} changes", disk.changes() - before);
    assert!(broker.manager.partitions_on_disk().unwrap().is_empty());
    let gone = broker.manager.remove_partitions(TOPIC, 0..2);
    assert!(matches!(gone, Err(StorageError::NotFound { .. })), "{gone:?}");
}

#[test]
fn a_directory_of_another_cluster_or_node_is_refused() {
    let disk = Arc::new(SimDisk::new());
    let open = |cluster_id: &str, node_id| {
        let config = ManagerConfig { cluster_id: cluster_id.into(), node_id, ..manager_config() };
        let clock = Arc::new(ManualClock::at(NOW_MS));
        LogManager::open(disk.clone(), clock, std::path::Path::new("/data"), config)
    };
    let cluster_id = open("", 1).unwrap().cluster_id().to_owned();
    assert_eq!(cluster_id.len(), 22);
    assert_eq!(open("", 1).unwrap().cluster_id(), cluster_id);
    assert!(open(&cluster_id, 1).is_ok());
    assert!(matches!(open("other", 1), Err(StorageError::Mismatch { .. })));
    assert!(matches!(open("", 2), Err(StorageError::Mismatch { .. })));
}

#[test]
fn a_topic_name_cannot_leave_the_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), LogConfig::default()).unwrap();
    let long = "x".repeat(250);
    for name in ["", ".", "..", "../x", "a/b", "a\0b", "ü", "a b", &long] {
        let made = broker.manager.open_partition(name, 0, Uuid::nil(), LogConfig::default(), Role::Alone, 0);
        assert!(matches!(made, Err(StorageError::InvalidTopic { .. })), "{name:?}");
    }
}

#[test]
fn a_segment_is_rolled_by_size_age_and_full_index() {
    let full_index = LogConfig { segment_index_bytes: 40, index_interval_bytes: 100, ..any_time() };
    let old = LogConfig { segment_ms: 1_000, segment_bytes: 1 << 30, ..any_time() };
    for (config, step_ms) in
        [(any_time(), 0), (LogConfig { segment_bytes: 1 << 30, ..full_index }, 0), (old, 300)]
    {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::real(dir.path(), config).unwrap();
        for i in 0..40 {
            broker.clock.advance_ms(step_ms);
            append(&broker.log, batch_at(i * 3, 3, 30, NOW_MS + i * step_ms)).unwrap();
        }
        let segments = count(&broker, ".log");
        assert!((4..40).contains(&segments), "{segments} segments");
        assert_eq!(read_all(&broker.log, 0, 900, UPTO).unwrap(), counted(0, 120));
    }
}

#[test]
fn an_idle_segment_is_rolled_by_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let broker =
        Broker::real(dir.path(), LogConfig { segment_ms: 1_000, preallocate: true, ..any_time() }).unwrap();
    fill(&broker.log, 3, 30).unwrap();
    broker.manager.run_maintenance();
    assert_eq!(count(&broker, ".log"), 1);
    broker.clock.advance_ms(1_500);
    broker.manager.run_maintenance();
    broker.clock.advance_ms(1_500);
    broker.manager.run_maintenance();
    assert_eq!(count(&broker, ".log"), 2, "an empty segment is not rolled");
}
