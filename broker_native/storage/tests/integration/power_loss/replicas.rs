//! A follower whose power goes away while it copies, truncates, begins anew, leads for a while and follows again.
//!
//! The leaders are a list of batches; each new one gives up what was not committed and goes on with others. After a cut:
//!
//! | | |
//! |---|---|
//! | what is there | a prefix of what the follower held, or of what the step that was interrupted made of it, to the byte |
//! | what was synced and not given up | is there |
//! | epochs, producers, last stable offset | what a replica has that was made of these batches alone |
//! | high watermark | not beyond what was committed |
//!
//! In the end the follower catches up: its bytes are the leader's.
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pylog_record::control::{EndTxn, Marker, end_txn_batch};
use pylog_record::{BatchBuilder, BatchHeader, Codec, batches, layout};
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, Clock, Disk, Durability, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo,
    Role, StorageError,
};
use pylog_testkit::sim::{Bites, Fault, SimDisk};
use uuid::Uuid;

use crate::power_loss::{Dice, ROUNDS, bitten, ended, seeds};
use pylog_testkit::runs::times;

const STEPS: u64 = 50;
/// The first runs of each test find most; more only by `PYLOG_POWER_CUTS`.
const NEW_LEADER_BATCHES: u64 = 5;

/// A batch with its offset and epoch, as every replica has it.
#[derive(Clone, PartialEq)]
struct Batch {
    header: BatchHeader,
    bytes: Vec<u8>,
}

impl Batch {
    fn of(bytes: &[u8]) -> Vec<Self> {
        let whole = |found: (BatchHeader, &[u8])| Self { header: found.0, bytes: found.1.to_vec() };
        batches(bytes).map(|found| whole(found.unwrap())).collect()
    }

    fn end(&self) -> i64 {
        self.header.last_offset() + 1
    }
}

/// What an interrupted step may have left instead of what was held.
enum Doubt {
    /// These may have come, in this order.
    More(Vec<Batch>),
    /// What is behind so many batches may be gone.
    Fewer(usize),
    /// All may be gone; the log then begins there.
    Nothing(i64),
}

struct Run {
    name: String,
    dice: Dice,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    durability: Durability,
    /// Compaction leaves holes between the leader's batches.
    has_gaps: bool,
    /// What the leader has; `committed` batches of it are never given up.
    leader: Vec<Batch>,
    committed: usize,
    epoch: i32,
    leads: bool,
    /// Where the follower's log begins, and what it holds.
    start: i64,
    held: Vec<Batch>,
    /// Batches that are surely on the device.
    durable: usize,
    doubt: Option<Doubt>,
    next_value: u64,
}

fn open_on(
    disk: &dyn Fn() -> Arc<dyn Disk>,
    clock: &Arc<ManualClock>,
    config: LogConfig,
    epoch: i32,
) -> Result<(LogManager, Arc<PartitionLog>), StorageError> {
    let of_all = ManagerConfig {
        flush_threads: 0,
        checkpoint_interval_ms: 1_000,
        replica_high_watermark_checkpoint_interval_ms: 500,
        ..ManagerConfig::default()
    };
    let manager = LogManager::open(disk(), clock.clone(), Path::new("/data"), of_all)?;
    let log = manager.open_partition("t", 0, Uuid::from_u128(42), config, Role::Follower, epoch)?;
    Ok((manager, log))
}

impl Run {
    fn new(seed: u64, durability: Durability) -> Self {
        let mut dice = Dice(seed ^ 0x51_7C_C1_B7_27_22_0A_95);
        let has_gaps = dice.below(4) == 0;
        Self {
            name: format!("{durability:?}, PYLOG_SEED={seed}"),
            dice,
            disk: SimDisk::new(),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            durability,
            has_gaps,
            leader: Vec::new(),
            committed: 0,
            epoch: 0,
            leads: false,
            start: 0,
            held: Vec::new(),
            durable: 0,
            doubt: None,
            next_value: 0,
        }
    }

    fn config(&self) -> LogConfig {
        LogConfig {
            segment_bytes: 1_500,
            segment_ms: 60_000,
            index_interval_bytes: 300,
            file_delete_delay_ms: 1_500,
            durability: self.durability,
            message_timestamp_after_max_ms: i64::MAX,
            ..LogConfig::default()
        }
    }

    fn open(&self) -> Result<(LogManager, Arc<PartitionLog>), StorageError> {
        open_on(&|| Arc::new(self.disk.clone()), &self.clock, self.config(), self.epoch)
    }

    /// A batch without offset and epoch: plain, idempotent, of a transaction, or the end of one.
    fn batch(&mut self) -> Vec<u8> {
        let kind = self.dice.below(10);
        let producer_id = 100 + self.dice.below(3) as i64;
        if kind < 2 {
            let marker = if kind == 0 { Marker::Abort } else { Marker::Commit };
            let end = EndTxn { marker, coordinator_epoch: 0 };
            return end_txn_batch(producer_id, 0, end, self.clock.now_ms()).unwrap();
        }
        let mut builder = BatchBuilder::new();
        for _ in 0..1 + self.dice.below(4) {
            let value = format!("value-{}-{}", self.next_value, "x".repeat(self.dice.below(120) as usize));
            self.next_value += 1;
            builder.append(self.clock.now_ms(), None, Some(value.as_bytes()), &[]).unwrap();
        }
        match kind {
            2..=4 => {
                builder.set_producer(producer_id, 0, self.next_value as i32);
                builder.set_transactional(true);
            }
            5 => builder.set_producer(7, 0, self.next_value as i32),
            _ => {}
        }
        builder.finish(Codec::None).unwrap()
    }

    /// The leader writes a batch.
    fn lead(&mut self) {
        let mut bytes = self.batch();
        let gap = if self.has_gaps && self.dice.below(5) == 0 { 1 + self.dice.below(3) as i64 } else { 0 };
        let base_offset = self.leader.last().map_or(self.start, Batch::end) + gap;
        bytes[layout::BASE_OFFSET..layout::BATCH_LENGTH].copy_from_slice(&base_offset.to_be_bytes());
        bytes[layout::PARTITION_LEADER_EPOCH..layout::MAGIC].copy_from_slice(&self.epoch.to_be_bytes());
        self.leader.extend(Batch::of(&bytes));
    }

    fn end_of(&self, batches: &[Batch]) -> i64 {
        batches.last().map_or(self.start, Batch::end)
    }

    /// Batches at the front that follower and leader have both.
    fn common(&self) -> usize {
        self.held.iter().zip(&self.leader).take_while(|(a, b)| a == b).count()
    }

    /// Another leader, which gives up what is not committed and writes other batches.
    fn elect(&mut self, log: &PartitionLog) -> Result<(), StorageError> {
        let left = (self.leader.len() - self.committed) as u64;
        self.leader.truncate(self.committed + self.dice.below(left + 1) as usize);
        self.epoch += 1 + self.dice.below(2) as i32;
        self.leads = false;
        log.set_role(Role::Follower, self.epoch)?;
        (0..self.dice.below(NEW_LEADER_BATCHES)).for_each(|_| self.lead());
        self.reconcile(log)
    }

    /// Gives up what the leader does not have.
    fn reconcile(&mut self, log: &PartitionLog) -> Result<(), StorageError> {
        let common = self.common();
        if common == self.held.len() {
            // Nothing to cut, which takes the epochs away that have no record.
            let end = self.end_of(&self.held);
            assert_eq!(log.truncate_to(end)?, end, "{}", self.name);
            return Ok(());
        }
        let end = self.end_of(&self.held[..common]);
        let next = &self.held[common];
        // Sometimes the leader names an offset inside the next batch.
        let inside = self.dice.below((next.end() - end) as u64) as i64;
        self.doubt = Some(Doubt::Fewer(common));
        let cut = log.truncate_to(end + inside)?;
        assert!(self.has_gaps || cut == end, "{}: {cut}, not {end}", self.name);
        self.held.truncate(common);
        self.durable = self.durable.min(common);
        self.doubt = None;
        Ok(())
    }

    /// Copies some of what the leader has and this replica not.
    fn fetch(&mut self, log: &PartitionLog) -> Result<(), StorageError> {
        if self.leads || self.common() < self.held.len() {
            return Ok(());
        }
        let first = self.held.len().saturating_sub(self.dice.below(2) as usize);
        let count = 1 + self.dice.below(8) as usize;
        let sent: Vec<Batch> = self.leader.iter().skip(first).take(count).cloned().collect();
        let mut bytes: Vec<u8> = sent.iter().flat_map(|batch| batch.bytes.clone()).collect();
        let new: Vec<Batch> = sent.into_iter().skip(self.held.len() - first).collect();
        // Cut in the middle of the next batch.
        let tail = self.leader.get(first + count).map(|next| &next.bytes[..next.bytes.len() / 2]);
        bytes.extend_from_slice(tail.unwrap_or_default());
        self.doubt = Some(Doubt::More(new.clone()));
        let done = log.append_replica(&bytes)?;
        assert_eq!(done.batches, new.len(), "{}", self.name);
        self.held.extend(new);
        self.doubt = None;
        assert_eq!(done.log_end_offset, self.end_of(&self.held), "{}", self.name);
        Ok(())
    }

    /// This replica is elected, when it has all that is committed, and writes.
    fn become_leader(&mut self, log: &PartitionLog) -> Result<(), StorageError> {
        if self.common() < self.committed || self.held.is_empty() {
            return Ok(());
        }
        self.epoch += 1;
        log.set_role(Role::Leader, self.epoch)?;
        self.leads = true;
        self.leader = self.held.clone();
        for _ in 0..self.dice.below(4) {
            let mut builder = BatchBuilder::new();
            let value = format!("led-{}", self.next_value);
            self.next_value += 1;
            builder.append(self.clock.now_ms(), None, Some(value.as_bytes()), &[]).unwrap();
            let mut bytes = builder.finish(Codec::None).unwrap();
            let mut sent = bytes.clone();
            let end = self.end_of(&self.held);
            sent[layout::BASE_OFFSET..layout::BATCH_LENGTH].copy_from_slice(&end.to_be_bytes());
            sent[layout::PARTITION_LEADER_EPOCH..layout::MAGIC].copy_from_slice(&self.epoch.to_be_bytes());
            self.doubt = Some(Doubt::More(Batch::of(&sent)));
            log.append(&mut bytes, AppendOptions::client(self.epoch))?;
            self.held.extend(Batch::of(&sent));
            self.leader = self.held.clone();
            self.doubt = None;
        }
        Ok(())
    }

    /// Others have removed so much that the follower begins anew.
    fn restart(&mut self, log: &PartitionLog) -> Result<(), StorageError> {
        if self.leads || self.committed == 0 {
            return Ok(());
        }
        let offset = self.end_of(&self.leader[..self.committed]);
        self.doubt = Some(Doubt::Nothing(offset));
        log.restart_at(offset)?;
        self.begin_at(offset);
        self.doubt = None;
        Ok(())
    }

    fn begin_at(&mut self, offset: i64) {
        self.leader.retain(|batch| batch.header.base_offset >= offset);
        self.committed = 0;
        self.start = offset;
        self.held.clear();
        self.durable = 0;
    }

    fn step(&mut self, manager: &LogManager, log: &PartitionLog) -> Result<(), StorageError> {
        self.clock.advance_ms(self.dice.below(400) as i64);
        match self.dice.below(40) {
            0..=14 => (0..=self.dice.below(4)).for_each(|_| {
                if !self.leads {
                    self.lead()
                }
            }),
            15..=24 => self.fetch(log)?,
            25 | 26 => {
                log.sync()?;
                self.durable = self.held.len();
            }
            27 | 28 => {
                if let Some(error) = manager.run_maintenance().into_iter().next() {
                    return Err(error);
                }
            }
            29..=32 => {
                let behind = self.common().saturating_sub(self.committed) as u64;
                self.committed += self.dice.below(behind + 1) as usize;
                log.move_high_watermark(self.end_of(&self.leader[..self.committed]));
            }
            33..=36 => self.elect(log)?,
            37 | 38 => self.become_leader(log)?,
            _ if self.dice.below(3) == 0 => self.restart(log)?,
            _ => {}
        }
        let offsets = log.offsets();
        assert_eq!(offsets.log_end_offset, self.end_of(&self.held), "{}", self.name);
        let committed = self.end_of(&self.leader[..self.committed]);
        assert!(offsets.high_watermark <= committed, "{}: {offsets:?}, not {committed}", self.name);
        Ok(())
    }

    /// What the log holds.
    fn read(&self, log: &PartitionLog) -> Vec<Batch> {
        let offsets = log.offsets();
        let mut found = Vec::new();
        let mut at = offsets.log_start_offset;
        while at < offsets.log_end_offset {
            let slice =
                log.read(at, 2_000, true, ReadUpTo::LogEnd).unwrap_or_else(|e| panic!("{}: {e}", self.name));
            assert!(slice.len > 0, "{}: nothing at {at} of {offsets:?}", self.name);
            found.extend(Batch::of(&slice.read().unwrap()));
            at = slice.next_offset;
        }
        for batch in &found {
            batch.header.verify_crc(&batch.bytes).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        }
        found
    }

    /// Opens the log and holds it against what it may be.
    fn check(&mut self, lost_power: bool) {
        let name = self.name.clone();
        let (_manager, log) = self.open().unwrap_or_else(|error| panic!("{name}: does not open: {error}"));
        let start = log.offsets().log_start_offset;
        let found = self.read(&log);
        let ends = |batches: &[Batch]| batches.iter().map(Batch::end).collect::<Vec<_>>();
        let is_prefix_of = |of: &[Batch]| of.get(..found.len()).is_some_and(|front| front == found);
        let mut least = if lost_power { self.durable } else { self.held.len() };
        let doubt = self.doubt.take();
        let fits = match &doubt {
            None => start == self.start && is_prefix_of(&self.held),
            Some(Doubt::More(more)) => {
                start == self.start && is_prefix_of(&[self.held.as_slice(), more].concat())
            }
            Some(Doubt::Fewer(kept)) => {
                least = least.min(*kept);
                start == self.start && is_prefix_of(&self.held)
            }
            Some(Doubt::Nothing(offset)) if start == *offset => {
                // Some of what was there may be left, without a hole.
                least = 0;
                found.is_empty() || self.held.windows(found.len()).any(|some| some == found)
            }
            Some(Doubt::Nothing(_)) => {
                least = 0;
                start == self.start && is_prefix_of(&self.held)
            }
        };
        let (held, kept) = (ends(&self.held), ends(&found));
        assert!(fits, "{name}: from {start} {kept:?}, of {} {held:?}", self.start);
        assert!(found.len() >= least, "{name}: {least} of {held:?} were durable, {kept:?} are left");
        if start != self.start {
            // What was interrupted is done again.
            log.restart_at(start).unwrap();
            self.begin_at(start);
            return;
        }
        self.durable = if lost_power { found.len() } else { self.durable.min(found.len()) };
        self.held = found;
        self.leads = false;
        self.check_state(&log);
        let committed = self.end_of(&self.leader[..self.committed]);
        let high_watermark = log.offsets().high_watermark;
        assert!(high_watermark <= committed, "{name}: {high_watermark} of {committed} after a restart");
    }

    /// The log knows what a replica knows that was made of its batches alone.
    fn check_state(&self, log: &PartitionLog) {
        let name = &self.name;
        let disk = SimDisk::new();
        let other = open_on(&|| Arc::new(disk.clone()), &self.clock, self.config(), self.epoch);
        let (_manager, other) = other.unwrap();
        other.restart_at(self.start).unwrap();
        let bytes: Vec<u8> = self.held.iter().flat_map(|batch| batch.bytes.clone()).collect();
        other.append_replica(&bytes).unwrap();
        for epoch in 0..=self.epoch + 1 {
            assert_eq!(log.epoch_end_offset(epoch), other.epoch_end_offset(epoch), "{name}: epoch {epoch}");
        }
        assert_eq!(log.latest_epoch(), other.latest_epoch(), "{name}");
        assert_eq!(log.producers(), other.producers(), "{name}");
        other.move_high_watermark(log.offsets().high_watermark);
        let (known, wanted) = (log.offsets(), other.offsets());
        assert_eq!(known.high_watermark, wanted.high_watermark, "{name}");
        assert_eq!(known.last_stable_offset, wanted.last_stable_offset, "{name}: {known:?}");
        assert_eq!(self.aborted(log), self.aborted(&other), "{name}");
    }

    /// The transactions that a reader of committed data must hide, by producer and marker.
    fn aborted(&self, log: &PartitionLog) -> BTreeSet<(i64, i64, i64)> {
        let mut found = BTreeSet::new();
        let mut at = self.start;
        while at < log.offsets().last_stable_offset {
            let slice = log.read(at, 1 << 20, true, ReadUpTo::LastStable).unwrap();
            if slice.len == 0 {
                assert!(self.has_gaps, "{}: nothing at {at} of {:?}", self.name, log.offsets());
                break;
            }
            found
                .extend(slice.aborted.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)));
            at = slice.next_offset;
        }
        found
    }

    fn work(&mut self, manager: &LogManager, log: &PartitionLog) -> Result<(), StorageError> {
        self.reconcile(log)?;
        (0..STEPS).try_for_each(|_| self.step(manager, log))
    }

    fn rounds(mut self, seed: u64) -> Bites {
        for round in 0..ROUNDS {
            let (manager, log) = self.open().unwrap_or_else(|e| panic!("{}: does not open: {e}", self.name));
            self.disk.inject(Fault::Halt(self.dice.below(200)));
            let worked = self.work(&manager, &log).is_ok();
            let cut_seed = seed.wrapping_mul(37).wrapping_add(round);
            let lost_power = ended(&self.disk, &mut self.dice, worked, (manager, log), cut_seed);
            self.check(lost_power);
            self.disk.crash_processes();
        }
        self.catch_up();
        self.disk.bites()
    }

    /// Copies all that the leader has; gives how often the disk was full.
    fn copy_whatever_is_full(&mut self, log: &PartitionLog, nth: u64) -> usize {
        let mut full = 0;
        while self.held.len() < self.leader.len() {
            if let Err(error) = self.fetch(log) {
                assert!(matches!(error, StorageError::DiskFull { .. }), "write {nth}: {error}");
                full += 1;
                self.held = self.read(log);
                assert!(self.leader.starts_with(&self.held), "write {nth}");
            }
        }
        full
    }

    /// The follower ends with the leader's bytes.
    fn catch_up(&mut self) {
        let (_manager, log) = self.open().unwrap();
        self.reconcile(&log).unwrap();
        while self.held.len() < self.leader.len() {
            self.fetch(&log).unwrap();
        }
        assert!(self.read(&log) == self.leader, "{}: other bytes than the leader's", self.name);
        self.check_state(&log);
    }
}

#[test]
fn power_cuts_at_random_leave_a_follower_with_a_prefix_of_what_it_held() {
    for durability in [Durability::Flushed, Durability::PageCache] {
        let runs = seeds().map(|seed| Run::new(seed, durability).rounds(seed));
        bitten(&format!("replica, {durability:?}, seeds {:?}", seeds()), runs);
    }
}

#[test]
fn epochs_that_were_forgotten_before_a_crash_do_not_come_back_with_their_file() {
    Run::new(5637, Durability::Flushed).rounds(5637);
    Run::new(3253, Durability::PageCache).rounds(3253);
}

/// Copies, truncates in the middle of a segment, at its begin, and to nothing, with rolls, checkpoints and syncs between.
fn life(run: &mut Run) -> Result<(), StorageError> {
    let (manager, log) = run.open()?;
    let copy = |run: &mut Run, count: usize| {
        (0..count).for_each(|_| run.lead());
        while run.held.len() < run.leader.len() {
            run.fetch(&log)?;
        }
        Ok::<_, StorageError>(())
    };
    for keep in [30, 22, 9, 0, 14] {
        copy(run, 24)?;
        run.clock.advance_ms(1_100);
        manager.run_maintenance().into_iter().next().map_or(Ok(()), Err)?;
        copy(run, 6)?;
        if keep == 22 {
            log.sync()?;
            run.durable = run.held.len();
        }
        run.leader.truncate(keep);
        run.epoch += 1;
        run.leads = false;
        log.set_role(Role::Follower, run.epoch)?;
        run.reconcile(&log)?;
        copy(run, 3)?;
    }
    run.committed = 5;
    log.move_high_watermark(run.end_of(&run.leader[..5]));
    run.restart(&log)?;
    copy(run, 10)?;
    manager.close()
}

/// Each change with a seed for what the disk drops; in a long run (`PYLOG_TEST_LONG=1`) with two.
fn cuts(changes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..changes).flat_map(move |at| (0..times(2)).map(move |more| (at, (at + more) % 2)))
}

fn cut_at_every_single_change(durability: Durability) {
    let mut whole = Run::new(3, durability);
    life(&mut whole).unwrap();
    let changes = whole.disk.changes();
    assert!(changes > 200, "{durability:?}: only {changes} changes");
    let runs = cuts(changes).map(|(at, seed)| {
        let mut run = Run::new(3, durability);
        run.name = format!("{durability:?}, cut at change {at}, seed {seed}");
        run.disk.inject(Fault::Halt(at));
        assert!(life(&mut run).is_err(), "{}: nothing noticed", run.name);
        run.disk.power_cut(at * 2 + seed);
        run.check(true);
        run.disk.crash_processes();
        run.check(false);
        run.disk.crash_processes();
        run.catch_up();
        run.disk.bites()
    });
    bitten(&format!("replica, {durability:?}, {changes} changes"), runs);
}

#[test]
fn a_power_cut_at_every_single_change_of_a_flushed_followers_life_keeps_the_promise() {
    cut_at_every_single_change(Durability::Flushed);
}

#[test]
fn a_power_cut_at_every_single_change_of_a_page_cache_followers_life_keeps_the_promise() {
    cut_at_every_single_change(Durability::PageCache);
}

#[test]
fn a_full_disk_leaves_a_follower_as_it_was_and_it_goes_on_when_there_is_space() {
    let (mut appends, mut truncations) = (0, 0);
    for nth in 0..90 {
        let mut run = Run::new(nth, Durability::PageCache);
        let (_manager, log) = run.open().unwrap();
        (0..40).for_each(|_| run.lead());
        run.disk.inject(Fault::Full(nth));
        appends += run.copy_whatever_is_full(&log, nth);
        run.leader.truncate(15);
        run.epoch += 1;
        (0..20).for_each(|_| run.lead());
        let before = run.held.clone();
        run.disk.inject(Fault::Full(nth % 9));
        let mut poisoned = false;
        while let Err(error) = run.reconcile(&log) {
            truncations += 1;
            poisoned = matches!(error, StorageError::Poisoned { .. });
            if poisoned {
                // No space even for bytes that are written over: a restart puts it in order.
                assert!(error.to_string().contains("index"), "write {nth}: {error}");
                break;
            }
            assert!(matches!(error, StorageError::DiskFull { .. }), "write {nth}: {error}");
            assert!(run.read(&log) == before, "write {nth}: something was cut");
            run.check_state(&log);
        }
        if poisoned {
            run.disk.crash_processes();
            run.check(false);
            run.disk.crash_processes();
            run.catch_up();
            continue;
        }
        appends += run.copy_whatever_is_full(&log, nth);
        assert!(run.read(&log) == run.leader, "write {nth}");
        run.check_state(&log);
    }
    assert!(
        appends > 20 && truncations > 20,
        "{appends} appends, {truncations} truncations found the disk full"
    );
}
