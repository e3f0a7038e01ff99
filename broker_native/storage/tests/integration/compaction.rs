//! Compaction over a real directory: what a reader of the cleaned log sees.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use pylog_record::compression::decompress;
use pylog_record::{BatchBuilder, BatchHeader, Codec, HeaderRef, batches, records};
use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    CleanerConfig, Cleaning, CleanupPolicy, Durability, LogConfig, Pace, PartitionLog, ReadUpTo, StorageError,
};
use pylog_testkit::sim::{Fault, SimDisk};

use super::support::{Broker, NOW_MS, append, scratch};

/// A record: offset, timestamp, key, value.
type Row = (i64, i64, String, Option<String>);

/// Full speed.
pub struct Free;

impl Pace for Free {
    fn step(&self, _bytes: u64) -> bool {
        true
    }
}

pub fn memory() -> CleanerConfig {
    CleanerConfig { dedupe_bytes: 1 << 20, load_factor: 0.9, io_bytes: 1_000 }
}

pub fn compacted() -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy { delete: false, compact: true },
        segment_bytes: 1_000,
        index_interval_bytes: 200,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: 1_000,
        file_delete_delay_ms: 0,
        message_timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    }
}

/// A batch of keys and values; the header of each record names its key.
fn keyed(rows: &[(&str, Option<&str>)], codec: Codec, timestamp_ms: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (key, value) in rows {
        let header = HeaderRef { key: b"of", value: Some(key.as_bytes()) };
        let value = value.map(str::as_bytes);
        builder.append(timestamp_ms, Some(key.as_bytes()), value, &[header]).unwrap();
    }
    builder.finish(codec).unwrap()
}

fn put(log: &PartitionLog, key: &str, value: Option<&str>) -> i64 {
    append(log, keyed(&[(key, value)], Codec::None, NOW_MS)).unwrap().base_offset
}

/// Batches, and records, of all that a reader sees.
fn read(log: &PartitionLog) -> (Vec<BatchHeader>, Vec<Row>) {
    let (mut headers, mut rows) = (Vec::new(), Vec::new());
    let mut offset = log.offsets().log_start_offset;
    while offset < log.offsets().high_watermark {
        let slice = log.read(offset, 700, true, ReadUpTo::HighWatermark).unwrap();
        assert!(slice.len > 0 && slice.next_offset > offset, "nothing at {offset}");
        for found in batches(&slice.read().unwrap()) {
            let (header, bytes) = found.unwrap();
            header.verify_crc(bytes).unwrap();
            let codec = Codec::from_attributes(header.attributes).unwrap();
            let body = decompress(codec, &bytes[61..], 1 << 20).unwrap();
            for record in records(&body, &header) {
                let record = record.unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let key = record.key.map(text).unwrap();
                let named: Vec<_> = record.headers.iter().map(|h| text(h.unwrap().value.unwrap())).collect();
                assert!(named.iter().all(|name| *name == key), "the headers stay with their record");
                rows.push((record.offset, record.timestamp, key, record.value.map(text)));
            }
            headers.push(header);
        }
        offset = slice.next_offset;
    }
    (headers, rows)
}

/// Key -> value at the end; deleted keys are not there.
fn table(rows: &[Row]) -> BTreeMap<String, String> {
    let mut table = BTreeMap::new();
    for (_, _, key, value) in rows {
        match value {
            Some(value) => table.insert(key.clone(), value.clone()),
            None => table.remove(key),
        };
    }
    table
}

fn clean(broker: &Broker) -> Cleaning {
    broker.manager.clean_dirtiest(&memory(), &Free)
}

/// Cleans until nothing is dirty.
fn clean_all(broker: &Broker) {
    for _ in 0..1_000 {
        match clean(broker) {
            Cleaning::Done(..) => {}
            Cleaning::Nothing => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it never ends");
}

fn real(dir: &Path, config: LogConfig) -> Broker {
    Broker::real(dir, config).unwrap()
}

/// Sixty values of three keys, over several segments.
fn filled(dir: &Path) -> Broker {
    let broker = real(dir, compacted());
    for i in 0..60 {
        put(&broker.log, ["a", "b", "c"][i % 3], Some(&format!("value {i}")));
    }
    broker
}

#[test]
fn of_each_key_the_last_record_stays_where_it_was() {
    let dir = scratch();
    let broker = filled(dir.path());
    let (_, before) = read(&broker.log);
    let (size, end) = (broker.log.size_bytes(), broker.log.offsets());
    let Cleaning::Done(at, stats) = clean(&broker) else { panic!("nothing was cleaned") };
    assert_eq!(&at, broker.log.topic_partition());
    let (_, after) = read(&broker.log);
    assert_eq!(table(&after), table(&before));
    assert!(after.iter().all(|row| before.contains(row)), "a record changed");
    assert!(after.iter().zip(after.iter().skip(1)).all(|(a, b)| a.0 < b.0));
    assert!(broker.log.size_bytes() < size / 2, "{size} bytes became {}", broker.log.size_bytes());
    assert_eq!(stats.records_removed, (before.len() - after.len()) as u64);
    assert_eq!(broker.log.offsets(), end);
    assert!(matches!(clean(&broker), Cleaning::Nothing));
}

/// Removes the partition's files with these suffixes.
fn remove_files(dir: &Path, suffixes: &[&str]) {
    for entry in std::fs::read_dir(dir.join("flights-0")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|found| suffixes.iter().any(|suffix| found == *suffix)) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_cleaned_log_opens_again_cleanly_after_a_kill_and_without_its_indexes() {
    let dir = scratch();
    let broker = filled(dir.path());
    clean_all(&broker);
    let mut expected = read(&broker.log);
    broker.manager.close().unwrap();
    drop(broker);
    for turn in 0..4 {
        if turn > 1 {
            remove_files(dir.path(), &["index", "timeindex"]);
        }
        let broker = real(dir.path(), compacted());
        assert!(broker.log.cut_tail().is_none());
        assert_eq!(read(&broker.log), expected, "turn {turn}");
        assert_eq!(put(&broker.log, "z", Some("new")), 60 + turn);
        expected = read(&broker.log);
        if turn % 2 == 0 {
            broker.manager.close().unwrap();
        }
    }
}

#[test]
fn a_topic_that_was_compacted_once_is_no_damage_when_it_no_longer_is() {
    let dir = scratch();
    let broker = filled(dir.path());
    clean_all(&broker);
    let (_, rows) = read(&broker.log);
    broker.manager.close().unwrap();
    drop(broker);
    let plain = LogConfig { cleanup_policy: LogConfig::default().cleanup_policy, ..compacted() };
    for _ in 0..2 {
        // The second time after a kill.
        let broker = real(dir.path(), plain.clone());
        assert_eq!(read(&broker.log).1, rows);
        for offset in 0..60 {
            let slice = broker.log.read(offset, 10_000, true, ReadUpTo::HighWatermark).unwrap();
            assert!(slice.next_offset > offset);
        }
        let found = broker.log.offset_for_timestamp(NOW_MS).unwrap();
        assert_eq!(found, Some((rows[0].0, NOW_MS)));
    }
}

#[test]
fn an_offset_that_was_compacted_away_gives_the_next_batch() {
    let dir = scratch();
    let broker = filled(dir.path());
    clean_all(&broker);
    let (headers, _) = read(&broker.log);
    for offset in 0..60 {
        let slice = broker.log.read(offset, 10_000, true, ReadUpTo::HighWatermark).unwrap();
        let first = batches(&slice.read().unwrap()).next().unwrap().unwrap().0;
        let expected = headers.iter().find(|header| header.last_offset() >= offset).unwrap();
        assert_eq!(first.base_offset, expected.base_offset, "offset {offset}");
    }
}

#[test]
fn segments_that_became_small_become_one() {
    let dir = scratch();
    let broker = filled(dir.path());
    let segments = |dir: &Path| {
        let names = std::fs::read_dir(dir.join("flights-0")).unwrap();
        names.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|s| s == "log")).count()
    };
    clean_all(&broker);
    let before = segments(dir.path());
    for i in 0..30 {
        put(&broker.log, "a", Some(&format!("value {i}")));
    }
    let Cleaning::Done(_, stats) = clean(&broker) else { panic!("nothing was cleaned") };
    assert!(stats.segments_before > stats.segments_after + 1, "{stats:?}");
    assert!(segments(dir.path()) < before + 2, "{before} became {}", segments(dir.path()));
}

#[test]
fn who_reads_is_not_disturbed() {
    let dir = scratch();
    let broker = filled(dir.path());
    let slices: Vec<_> = (0..60)
        .step_by(7)
        .map(|offset| broker.log.read(offset, 300, true, ReadUpTo::HighWatermark).unwrap())
        .collect();
    let before: Vec<_> = slices.iter().map(|slice| slice.read().unwrap()).collect();
    clean_all(&broker);
    let after: Vec<_> = slices.iter().map(|slice| slice.read().unwrap()).collect();
    assert!(before == after, "the files that a reader holds are those it found");
    for slice in slices {
        // Where a reader goes on: the position it came to means nothing in the new segment.
        let next = broker.log.read(slice.next_offset, 300, true, ReadUpTo::HighWatermark).unwrap();
        batches(&next.read().unwrap()).for_each(|batch| {
            let (header, bytes) = batch.unwrap();
            header.verify_crc(bytes).unwrap();
        });
    }
}

#[test]
fn readers_of_all_offsets_go_on_while_segments_are_replaced() {
    let dir = scratch();
    let broker = real(dir.path(), LogConfig { segment_bytes: 400, ..compacted() });
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (log, done) = (&broker.log, &done);
            scope.spawn(move || {
                let mut offset = reader;
                while done.load(Ordering::Relaxed) == 0 {
                    let end = log.offsets().high_watermark;
                    let slice = log.read(offset.min(end), 500, true, ReadUpTo::HighWatermark).unwrap();
                    slice.read().unwrap();
                    offset = if slice.next_offset >= end { 0 } else { slice.next_offset };
                    log.offset_for_timestamp(NOW_MS).unwrap();
                }
            });
        }
        for i in 0..400 {
            put(&broker.log, &format!("{}", i % 5), Some(&format!("value {i}")));
            if i % 20 == 0 {
                clean_all(&broker);
            }
        }
        done.store(1, Ordering::Relaxed);
    });
    assert_eq!(table(&read(&broker.log).1).len(), 5);
}

#[test]
fn a_tombstone_stays_until_its_time_is_over_and_then_goes() {
    let dir = scratch();
    let broker = real(dir.path(), compacted());
    let rounds = |broker: &Broker| {
        for i in 0..20 {
            put(&broker.log, "other", Some(&format!("{i}")));
        }
        clean_all(broker);
        read(&broker.log)
    };
    put(&broker.log, "k", Some("v"));
    let tombstone = put(&broker.log, "k", None);
    let has_it = |rows: &[Row]| rows.iter().any(|row| row.0 == tombstone && row.2 == "k" && row.3.is_none());
    let (headers, rows) = rounds(&broker);
    assert!(has_it(&rows) && !rows.iter().any(|row| row.3.as_deref() == Some("v")));
    let header = headers.iter().find(|header| header.last_offset() == tombstone).unwrap();
    assert_eq!(header.delete_horizon_ms(), Some(NOW_MS + 1_000));
    broker.clock.advance_ms(999);
    assert!(has_it(&rounds(&broker).1), "before the horizon");
    broker.clock.advance_ms(1);
    assert!(!has_it(&rounds(&broker).1), "behind the horizon");
}

#[test]
fn young_records_and_the_active_segment_stay() {
    let dir = scratch();
    let config = LogConfig { min_compaction_lag_ms: 5_000, ..compacted() };
    let broker = real(dir.path(), config);
    for i in 0..40 {
        put(&broker.log, "k", Some(&format!("{i}")));
    }
    assert!(matches!(clean(&broker), Cleaning::Nothing), "all is younger");
    broker.clock.advance_ms(6_000);
    let active = put(&broker.log, "k", Some("new"));
    clean_all(&broker);
    let rows = read(&broker.log).1;
    assert!(rows.len() > 1 && rows.len() < 40, "the active segment keeps older values of the key");
    assert_eq!(rows.last().map(|row| row.0), Some(active));
}

#[test]
fn records_that_are_not_acknowledged_are_not_cleaned() {
    let dir = scratch();
    let broker = real(dir.path(), LogConfig { durability: Durability::Flushed, ..compacted() });
    for i in 0..40 {
        put(&broker.log, "k", Some(&format!("{i}")));
    }
    assert_eq!(broker.log.offsets().high_watermark, 0);
    assert!(matches!(clean(&broker), Cleaning::Nothing));
    broker.log.sync().unwrap();
    clean_all(&broker);
    let rows = read(&broker.log).1;
    assert!(rows.len() < 40, "{}", rows.len());
    assert_eq!(rows.last().map(|row| row.0), Some(39));
}

#[test]
fn little_memory_means_more_rounds_and_the_same_end() {
    let dir = scratch();
    let broker = real(dir.path(), compacted());
    for i in 0..300 {
        put(&broker.log, &format!("key {}", i % 70), Some(&format!("{i}")));
    }
    let before = table(&read(&broker.log).1);
    let small = CleanerConfig { dedupe_bytes: 24 * 20, ..memory() };
    let mut rounds = 0;
    while let Cleaning::Done(_, stats) = broker.manager.clean_dirtiest(&small, &Free) {
        assert!(stats.map_bytes <= 24 * 20);
        rounds += 1;
    }
    assert!(rounds > 3, "{rounds}");
    let (_, rows) = read(&broker.log);
    assert_eq!(table(&rows), before);
    assert!(rows.len() < 150, "{}", rows.len());
}

#[test]
fn the_last_batch_of_a_producer_is_known_although_its_records_are_gone() {
    let dir = scratch();
    let broker = real(dir.path(), compacted());
    let sent = |sequence: i32, key: &str| {
        let mut builder = BatchBuilder::new();
        builder.set_producer(7, 0, sequence);
        for _ in 0..3 {
            builder.append(NOW_MS, Some(key.as_bytes()), Some(b"v"), &[]).unwrap();
        }
        builder.finish(Codec::None).unwrap()
    };
    append(&broker.log, sent(0, "k")).unwrap();
    let last = append(&broker.log, sent(3, "k")).unwrap();
    for i in 0..60 {
        put(&broker.log, "k", Some(&format!("{i}")));
    }
    clean_all(&broker);
    let (headers, rows) = read(&broker.log);
    assert!(!rows.iter().any(|row| row.0 <= last.last_offset));
    let kept: Vec<_> = headers.iter().filter(|header| header.producer_id == 7).collect();
    assert_eq!(kept.len(), 1, "only the last");
    assert_eq!((kept[0].records_count, kept[0].last_offset()), (0, last.last_offset));
    drop(broker);
    remove_files(dir.path(), &["snapshot"]);
    let broker = real(dir.path(), compacted());
    let again = append(&broker.log, sent(3, "k")).unwrap();
    assert!(again.duplicate, "{again:?}");
    assert_eq!(again.last_offset, last.last_offset);
    assert!(append(&broker.log, sent(9, "k")).is_err(), "a gap");
    assert!(!append(&broker.log, sent(6, "k")).unwrap().duplicate);
}

#[test]
fn batches_that_nobody_can_read_stay_as_they_are() {
    let dir = scratch();
    let broker = real(dir.path(), compacted());
    let mut odd = keyed(&[("k", Some("v"))], Codec::None, NOW_MS);
    // Claims to be compressed, with a right checksum.
    odd[22] |= 4;
    let crc = crc32c::crc32c(&odd[21..]);
    odd[17..21].copy_from_slice(&crc.to_be_bytes());
    let at = append(&broker.log, odd.clone()).unwrap().base_offset;
    for i in 0..60 {
        put(&broker.log, "k", Some(&format!("{i}")));
    }
    clean_all(&broker);
    let slice = broker.log.read(at, 1, true, ReadUpTo::HighWatermark).unwrap();
    assert!(slice.read().unwrap()[21..] == odd[21..], "what the producer sent");
}

#[test]
fn a_damaged_log_is_told_once_and_then_left_alone() {
    let dir = scratch();
    let broker = filled(dir.path());
    let file = dir.path().join("flights-0").join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let failed = clean(&broker);
    assert!(matches!(failed, Cleaning::Failed(_, StorageError::Corrupt { .. })), "{failed:?}");
    assert!(matches!(clean(&broker), Cleaning::Nothing), "it is not tried again");
    let names = std::fs::read_dir(dir.path().join("flights-0")).unwrap();
    let names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("cleaned")), "{names:?}");
    put(&broker.log, "k", Some("appends go on"));
}

#[test]
fn a_full_device_ends_a_cleaning_that_is_tried_again_later() {
    let disk = SimDisk::new();
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let broker = Broker::at(clock, Arc::new(disk.clone()), Path::new("/data"), compacted()).unwrap();
    for i in 0..60 {
        put(&broker.log, "k", Some(&format!("{i}")));
    }
    let before = read(&broker.log);
    disk.inject(Fault::Full(1));
    let failed = clean(&broker);
    assert!(matches!(failed, Cleaning::Failed(_, StorageError::DiskFull { .. })), "{failed:?}");
    assert_eq!(read(&broker.log), before);
    assert!(matches!(clean(&broker), Cleaning::Nothing));
    broker.clock.advance_ms(600_000);
    assert!(matches!(clean(&broker), Cleaning::Done(..)));
    assert_eq!(table(&read(&broker.log).1), table(&before.1));
}

/// Ends the cleaning after some steps.
struct Impatient(AtomicU64);

impl Pace for Impatient {
    fn step(&self, _bytes: u64) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) > 1
    }
}

#[test]
fn a_cleaning_may_be_ended_anywhere_and_leaves_nothing_behind() {
    let dir = scratch();
    let broker = filled(dir.path());
    let before = table(&read(&broker.log).1);
    let mut steps = 1;
    while let Cleaning::Interrupted(_) =
        broker.manager.clean_dirtiest(&memory(), &Impatient(AtomicU64::new(steps)))
    {
        assert_eq!(table(&read(&broker.log).1), before, "after {steps} steps");
        let names = std::fs::read_dir(dir.path().join("flights-0")).unwrap();
        let names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.contains(".cleaned") || name.contains(".swap")), "{names:?}");
        steps += 7;
    }
    assert!(steps > 20, "{steps}");
    assert_eq!(table(&read(&broker.log).1), before);
}

#[test]
fn a_removed_topic_is_not_cleaned_and_its_successor_is() {
    let dir = scratch();
    let broker = filled(dir.path());
    clean_all(&broker);
    broker.manager.remove_partition("flights", 0).unwrap();
    assert!(matches!(clean(&broker), Cleaning::Nothing));
    let log = broker
        .manager
        .open_partition("flights", 0, uuid::Uuid::from_u128(8), compacted(), Role::Alone, 0)
        .unwrap();
    for i in 0..60 {
        put(&log, "k", Some(&format!("{i}")));
    }
    assert!(matches!(clean(&broker), Cleaning::Done(..)));
    assert!(read(&log).1.len() < 60);
}

#[test]
fn compact_and_delete_together_remove_whole_old_segments() {
    let dir = scratch();
    let both = CleanupPolicy { delete: true, compact: true };
    let config = LogConfig { cleanup_policy: both, retention_ms: 10_000, ..compacted() };
    let broker = real(dir.path(), config);
    for i in 0..60 {
        put(&broker.log, &format!("k{}", i % 3), Some(&format!("{i}")));
    }
    clean_all(&broker);
    assert_eq!(table(&read(&broker.log).1).len(), 3);
    broker.clock.advance_ms(20_000);
    assert!(broker.manager.run_maintenance().is_empty());
    assert_eq!(broker.log.offsets().log_start_offset, 60);
    assert!(read(&broker.log).1.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is written and whenever it is cleaned: who reads the log has the table that who read all of it has.
    #[test]
    fn a_cleaned_log_gives_the_table_of_the_whole_one(
        sizes in prop::collection::vec(1_usize..6, 20..60),
        keys in prop::collection::vec((0_u8..12, prop::bool::weighted(0.2)), 300),
        codecs in prop::collection::vec(0_usize..5, 60),
        cleanings in prop::collection::vec(0_u8..8, 60),
        slots in 3_usize..40,
    ) {
        let dir = scratch();
        let broker = real(dir.path(), compacted());
        let memory = CleanerConfig { dedupe_bytes: 24 * slots, ..memory() };
        let (mut written, mut keys) = (Vec::<Row>::new(), keys.into_iter());
        for (i, size) in sizes.into_iter().enumerate() {
            let rows: Vec<_> = keys.by_ref().take(size).collect();
            let named: Vec<_> = rows
                .iter()
                .enumerate()
                .map(|(j, (key, gone))| (format!("key-{key}"), (!gone).then(|| format!("value {i} {j}"))))
                .collect();
            let rows: Vec<_> = named.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
            if rows.is_empty() {
                break;
            }
            let ms = NOW_MS + i as i64;
            let base = append(&broker.log, keyed(&rows, Codec::ALL[codecs[i]], ms)).unwrap().base_offset;
            written.extend((base..).zip(named).map(|(offset, (key, value))| (offset, ms, key, value)));
            broker.clock.advance_ms(150);
            if cleanings[i] == 0 {
                while let Cleaning::Done(..) = broker.manager.clean_dirtiest(&memory, &Free) {}
            }
        }
        while let Cleaning::Done(..) = broker.manager.clean_dirtiest(&memory, &Free) {}
        let (_, left) = read(&broker.log);
        prop_assert_eq!(table(&left), table(&written));
        prop_assert!(left.iter().all(|row| written.contains(row)));
        prop_assert!(left.iter().zip(left.iter().skip(1)).all(|(a, b)| a.0 < b.0));
        drop(broker);
        let broker = real(dir.path(), compacted());
        prop_assert_eq!(read(&broker.log).1, left);
    }
}

#[test]
fn a_log_that_is_written_again_and_again_is_compacted_long_before_its_segment_is_full() {
    let dir = scratch();
    let config = LogConfig {
        segment_bytes: 1 << 20,
        min_cleanable_dirty_ratio: 0.5,
        compaction_roll_bytes: 5_000,
        ..compacted()
    };
    let broker = Broker::real(dir.path(), config).unwrap();
    let mut largest = 0;
    for number in 0..2_000 {
        put(&broker.log, "same", Some(&number.to_string()));
        if number % 10 == 0 {
            assert!(broker.manager.run_maintenance().is_empty());
            clean_all(&broker);
            largest = largest.max(broker.log.size_bytes());
        }
    }
    assert!(largest < 10_000, "it grew to {largest} bytes");
    assert_eq!(table(&read(&broker.log).1), BTreeMap::from([("same".to_owned(), "1999".to_owned())]));
}
