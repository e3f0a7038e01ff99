//! A log with a disk under it, batches to put in, and what a reader gets out.
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use pylog_record::{BatchBuilder, BatchHeader, Codec, batches, records};
use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, Appended, Disk, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo, RealDisk,
    StorageError,
};
use uuid::Uuid;

/// The topic of all tests.
pub const TOPIC: &str = "flights";
/// Where the clock stands at first, milliseconds since the epoch.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// One broker's storage with one partition.
pub struct Broker {
    pub clock: Arc<ManualClock>,
    pub manager: LogManager,
    pub log: Arc<PartitionLog>,
}

/// Settings with no threads: who waits for a flush runs it.
pub fn manager_config() -> ManagerConfig {
    ManagerConfig { flush_threads: 0, ..ManagerConfig::default() }
}

/// Many small segments and index entries.
pub fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 2_000,
        index_interval_bytes: 200,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    }
}

impl Broker {
    pub fn on(disk: Arc<dyn Disk>, dir: &Path, config: LogConfig) -> Result<Self, StorageError> {
        Self::at(Arc::new(ManualClock::at(NOW_MS)), disk, dir, config)
    }

    pub fn at(
        clock: Arc<ManualClock>,
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: LogConfig,
    ) -> Result<Self, StorageError> {
        Self::with(clock, disk, dir, manager_config(), config)
    }

    /// With settings of the data directory.
    pub fn with(
        clock: Arc<ManualClock>,
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: ManagerConfig,
        config: LogConfig,
    ) -> Result<Self, StorageError> {
        let manager = LogManager::open(disk, clock.clone(), dir, settings)?;
        let log = manager.open_partition(TOPIC, 0, Uuid::from_u128(7), config, Role::Alone, 0)?;
        Ok(Self { clock, manager, log })
    }

    /// With small segments; keeps at most so many bytes of what recovery cuts.
    pub fn keeping(dir: &Path, recovery_kept_bytes: u64) -> Result<Self, StorageError> {
        let settings = ManagerConfig { recovery_kept_bytes, ..manager_config() };
        let clock = Arc::new(ManualClock::at(NOW_MS));
        Self::with(clock, Arc::new(RealDisk), dir, settings, small_segments())
    }

    /// On the file system of this machine.
    pub fn real(dir: &Path, config: LogConfig) -> Result<Self, StorageError> {
        Self::on(Arc::new(RealDisk), dir, config)
    }
}

/// A batch of `count` records with values `<first>`, `<first + 1>`... and timestamps from `timestamp_ms` on.
pub fn batch_at(first: i64, count: i64, padding: usize, timestamp_ms: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for i in 0..count {
        let value = format!("{}:{}", first + i, "x".repeat(padding));
        builder.append(timestamp_ms + i, None, Some(value.as_bytes()), &[]).unwrap();
    }
    builder.finish(Codec::None).unwrap()
}

/// The same, at the time when the clock begins.
pub fn batch(first: i64, count: i64, padding: usize) -> Vec<u8> {
    batch_at(first, count, padding, NOW_MS)
}

/// Appends a batch in epoch 0.
pub fn append(log: &PartitionLog, mut batch: Vec<u8>) -> Result<Appended, StorageError> {
    log.append(&mut batch, AppendOptions::client(0))
}

/// Appends `count` records whose values are their offsets, in one batch.
pub fn fill(log: &PartitionLog, count: i64, padding: usize) -> Result<Appended, StorageError> {
    append(log, batch(log.offsets().log_end_offset, count, padding))
}

/// Waits for durability where the log has no flusher threads.
pub fn durable(log: &PartitionLog, last_offset: i64) -> Result<(), StorageError> {
    let (sender, receiver) = std::sync::mpsc::channel();
    log.wait_durable(last_offset, Box::new(move |done| sender.send(done).unwrap()));
    receiver.recv().unwrap()
}

/// `(offset, value)` of all that a reader sees from `offset` on; CRCs are checked.
pub fn read_all(
    log: &PartitionLog,
    mut offset: i64,
    max_bytes: usize,
    upto: ReadUpTo,
) -> Result<Vec<(i64, String)>, StorageError> {
    let mut seen = Vec::new();
    loop {
        let slice = log.read(offset, max_bytes, true, upto)?;
        if slice.len == 0 {
            return Ok(seen);
        }
        let bytes = slice.read().unwrap();
        let whole: usize = batches(&bytes).map(|found| found.unwrap().0.size()).sum();
        assert_eq!(whole, bytes.len(), "only whole batches");
        seen.extend(values(&bytes));
        assert!(slice.next_offset > offset, "a read moves on");
        assert_eq!(seen.last().unwrap().0 + 1, slice.next_offset);
        offset = slice.next_offset;
    }
}

/// `(offset, value)` of a run of whole batches.
pub fn values(bytes: &[u8]) -> Vec<(i64, String)> {
    let mut seen = Vec::new();
    for found in batches(bytes) {
        let (header, bytes) = found.unwrap();
        values_of(&header, bytes, &mut seen);
    }
    seen
}

fn values_of(header: &BatchHeader, bytes: &[u8], seen: &mut Vec<(i64, String)>) {
    header.verify_crc(bytes).unwrap();
    for record in records(&bytes[61..], header) {
        let record = record.unwrap();
        let value = std::str::from_utf8(record.value.unwrap()).unwrap();
        seen.push((record.offset, value.split(':').next().unwrap().to_owned()));
    }
}

/// What a log of offsets `[start, end)` holds when each value is its offset.
pub fn counted(start: i64, end: i64) -> Vec<(i64, String)> {
    (start..end).map(|offset| (offset, offset.to_string())).collect()
}

/// The marker that a broker leaves at a clean stop.
pub const CLEAN_STOP: &str = ".kafka_cleanshutdown";

/// Gives a file a time of its last write.
pub fn set_modified(path: &Path, time: SystemTime) {
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// A directory in memory where the machine has one: thousands of damaged copies are opened, and each open syncs.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
