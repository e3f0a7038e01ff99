//! The power goes away while a log is compacted, with transactions in it: afterwards a reader of committed records has
//! the table that the whole history up to the log's end gives, in the order of offsets, and none twice.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pylog_record::compression::decompress;
use pylog_record::control::{AbortedFilter, Marker};
use pylog_record::{BatchBuilder, Codec, batches, layout, records};
use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, CleanerConfig, Cleaning, CleanupPolicy, Clock, Durability, LogConfig, LogManager,
    ManagerConfig, Pace, PartitionLog, ReadUpTo, StorageError, TxnMarker,
};
use pylog_testkit::runs::times;
use pylog_testkit::sim::{Bites, Fault, SimDisk};

use super::{Dice, ROUNDS, TOPIC_ID, bitten, durable, ended, seeds};

const STEPS: u64 = 80;
const KEYS: u64 = 8;
const PRODUCERS: u64 = 3;

/// A key and its value.
type Row = (String, Option<String>);

/// What was given to the log.
enum What {
    /// Records, of a transaction of this producer when there is one.
    Rows(Option<i64>, Vec<Row>),
    End(i64, Marker),
}

struct Free;

impl Pace for Free {
    fn step(&self, _bytes: u64) -> bool {
        true
    }
}

struct Run {
    name: String,
    dice: Dice,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    durability: Durability,
    /// By base offset; whether or not it got there.
    tried: BTreeMap<i64, What>,
    acknowledged: i64,
    values: u64,
    cleanings: u64,
}

impl Run {
    fn new(seed: u64, durability: Durability) -> Self {
        Self {
            name: format!("compaction, {durability:?}, PYLOG_SEED={seed}"),
            dice: Dice(seed ^ 0x51_7C_C1_B7),
            disk: SimDisk::new(),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            durability,
            tried: BTreeMap::new(),
            acknowledged: 0,
            values: 0,
            cleanings: 0,
        }
    }

    fn open(&self) -> Result<(LogManager, Arc<PartitionLog>), StorageError> {
        let config =
            ManagerConfig { flush_threads: 0, checkpoint_interval_ms: 1_000, ..ManagerConfig::default() };
        let manager =
            LogManager::open(Arc::new(self.disk.clone()), self.clock.clone(), Path::new("/data"), config)?;
        let config = LogConfig {
            cleanup_policy: CleanupPolicy { delete: false, compact: true },
            min_cleanable_dirty_ratio: 0.0,
            delete_retention_ms: 2_000,
            segment_bytes: 1_200,
            index_interval_bytes: 200,
            file_delete_delay_ms: 1_500,
            durability: self.durability,
            message_timestamp_after_max_ms: i64::MAX,
            ..LogConfig::default()
        };
        let log = manager.open_partition("t", 0, TOPIC_ID, config, Role::Alone, 0)?;
        Ok((manager, log))
    }

    fn rows(&mut self) -> Vec<Row> {
        let count = 1 + self.dice.below(3);
        (0..count)
            .map(|_| {
                self.values += 1;
                let value = format!("value-{}-{}", self.values, "x".repeat(self.dice.below(60) as usize));
                let gone = self.dice.below(5) == 0;
                (format!("key-{}", self.dice.below(KEYS)), (!gone).then_some(value))
            })
            .collect()
    }

    fn append(&mut self, log: &PartitionLog, producer: Option<i64>) -> Result<(), StorageError> {
        let rows = self.rows();
        let mut builder = BatchBuilder::new();
        if let Some(id) = producer {
            builder.set_producer(id, 0, -1);
            builder.set_transactional(true);
        }
        for (key, value) in &rows {
            let value = value.as_ref().map(String::as_bytes);
            builder.append(self.clock.now_ms(), Some(key.as_bytes()), value, &[]).unwrap();
        }
        let codec = Codec::ALL[self.dice.below(5) as usize];
        let mut batch = builder.finish(codec).unwrap();
        self.try_at(log, What::Rows(producer, rows));
        let how = if producer.is_some() { AppendOptions::coordinator(0) } else { AppendOptions::client(0) };
        let done = log.append(&mut batch, how)?;
        durable(log, done.last_offset)?;
        self.acknowledged = done.last_offset + 1;
        Ok(())
    }

    fn end(&mut self, log: &PartitionLog, producer_id: i64) -> Result<(), StorageError> {
        let marker = if self.dice.below(2) == 0 { Marker::Abort } else { Marker::Commit };
        self.try_at(log, What::End(producer_id, marker));
        let marker = TxnMarker {
            producer_id,
            producer_epoch: 0,
            marker,
            coordinator_epoch: 0,
            transaction_version: 0,
        };
        let done = log.append_marker(marker, AppendOptions::coordinator(0))?;
        durable(log, done.last_offset)?;
        self.acknowledged = done.last_offset + 1;
        Ok(())
    }

    fn try_at(&mut self, log: &PartitionLog, what: What) {
        let offset = log.offsets().log_end_offset;
        self.tried.split_off(&offset);
        self.tried.insert(offset, what);
    }

    fn clean(&mut self, manager: &LogManager) -> Result<(), StorageError> {
        let memory = CleanerConfig { dedupe_bytes: 24 * 30, load_factor: 0.9, io_bytes: 500 };
        match manager.clean_dirtiest(&memory, &Free) {
            Cleaning::Failed(_, error) => Err(error),
            Cleaning::Done(..) => {
                self.cleanings += 1;
                Ok(())
            }
            Cleaning::Nothing | Cleaning::Interrupted(_) => Ok(()),
        }
    }

    fn work(&mut self, manager: &LogManager, log: &PartitionLog) -> Result<(), StorageError> {
        for _ in 0..STEPS {
            self.clock.advance_ms(self.dice.below(300) as i64);
            let producer = 100 + self.dice.below(PRODUCERS) as i64;
            match self.dice.below(20) {
                0 => manager.run_maintenance().into_iter().next().map_or(Ok(()), Err)?,
                1 | 2 => self.clean(manager)?,
                3..=7 => self.append(log, Some(producer))?,
                8..=11 if log.open_transaction(producer).is_some() => self.end(log, producer)?,
                _ => self.append(log, None)?,
            }
            if log.is_poisoned() {
                return log.sync();
            }
        }
        Ok(())
    }

    /// Opens the log and holds what a reader of committed records sees against what was tried.
    fn check(&mut self, lost_power: bool) {
        let name = self.name.clone();
        let (_manager, log) = self.open().unwrap_or_else(|error| panic!("{name}: does not open: {error}"));
        let end = log.offsets().log_end_offset;
        let may_lose = lost_power && self.durability == Durability::PageCache;
        assert!(may_lose || end >= self.acknowledged, "{name}: acknowledged {}, {end}", self.acknowledged);
        self.tried.split_off(&end);
        self.acknowledged = end;
        let stable = log.offsets().last_stable_offset;
        let seen = self.read(&log, stable);
        assert_eq!(
            self.table_of(seen),
            self.table_of(self.history(stable)),
            "{name}: up to {stable} of {end}"
        );
    }

    fn table_of(&self, rows: BTreeMap<i64, Row>) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        for (key, value) in rows.into_values() {
            match value {
                Some(value) => table.insert(key, value),
                None => table.remove(&key),
            };
        }
        table
    }

    /// The committed records before `stable`, by offset.
    fn history(&self, stable: i64) -> BTreeMap<i64, Row> {
        let mut rows = BTreeMap::new();
        let mut open: BTreeMap<i64, Vec<(i64, Row)>> = BTreeMap::new();
        for (base, what) in &self.tried {
            match what {
                What::Rows(producer, batch) => {
                    let placed = (*base..).zip(batch.iter().cloned());
                    match producer {
                        None => rows.extend(placed),
                        Some(id) => open.entry(*id).or_default().extend(placed),
                    }
                }
                What::End(id, marker) => {
                    let ended = open.remove(id).unwrap_or_default();
                    if *marker == Marker::Commit {
                        rows.extend(ended);
                    }
                }
            }
        }
        rows.split_off(&stable);
        rows
    }

    /// What a reader of committed records sees: each is one that was tried, at its offset.
    fn read(&self, log: &PartitionLog, stable: i64) -> BTreeMap<i64, Row> {
        let name = &self.name;
        let (mut rows, mut filter) = (BTreeMap::new(), AbortedFilter::default());
        let (mut at, mut last) = (log.offsets().log_start_offset, -1);
        while at < stable {
            let slice =
                log.read(at, 900, true, ReadUpTo::LastStable).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(slice.next_offset > at, "{name}: nothing at {at}, stable {stable}");
            filter.extend(slice.aborted.iter().map(|txn| (txn.producer_id, txn.first_offset)));
            for found in batches(&slice.read().unwrap()) {
                let (header, bytes) = found.unwrap();
                header.verify_crc(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(header.base_offset > last, "{name}: offset {} twice", header.base_offset);
                last = header.last_offset();
                if filter.hides(&(header, bytes)).unwrap() {
                    continue;
                }
                let codec = Codec::from_attributes(header.attributes).unwrap();
                let body = decompress(codec, &bytes[layout::RECORDS..], 1 << 20).unwrap();
                for record in records(&body, &header) {
                    let record = record.unwrap();
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    let row = (text(record.key.unwrap()), record.value.map(text));
                    assert!(self.was_tried(record.offset, &row), "{name}: nobody wrote {row:?}");
                    rows.insert(record.offset, row);
                }
            }
            at = slice.next_offset;
        }
        rows
    }

    fn was_tried(&self, offset: i64, row: &Row) -> bool {
        let found = self.tried.range(..=offset).next_back();
        matches!(found, Some((base, What::Rows(_, rows))) if rows.get((offset - base) as usize) == Some(row))
    }

    fn rounds(mut self, seed: u64) -> (Bites, u64) {
        for round in 0..ROUNDS {
            let (manager, log) = self.open().unwrap_or_else(|e| panic!("{}: does not open: {e}", self.name));
            self.disk.inject(Fault::Halt(self.dice.below(700)));
            let worked = self.work(&manager, &log).is_ok();
            let cut_seed = seed.wrapping_mul(37).wrapping_add(round);
            let lost_power = ended(&self.disk, &mut self.dice, worked, (manager, log), cut_seed);
            self.check(lost_power);
            self.disk.crash_processes();
        }
        (self.disk.bites(), self.cleanings)
    }
}

fn all(durability: Durability) {
    let mut cleanings = 0;
    let runs = seeds().step_by(3).map(|seed| {
        let (bites, cleaned) = Run::new(seed, durability).rounds(seed);
        cleanings += cleaned;
        bites
    });
    bitten(&format!("compaction, {durability:?}, seeds {:?}", seeds()), runs);
    assert!(cleanings > 0, "nothing was compacted");
    println!("{cleanings} cleanings");
}

#[test]
fn a_segment_that_a_power_cut_took_from_the_middle_is_not_taken_for_a_gap_of_compaction() {
    Run::new(121, Durability::PageCache).rounds(121);
}

#[test]
fn a_batch_that_compaction_has_emptied_opens_no_transaction_when_no_snapshot_is_left() {
    Run::new(6004, Durability::Flushed).rounds(6004);
}

#[test]
fn power_cuts_while_a_flushed_log_is_compacted_lose_no_acknowledged_value() {
    all(Durability::Flushed);
}

#[test]
fn power_cuts_while_a_page_cache_log_is_compacted_leave_the_table_of_a_prefix() {
    all(Durability::PageCache);
}

/// Every step of the swaps, one by one: a log with enough to clean, and the power away at each change of the disk.
#[test]
fn a_power_cut_at_every_single_change_of_a_cleaning_keeps_every_last_value() {
    for durability in [Durability::Flushed, Durability::PageCache] {
        let prepared = |seed: u64| {
            let mut run = Run::new(5, durability);
            run.name = format!("{durability:?}, seed {seed}");
            let (manager, log) = run.open().unwrap();
            for i in 0..40 {
                let producer = 100 + (i % PRODUCERS) as i64;
                run.append(&log, (i % 3 == 0).then_some(producer)).unwrap();
                if i % 9 == 8 && log.open_transaction(producer).is_some() {
                    run.end(&log, producer).unwrap();
                }
            }
            (100..103).for_each(|id| {
                if log.open_transaction(id).is_some() {
                    run.end(&log, id).unwrap();
                }
            });
            log.sync().unwrap();
            (run, manager, log)
        };
        let (mut whole, manager, log) = prepared(0);
        let before = whole.disk.changes();
        whole.clean(&manager).unwrap();
        let changes = whole.disk.changes() - before;
        assert!(changes > 40 && whole.cleanings == 1, "{durability:?}: only {changes} changes");
        drop((manager, log));
        let cuts = (0..changes).flat_map(|at| (0..times(3)).map(move |more| (at, (at + more) % 3)));
        let runs = cuts.map(|(at, seed)| {
            let (mut run, manager, log) = prepared(at * 3 + seed);
            run.name = format!("{durability:?}, cut at change {at} of a cleaning, seed {seed}");
            run.disk.inject(Fault::Halt(at));
            let _ = run.clean(&manager);
            drop((manager, log));
            run.disk.power_cut(at * 3 + seed);
            run.check(false);
            run.disk.crash_processes();
            let (manager, log) = run.open().unwrap();
            run.clean(&manager).unwrap_or_else(|e| panic!("{}: {e}", run.name));
            drop((manager, log));
            run.disk.crash_processes();
            run.check(false);
            run.disk.bites()
        });
        let total: Vec<_> = runs.collect();
        assert!(total.iter().any(|bites| bites.names_lost > 0), "{durability:?}: no name was ever lost");
    }
}
