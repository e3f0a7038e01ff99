//! The power goes away while the engine works: what does the log hold afterwards?
//!
//! Each run has a seed. It drives one partition over a simulated disk through appends (plain and idempotent, with an even
//! seed transactions, too, see `transactions`), syncs, rolls, checkpoints, retention, DeleteRecords, clean stops and kills, lets the power fail at one change of the disk,
//! opens the log again and holds all of it against what was tried; several times over.
//!
//! | durability | after a cut |
//! |---|---|
//! | flushed | every acknowledged record is there |
//! | page-cache | the log is a prefix of what was written |
//! | both | nothing is torn, nothing has a hole, nothing that was deleted returns, retries are known, readers of committed data see what the batches say |
//!
//! `PYLOG_POWER_CUTS` sets the number of runs, `PYLOG_SEED` the first seed; a failure prints its seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod compaction;
mod replicas;
mod transactions;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, mpsc};

use pylog_record::control::Marker;
use pylog_record::{BatchBuilder, BatchHeader, Codec, batches, layout};
use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, Clock, Durability, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo,
    StorageError,
};
use pylog_testkit::sim::{Bites, Fault, SimDisk};
use uuid::Uuid;

use self::transactions::Writer;
use pylog_testkit::runs::{is_long, number, times};

const DEFAULT_RUNS: u64 = 100;
const LONG_RUNS: u64 = 300;
const ROUNDS: u64 = 4;
const STEPS: u64 = 60;
const PRODUCER_ID: i64 = 7;
const TOPIC_ID: Uuid = Uuid::from_u128(42);

/// A small random sequence.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A batch that was given to the log, whether or not it got there.
struct Tried {
    base_offset: i64,
    last_offset: i64,
    /// As the producer sent it.
    batch: Vec<u8>,
}

/// What one operation of a run does.
#[derive(Debug, Clone, Copy)]
enum Step {
    Append,
    AppendIdempotent,
    Sync,
    Maintain,
    /// A batch of this transactional producer.
    AppendTxn(usize),
    /// The end of this producer's transaction.
    EndTxn(usize, Marker),
    /// Moves the log's start about so far into the log, in hundredths.
    Delete(i64),
}

struct Run {
    name: String,
    dice: Dice,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    durability: Durability,
    retention_bytes: i64,
    tried: Vec<Tried>,
    /// One past the last acknowledged record.
    acknowledged: i64,
    /// The log's start that was acknowledged, and the largest it may be.
    start: Range<i64>,
    next_value: u64,
    sequence: i32,
    transactional: [Writer; transactions::WRITERS],
    has_transactions: bool,
}

impl Run {
    fn new(seed: u64, durability: Durability) -> Self {
        let mut dice = Dice(seed ^ 0x9E37_79B9_7F4A_7C15);
        let retention_bytes = if dice.below(3) == 0 { 6_000 } else { -1 };
        Self {
            name: format!("{durability:?}, PYLOG_SEED={seed}"),
            dice,
            disk: SimDisk::new(),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            durability,
            retention_bytes,
            tried: Vec::new(),
            acknowledged: 0,
            start: 0..0,
            next_value: 0,
            sequence: 0,
            transactional: Default::default(),
            // The seeds of mended bugs are odd: what they do stays what it was.
            has_transactions: seed.is_multiple_of(2),
        }
    }

    fn open(&self) -> Result<(LogManager, Arc<PartitionLog>), StorageError> {
        let config =
            ManagerConfig { flush_threads: 0, checkpoint_interval_ms: 1_000, ..ManagerConfig::default() };
        let manager =
            LogManager::open(Arc::new(self.disk.clone()), self.clock.clone(), Path::new("/data"), config)?;
        let config = LogConfig {
            segment_bytes: 2_000,
            segment_ms: 60_000,
            index_interval_bytes: 300,
            retention_bytes: self.retention_bytes,
            file_delete_delay_ms: 1_500,
            durability: self.durability,
            message_timestamp_after_max_ms: i64::MAX,
            ..LogConfig::default()
        };
        let log = manager.open_partition("t", 0, TOPIC_ID, config, Role::Alone, 0)?;
        Ok((manager, log))
    }

    fn batch(&mut self, idempotent: bool) -> (Vec<u8>, i32) {
        let mut builder = BatchBuilder::new();
        let count = 1 + self.dice.below(4) as i32;
        for _ in 0..count {
            let value = format!("value-{}-{}", self.next_value, "x".repeat(self.dice.below(120) as usize));
            self.next_value += 1;
            builder.append(self.clock.now_ms(), None, Some(value.as_bytes()), &[]).unwrap();
        }
        if idempotent {
            builder.set_producer(PRODUCER_ID, 0, self.sequence);
        }
        (builder.finish(Codec::None).unwrap(), count)
    }

    fn append(&mut self, log: &PartitionLog, idempotent: bool) -> Result<(), StorageError> {
        let (mut batch, count) = self.batch(idempotent);
        let base_offset = self.try_at_end(log, &batch, count);
        let done = log.append(&mut batch, AppendOptions::client(0))?;
        assert_eq!((done.base_offset, done.duplicate), (base_offset, false), "{}", self.name);
        if idempotent {
            self.sequence += count;
        }
        self.acknowledge(log, done.last_offset)
    }

    /// Notes a batch that may reach the disk even when the append fails; gives its offset.
    fn try_at_end(&mut self, log: &PartitionLog, batch: &[u8], count: i32) -> i64 {
        let base_offset = log.offsets().log_end_offset;
        self.tried.retain(|known| known.base_offset < base_offset);
        let last_offset = base_offset + i64::from(count) - 1;
        self.tried.push(Tried { base_offset, last_offset, batch: batch.to_vec() });
        base_offset
    }

    fn acknowledge(&mut self, log: &PartitionLog, last_offset: i64) -> Result<(), StorageError> {
        durable(log, last_offset)?;
        self.acknowledged = last_offset + 1;
        assert!(log.offsets().high_watermark >= self.acknowledged, "{}: not visible", self.name);
        Ok(())
    }

    fn delete(&mut self, log: &PartitionLog, hundredths: i64) -> Result<(), StorageError> {
        let offsets = log.offsets();
        let span = offsets.high_watermark - offsets.log_start_offset;
        let keep = offsets.log_start_offset + span * hundredths / 100;
        // The new start may be stored although the call fails.
        self.start.end = self.start.end.max(keep);
        self.start.start = self.start.start.max(log.delete_records_before(keep)?);
        Ok(())
    }

    fn step(&mut self, manager: &LogManager, log: &PartitionLog, step: Step) -> Result<(), StorageError> {
        match step {
            Step::Append => self.append(log, false),
            Step::AppendIdempotent => self.append(log, true),
            Step::AppendTxn(writer) => self.append_txn(log, writer),
            Step::EndTxn(writer, marker) => self.end_txn(log, writer, marker),
            Step::Sync => log.sync(),
            Step::Delete(hundredths) => self.delete(log, hundredths),
            Step::Maintain => {
                if self.retention_bytes >= 0 {
                    self.start.end = self.start.end.max(log.offsets().high_watermark);
                }
                let errors = manager.run_maintenance();
                errors.into_iter().next().map_or(Ok(()), Err)?;
                self.start.start = log.offsets().log_start_offset;
                Ok(())
            }
        }
    }

    /// Works until the power goes, an error says so, or the steps are over.
    fn work(&mut self, manager: &LogManager, log: &PartitionLog) -> Result<(), StorageError> {
        for _ in 0..STEPS {
            self.clock.advance_ms(self.dice.below(700) as i64);
            let step = match self.dice.below(40) {
                0 | 1 => Step::Maintain,
                2 | 3 => Step::Sync,
                4 => Step::Delete(self.dice.below(101) as i64),
                5..=19 => Step::AppendIdempotent,
                20..=29 if self.has_transactions => Step::AppendTxn(self.writer()),
                30..=32 if self.has_transactions => Step::EndTxn(self.writer(), Marker::Abort),
                33 if self.has_transactions => Step::EndTxn(self.writer(), Marker::Commit),
                _ => Step::Append,
            };
            self.step(manager, log, step)?;
        }
        Ok(())
    }

    /// Opens the log and holds it against what was tried; what is not there any more is forgotten.
    fn check(&mut self, lost_power: bool) {
        let name = self.name.clone();
        let (_manager, log) = self.open().unwrap_or_else(|error| panic!("{name}: does not open: {error}"));
        let offsets = log.offsets();
        let (start, end) = (offsets.log_start_offset, offsets.log_end_offset);
        assert!(self.start.start <= start, "{name}: deleted records are back, {:?} {start}", self.start);
        assert!(start <= self.start.end, "{name}: the start moved by itself, {:?} {start}", self.start);
        let may_lose = lost_power && self.durability == Durability::PageCache;
        assert!(
            may_lose || end >= self.acknowledged,
            "{name}: acknowledged {}, kept {end}",
            self.acknowledged
        );
        let kept = self.check_batches(&log, start, end);
        self.check_times(&log, &kept);
        self.check_retries(&log, &kept);
        self.tried.retain(|tried| tried.last_offset < end);
        self.check_transactions(&log);
        self.acknowledged = end;
        self.start = start..start;
        let ours = |header: &&BatchHeader| header.producer_id == PRODUCER_ID;
        if let Some(last) = kept.iter().rev().find(ours) {
            self.sequence = last.base_sequence + last.last_offset_delta + 1;
        }
    }

    /// Every batch of `[start, end)` is one that was tried, at its offset, to the byte.
    fn check_batches(&self, log: &PartitionLog, start: i64, end: i64) -> Vec<BatchHeader> {
        let name = &self.name;
        let mut kept = Vec::new();
        let mut at = start;
        while at < end {
            let slice = log.read(at, 3_000, true, ReadUpTo::LogEnd).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(slice.len > 0, "{name}: nothing at {at}, the log ends at {end}");
            for batch in batches(&slice.read().unwrap()) {
                let (header, batch) = batch.unwrap();
                header.verify_crc(batch).unwrap_or_else(|e| panic!("{name}: served a torn batch: {e}"));
                let tried = self.tried.iter().find(|tried| tried.base_offset == header.base_offset);
                let tried = tried.unwrap_or_else(|| panic!("{name}: nobody wrote at {}", header.base_offset));
                assert!(batch[layout::CRC..] == tried.batch[layout::CRC..], "{name}: other bytes at {at}");
                assert!((header.base_offset..=header.last_offset()).contains(&at), "{name}: a hole at {at}");
                at = header.last_offset() + 1;
                kept.push(header);
            }
            assert_eq!(at, slice.next_offset, "{name}");
        }
        kept
    }

    /// The time of each batch leads to the first record that is not older: what is left of the indexes leads nobody past one.
    fn check_times(&self, log: &PartitionLog, kept: &[BatchHeader]) {
        let offsets = log.offsets();
        let data = || kept.iter().filter(|header| !header.is_control());
        for header in data() {
            let wanted = header.max_timestamp;
            let first = data().find(|other| other.max_timestamp >= wanted).unwrap();
            let first = (first.base_offset.max(offsets.log_start_offset), first.max_timestamp);
            let found = log.offset_for_timestamp(wanted).unwrap_or_else(|e| panic!("{}: {e}", self.name));
            let visible = Some(first).filter(|(offset, _)| *offset < offsets.high_watermark);
            assert_eq!(found, visible, "{}: where {wanted} leads", self.name);
        }
    }

    /// The last batches of the idempotent producer are known when they are sent again.
    fn check_retries(&self, log: &PartitionLog, kept: &[BatchHeader]) {
        let ours = |header: &&BatchHeader| header.producer_id == PRODUCER_ID;
        for header in kept.iter().rev().filter(ours).take(5) {
            let mut again =
                self.tried.iter().find(|t| t.base_offset == header.base_offset).unwrap().batch.clone();
            let done = log.append(&mut again, AppendOptions::client(0));
            let done = done.unwrap_or_else(|e| panic!("{}: a retry is refused: {e}", self.name));
            assert!(done.duplicate, "{}: a retry of {} is written twice", self.name, header.base_offset);
            assert_eq!(done.base_offset, header.base_offset, "{}", self.name);
        }
    }

    fn rounds(mut self, seed: u64) -> Bites {
        for round in 0..ROUNDS {
            let (manager, log) = self.open().unwrap_or_else(|e| panic!("{}: does not open: {e}", self.name));
            self.disk.inject(Fault::Halt(self.dice.below(220)));
            let worked = self.work(&manager, &log).is_ok();
            let cut_seed = seed.wrapping_mul(31).wrapping_add(round);
            let lost_power = ended(&self.disk, &mut self.dice, worked, (manager, log), cut_seed);
            self.check(lost_power);
            self.disk.crash_processes();
        }
        self.disk.bites()
    }
}

/// Ends a round of work: sometimes with a clean stop when all of it `worked`, then with a loss of power or a crash. Whether
/// records that were not durable may be gone.
fn ended(
    disk: &SimDisk,
    dice: &mut Dice,
    worked: bool,
    (manager, log): (LogManager, Arc<PartitionLog>),
    cut_seed: u64,
) -> bool {
    let closed = worked && dice.below(3) == 0 && manager.close().is_ok();
    drop((log, manager));
    let cut = dice.below(4) > 0;
    if cut {
        disk.power_cut(cut_seed);
    } else {
        disk.crash_processes();
    }
    cut && !closed
}

fn durable(log: &PartitionLog, last_offset: i64) -> Result<(), StorageError> {
    let (sender, receiver) = mpsc::channel();
    log.wait_durable(last_offset, Box::new(move |result| drop(sender.send(result))));
    receiver.try_recv().expect("without flusher threads the callback is called at once")
}

fn seeds() -> Range<u64> {
    let first = number("PYLOG_SEED", 1);
    first..first + number("PYLOG_POWER_CUTS", if is_long() { LONG_RUNS } else { DEFAULT_RUNS })
}

/// Adds up what bit in all runs; a simulation that never bit shows nothing.
fn bitten(what: &str, runs: impl Iterator<Item = Bites>) {
    let total = runs.fold(Bites::default(), |sum, run| Bites {
        dropped: sum.dropped + run.dropped,
        torn: sum.torn + run.torn,
        kept: sum.kept + run.kept,
        names_lost: sum.names_lost + run.names_lost,
        faults: sum.faults + run.faults,
    });
    println!("{what}: {total:?}");
    let Bites { dropped, torn, kept, names_lost, faults } = total;
    assert!(dropped > 0 && torn > 0 && kept > 0 && names_lost > 0 && faults > 0, "{what}: {total:?}");
}

#[test]
fn power_cuts_at_random_lose_no_acknowledged_record_of_a_flushed_log() {
    let runs = seeds().map(|seed| Run::new(seed, Durability::Flushed).rounds(seed));
    bitten(&format!("flushed, seeds {:?}", seeds()), runs);
}

#[test]
fn power_cuts_at_random_leave_a_clean_prefix_of_a_page_cache_log() {
    let runs = seeds().map(|seed| Run::new(seed, Durability::PageCache).rounds(seed));
    bitten(&format!("page-cache, seeds {:?}", seeds()), runs);
}

/// A life with every turn in it: rolls, a checkpoint, DeleteRecords, retention, removal of files, a clean stop.
fn life(run: &mut Run) -> Result<(), StorageError> {
    let (manager, log) = run.open()?;
    let appends = |run: &mut Run, count: usize| {
        (0..count).try_for_each(|i| {
            let step = match i % 6 {
                0 | 2 => Step::Append,
                1 => Step::AppendIdempotent,
                3 | 4 => Step::AppendTxn(i % 2),
                _ => Step::EndTxn(i / 6 % 2, if i % 4 == 1 { Marker::Commit } else { Marker::Abort }),
            };
            run.step(&manager, &log, step)
        })
    };
    appends(run, 12)?;
    run.clock.advance_ms(2_000);
    run.step(&manager, &log, Step::Maintain)?;
    appends(run, 12)?;
    run.step(&manager, &log, Step::Delete(40))?;
    appends(run, 6)?;
    run.clock.advance_ms(61_000);
    run.step(&manager, &log, Step::Maintain)?;
    appends(run, 14)?;
    run.clock.advance_ms(2_000);
    run.step(&manager, &log, Step::Maintain)?;
    run.step(&manager, &log, Step::Delete(100))?;
    appends(run, 3)?;
    manager.close()
}

#[test]
fn a_power_cut_at_every_single_change_of_a_life_keeps_the_promise() {
    for durability in [Durability::Flushed, Durability::PageCache] {
        let fresh = |seed| Run { retention_bytes: 4_000, ..Run::new(seed, durability) };
        let mut whole = fresh(0);
        life(&mut whole).unwrap();
        let changes = whole.disk.changes();
        assert!(changes > 150, "{durability:?}: only {changes} changes");
        let cuts = (0..changes).flat_map(|at| (0..times(2)).map(move |more| (at, (at + more) % 2)));
        let runs = cuts.map(|(at, seed)| {
            let mut run = fresh(0);
            run.name = format!("{durability:?}, cut at change {at}, seed {seed}");
            run.disk.inject(Fault::Halt(at));
            assert!(life(&mut run).is_err(), "{}: nothing noticed", run.name);
            run.disk.power_cut(at * 2 + seed);
            run.check(true);
            run.disk.crash_processes();
            // Once more, now from what recovery left.
            run.check(false);
            run.disk.bites()
        });
        bitten(&format!("{durability:?}, {changes} changes"), runs);
    }
}

#[test]
fn a_failed_sync_is_never_acknowledged_and_never_tried_again() {
    for nth in 0..40 {
        let mut run = Run::new(nth, Durability::Flushed);
        let (_manager, log) = run.open().unwrap();
        run.disk.inject(Fault::Sync(nth));
        let failed = (0..80).find_map(|_| run.append(&log, false).err());
        let failed = failed.unwrap_or_else(|| panic!("sync {nth} did not fail"));
        let acknowledged = run.acknowledged;
        for _ in 0..3 {
            let again = run.append(&log, false);
            assert!(
                matches!(again, Err(StorageError::Poisoned { .. })),
                "sync {nth}: {failed}, then {again:?}"
            );
        }
        assert!(matches!(log.sync(), Err(StorageError::Poisoned { .. })));
        assert_eq!(run.acknowledged, acknowledged);
        let seen = log.offsets().high_watermark;
        assert!(seen <= acknowledged, "sync {nth}: visible to {seen} without being durable");
        let behind = log.read(seen, 100, true, ReadUpTo::HighWatermark);
        assert!(matches!(behind, Err(StorageError::Poisoned { .. })), "sync {nth}: {behind:?}");
        // The process is started again without a loss of power: what the cache shows may not be on the device.
        run.disk.crash_processes();
        run.check(false);
        run.disk.power_cut(nth);
        run.check(true);
    }
}

#[test]
fn a_clean_stop_after_a_failed_sync_leaves_no_marker() {
    let mut run = Run::new(5, Durability::Flushed);
    let (manager, log) = run.open().unwrap();
    run.append(&log, false).unwrap();
    run.disk.inject(Fault::Sync(0));
    assert!(run.append(&log, false).is_err());
    assert!(matches!(manager.close(), Err(StorageError::Poisoned { .. })));
    run.disk.crash_processes();
    let (manager, _) = run.open().unwrap();
    assert!(!manager.was_clean(), "the next start must recover");
}

#[test]
fn a_short_write_is_never_served_and_a_full_disk_is_forgiven() {
    for (nth, full) in (0..60).flat_map(|nth| [(nth, false), (nth, true)]) {
        let mut run = Run::new(nth, Durability::PageCache);
        let (_manager, log) = run.open().unwrap();
        run.disk.inject(if full { Fault::Full(nth) } else { Fault::Write(nth) });
        let errors: Vec<_> = (0..80).filter_map(|_| run.append(&log, nth % 2 == 0).err()).collect();
        assert!(!errors.is_empty(), "write {nth} failed unnoticed");
        if full {
            assert_eq!(errors.len(), 1, "write {nth}: there is space again");
            assert!(matches!(errors[0], StorageError::DiskFull { .. }), "{}", errors[0]);
        } else {
            let later = errors.iter().skip(1);
            assert!(later.clone().count() > 0, "write {nth}: the log was not refused afterwards");
            later.for_each(|error| assert!(matches!(error, StorageError::Poisoned { .. }), "{error}"));
        }
        run.disk.crash_processes();
        run.check(false);
    }
}

#[test]
fn a_removed_partition_is_gone_or_whole_after_a_cut_and_never_mixes_with_its_successor() {
    for (at, seed) in (0..40).flat_map(|at| [(at, 1), (at, 2), (at, 3)]) {
        let mut run = Run::new(seed, Durability::Flushed);
        let (manager, log) = run.open().unwrap();
        (0..20).for_each(|_| run.append(&log, false).unwrap());
        run.clock.advance_ms(2_000);
        assert!(manager.run_maintenance().is_empty());
        run.disk.inject(Fault::Halt(at));
        let removed = manager.remove_partition("t", 0).is_ok();
        drop((log, manager));
        run.disk.power_cut(at * 7 + seed);
        let (manager, log) = run.open().unwrap_or_else(|e| panic!("cut at {at}: {e}"));
        let end = log.offsets().log_end_offset;
        assert!(
            end == 0 || (!removed && end == run.acknowledged),
            "cut at {at}: {end} of {}",
            run.acknowledged
        );
        drop((log, manager));
    }
}

#[test]
fn power_cuts_that_once_lost_something_lose_nothing_now() {
    use Durability::{Flushed, PageCache};
    let once_lost = [(345, Flushed), (3035, Flushed), (4347, PageCache), (18, Flushed), (2936, PageCache)];
    let runs = once_lost.map(|(seed, durability)| Run::new(seed, durability).rounds(seed));
    bitten("seeds of mended bugs", runs.into_iter());
}
