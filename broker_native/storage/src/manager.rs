//! One data directory: its lock, its partitions, its checkpoints, its clean-stop marker.
//!
//! Every method may be called from any thread. Nothing here runs by itself except the flusher's threads: call
//! [`LogManager::run_maintenance`] from a timer and [`LogManager::close`] at the end.
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::cleaner::{Cleaner, CleanerConfig, Cleaning, Pace};
use super::clock::Clock;
use super::config::{LogConfig, ManagerConfig};
use super::disk::{Disk, DiskLock};
use super::error::{Result, StorageError, TopicPartition};
use super::identity::{claim_data_dir, leave_clean_stop, leave_nonce, take_clean_stop};
use super::names;
use super::partition_log::{PartitionLog, Role};
use super::shared::{CrowdedListener, Shared};
use super::types::{RetentionLimit, Retired};
use pylog_log::broker::carried;

/// Threads that close logs: each waits for its own fdatasync.
const CLOSING_THREADS: usize = 8;
/// Longest file name of common file systems.
const MAX_FILE_NAME_BYTES: usize = 255;

/// One data directory, locked until [`LogManager::close`].
pub struct LogManager {
    shared: Arc<Shared>,
    cluster_id: String,
    /// Whether the last user of the directory stopped cleanly.
    clean: bool,
    logs: Mutex<HashMap<TopicPartition, Arc<PartitionLog>>>,
    opening: Mutex<HashSet<TopicPartition>>,
    opened: Condvar,
    cleaner: Cleaner,
    lock: Mutex<Option<Box<dyn DiskLock>>>,
    /// When the high watermarks were written down last, milliseconds since the epoch.
    high_watermarks_ms: AtomicI64,
    /// When retention was applied last, milliseconds since the epoch.
    retention_ms: AtomicI64,
    on_retired: OnceLock<RetiredListener>,
}

/// Called with what retention removed from a log.
pub type RetiredListener = Box<dyn Fn(&Retired) + Send + Sync>;

/// Whether `interval_ms` has passed since `last_ms`, which is `now_ms` from then on. A clock that was set back does not
/// put it off.
fn is_due(last_ms: &AtomicI64, interval_ms: i64, now_ms: i64) -> bool {
    let since_ms = now_ms.saturating_sub(last_ms.load(Ordering::Acquire));
    let due = !(0..interval_ms).contains(&since_ms);
    if due {
        last_ms.store(now_ms, Ordering::Release);
    }
    due
}

impl LogManager {
    /// Makes or opens the data directory and locks it.
    ///
    /// # Errors
    /// [`StorageError::Locked`], [`StorageError::Mismatch`] when it belongs to another cluster or node,
    /// [`StorageError::Malformed`], [`StorageError::Io`].
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        config: ManagerConfig,
    ) -> Result<Self> {
        make_durably(&*disk, dir)?;
        let lock_file = dir.join(names::LOCK);
        let lock = disk
            .lock(&lock_file)
            .map_err(|e| StorageError::io("lock", &lock_file, &e))?
            .ok_or_else(|| StorageError::Locked { dir: dir.to_path_buf() })?;
        let cluster_id = claim_data_dir(&*disk, dir, &config)?;
        // What a killed process renamed and did not sync must not go back after it was seen here.
        disk.sync_dir(dir).map_err(|e| StorageError::io("sync", dir, &e))?;
        let shared = Arc::new(Shared::open(disk, clock, dir, config)?);
        // Last: what was refused before does not cost the clean stop.
        let clean = take_clean_stop(&*shared.disk, dir)?;
        let manager = Self {
            shared,
            cluster_id,
            clean,
            logs: Mutex::default(),
            opening: Mutex::default(),
            opened: Condvar::new(),
            cleaner: Cleaner::default(),
            lock: Mutex::new(Some(lock)),
            high_watermarks_ms: AtomicI64::new(0),
            retention_ms: AtomicI64::new(0),
            on_retired: OnceLock::new(),
        };
        manager.bury_removed_partitions()?;
        Ok(manager)
    }

    /// The cluster id of `meta.properties`.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The data directory, absolute unless the working directory is gone.
    pub fn dir(&self) -> PathBuf {
        std::path::absolute(&self.shared.dir).unwrap_or_else(|_| self.shared.dir.to_path_buf())
    }

    /// Puts a number that nobody can guess into the file [`names::LOCAL_READS`] of the data directory: who can tell it sees the same
    /// directory, and may read what the files' permissions allow.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn leave_nonce(&self) -> Result<Uuid> {
        leave_nonce(&*self.shared.disk, &self.shared.dir)
    }

    /// Whether the last user of the directory stopped cleanly, so that nothing is scanned.
    pub fn was_clean(&self) -> bool {
        self.clean
    }

    /// Opens the partition, recovering it when needed, or makes it. Different partitions may be opened at the same
    /// time by different threads. A nil `topic_id` takes what the directory says.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`], [`StorageError::ChangedWhileStopped`], [`StorageError::Mismatch`] when its topic id differs, [`StorageError::Malformed`],
    /// [`StorageError::Io`].
    pub fn open_partition(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
        config: LogConfig,
        role: Role,
        leader_epoch: i32,
    ) -> Result<Arc<PartitionLog>> {
        let at = TopicPartition::new(topic, partition);
        let mut opening = self.opening.lock();
        while opening.contains(&at) {
            self.opened.wait(&mut opening);
        }
        if let Some(log) = self.logs.lock().get(&at) {
            return Ok(log.clone());
        }
        if self.lock.lock().is_none() {
            return Err(StorageError::Closed { at });
        }
        opening.insert(at.clone());
        drop(opening);
        let opened = PartitionLog::open(&self.shared, &at, topic_id, config, role, self.clean);
        let opened = opened.and_then(|log| log.set_role(role, leader_epoch).map(|()| log));
        if let Ok(log) = &opened {
            self.logs.lock().insert(at.clone(), log.clone());
        }
        self.opening.lock().remove(&at);
        self.opened.notify_all();
        opened
    }

    /// The open partition; `None` when it is not open.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<Arc<PartitionLog>> {
        self.logs.lock().get(&TopicPartition::new(topic, partition)).cloned()
    }

    /// The partitions whose directories are there, open or not.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn partitions_on_disk(&self) -> Result<Vec<TopicPartition>> {
        let entries = self.list()?;
        Ok(entries.iter().filter_map(|name| names::parse_partition_dir(name)).collect())
    }

    /// The directories in the data directory.
    fn list(&self) -> Result<Vec<String>> {
        let dir = &self.shared.dir;
        let entries = self.shared.disk.list(dir).map_err(|e| StorageError::io("list", dir, &e))?;
        Ok(entries.into_iter().filter(|e| e.is_dir).map(|e| e.name).collect())
    }

    /// These logs are known to have been in the directory, which is a new one: each is refused, by this start and later ones, until
    /// it is put back or given up.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn expect(&self, logs: impl Iterator<Item = (TopicPartition, Uuid)>) -> Result<()> {
        self.shared.inventory.expect(&*self.shared.disk, logs)
    }

    /// Writes down which logs were made since the last call, so that one whose folder is lost is missed.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn note_made(&self) -> Result<()> {
        self.shared.note_made()
    }

    /// Nothing is expected of a log that this broker does not have: it moved away.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn expect_nothing(&self, topic: &str, partition: i32) -> Result<()> {
        self.shared.inventory.forget(&*self.shared.disk, [&TopicPartition::new(topic, partition)])
    }

    /// Removes the partition, see [`LogManager::remove_partitions`].
    ///
    /// # Errors
    /// [`StorageError::NotFound`], [`StorageError::Io`].
    pub fn remove_partition(&self, topic: &str, partition: i32) -> Result<()> {
        self.remove_partitions(topic, [partition])
    }

    /// Removes partitions: their directories are renamed at once, on the device, and unlinked `file.delete.delay.ms`
    /// later. A log that is still in use gives errors. All of them share one sync and one writing of each checkpoint: a topic
    /// of 1,000 partitions took 0.6 s when each had its own.
    ///
    /// # Errors
    /// The first [`StorageError::Io`], or [`StorageError::NotFound`]; the others are removed all the same.
    pub fn remove_partitions(&self, topic: &str, partitions: impl IntoIterator<Item = i32>) -> Result<()> {
        let mut first = Ok(());
        let mut removed = Vec::new();
        let going: Vec<_> = partitions.into_iter().map(|number| TopicPartition::new(topic, number)).collect();
        // First: a kill behind the renames must not leave a checkpoint that misses what was removed. On a full disk it may.
        let _ =
            self.shared.update_recovery_points(|points| going.iter().for_each(|at| _ = points.remove(at)));
        for at in going {
            match self.bring_to_grave(&at) {
                Ok((grave, delay_ms)) => removed.push((at, grave, delay_ms)),
                Err(error) if matches!(first, Ok(()) | Err(StorageError::NotFound { .. })) => {
                    first = Err(error)
                }
                Err(_) => {}
            }
        }
        if removed.is_empty() {
            return first;
        }
        let synced = self.shared.disk.sync_dir(&self.shared.dir);
        synced.map_err(|e| StorageError::io("sync", &self.shared.dir, &e))?;
        let mut names = Vec::with_capacity(removed.len());
        for (at, grave, delay_ms) in removed {
            self.shared.bury(grave, true, delay_ms);
            names.push(at);
        }
        names.iter().for_each(|at| self.cleaner.forget(at));
        self.shared.forget(&names)?;
        self.shared.inventory.forget(&*self.shared.disk, &names)?;
        first
    }

    /// Ends the log and renames its directory; gives the new name, and how long that stays.
    fn bring_to_grave(&self, at: &TopicPartition) -> Result<(PathBuf, i64)> {
        let dir = names::partition_dir(&self.shared.dir, at)?;
        let log = self.logs.lock().remove(at);
        let delay_ms = log.as_ref().map_or(0, |log| log.config().file_delete_delay_ms);
        if let Some(log) = log {
            log.abandon();
        }
        let grave = self.shared.dir.join(grave_name(at));
        match self.shared.disk.rename(&dir, &grave) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                Err(StorageError::NotFound { at: at.clone() })
            }
            renamed => {
                renamed.map_err(|e| StorageError::io("rename", &dir, &e))?;
                Ok((grave, delay_ms))
            }
        }
    }

    /// Compacts the one log that needs it most, as far as `settings` gives memory for its keys. May take minutes: call it
    /// from a thread of its own, as long as there is something to do.
    pub fn clean_dirtiest(&self, settings: &CleanerConfig, pace: &dyn Pace) -> Cleaning {
        let logs: Vec<_> = self.logs.lock().values().cloned().collect();
        self.cleaner.clean_dirtiest(&self.shared, &logs, settings, pace)
    }

    /// Directories whose removal a stop interrupted go at the next maintenance.
    fn bury_removed_partitions(&self) -> Result<()> {
        for name in self.list()? {
            if name.ends_with(names::DELETE_DIR_SUFFIX) {
                self.shared.bury(self.shared.dir.join(name), true, 1);
            }
        }
        Ok(())
    }

    /// Sets the listener for what retention removed; the first one stays.
    pub fn on_retired(&self, listener: RetiredListener) {
        let _ = self.on_retired.set(listener);
    }

    /// Sets the listener for partitions that forgot producers because there were too many; the first one stays.
    pub fn on_crowded(&self, listener: CrowdedListener) {
        let _ = self.shared.on_crowded.set(listener);
    }

    /// Closes some idle files, because a file descriptor is needed; whether there were any.
    pub fn close_idle_files(&self) -> bool {
        self.shared.pool.close_idle()
    }

    /// What is due by the clock: removal of files, rolls by age, retention, checkpoints, forgotten producers. Call it
    /// about every second. A log that fails does not keep the others from their turn; the errors are for the operator.
    pub fn run_maintenance(&self) -> Vec<StorageError> {
        let mut errors = Vec::new();
        let now_ms = self.shared.clock.now_ms();
        let logs: Vec<_> = self.logs.lock().values().cloned().collect();
        self.shared.unlink_due();
        let mut keep = |done: Result<()>| errors.extend(done.err());
        logs.iter().for_each(|log| keep(log.roll_if_old(now_ms)));
        if is_due(&self.retention_ms, self.shared.config.retention_check_interval_ms, now_ms) {
            self.retain(&logs, now_ms, &mut keep);
        }
        let before_ms = now_ms.saturating_sub(self.shared.config.checkpoint_interval_ms);
        let dirty: Vec<_> = logs.into_iter().filter(|log| log.is_dirty_since(before_ms)).collect();
        self.write_recovery_points(&dirty, PartitionLog::checkpoint, &mut keep);
        let interval_ms = self.shared.config.replica_high_watermark_checkpoint_interval_ms;
        if is_due(&self.high_watermarks_ms, interval_ms, now_ms) {
            keep(self.write_high_watermarks());
        }
        errors
    }

    fn retain(&self, logs: &[Arc<PartitionLog>], now_ms: i64, keep: &mut impl FnMut(Result<()>)) {
        let mut starts: Vec<(&Arc<PartitionLog>, i64, RetentionLimit)> = Vec::new();
        for log in logs {
            match log.retention_start(now_ms) {
                Ok(start) => starts.extend(start.map(|(start, limit)| (log, start, limit))),
                Err(error) => keep(Err(error)),
            }
        }
        let known = starts.iter().map(|(log, start, _)| (log.topic_partition().clone(), *start));
        let written = self.shared.update_log_starts(|offsets| {
            for (at, start) in known {
                let offset = offsets.entry(at).or_insert(start);
                *offset = start.max(*offset);
            }
        });
        if written.is_ok() {
            for (log, start, limit) in starts {
                let first = log.offsets().log_start_offset;
                let (segments, bytes) = log.move_start(start);
                if let Some(listener) = self.on_retired.get() {
                    let (at, offsets) = (log.topic_partition().clone(), first..start);
                    listener(&Retired { at, offsets, segments, bytes, limit });
                }
            }
        }
        keep(written);
    }

    /// Writes down up to where each log with other replicas is committed, when that has changed.
    fn write_high_watermarks(&self) -> Result<()> {
        let logs: Vec<_> = self.logs.lock().values().cloned().collect();
        self.shared.update_high_watermarks(|offsets| {
            logs.iter().for_each(|log| log.note_high_watermark(offsets));
        })
    }

    /// Brings `logs` to the device by `how`, and writes down up to where they are there.
    fn write_recovery_points(
        &self,
        logs: &[Arc<PartitionLog>],
        how: impl Fn(&PartitionLog) -> Result<i64> + Sync,
        keep: &mut impl FnMut(Result<()>),
    ) {
        let per_thread = logs.len().div_ceil(CLOSING_THREADS).max(1);
        let how = &how;
        let results: Vec<(&Arc<PartitionLog>, Result<i64>)> = std::thread::scope(|scope| {
            if logs.len() <= 1 {
                return each(logs, how);
            }
            let threads: Vec<_> =
                logs.chunks(per_thread).map(|chunk| scope.spawn(carried(move || each(chunk, how)))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
        });
        // What the checkpoint names must be on the device before.
        keep(self.shared.sync_names());
        let mut points = Vec::new();
        for (log, result) in results {
            match result {
                Ok(offset) => points.push((log, offset)),
                Err(error) => keep(Err(error)),
            }
        }
        let counts = points.iter().map(|(log, _)| log.aborted_counts());
        keep(self.shared.inventory.note_aborted(&*self.shared.disk, counts));
        keep(self.shared.update_recovery_points(|offsets| {
            // A log that was truncated since is on the device only up to there.
            let now = |log: &PartitionLog, offset: i64| log.flushed().min(offset);
            offsets.extend(
                points.into_iter().map(|(log, offset)| (log.topic_partition().clone(), now(log, offset))),
            );
        }));
    }

    /// Brings all logs to the device, writes the checkpoints and the clean-stop marker, and unlocks the directory.
    /// Appends are refused from now on. Calling it again does nothing.
    ///
    /// # Errors
    /// The first failure; the marker is then missing, so that the next start recovers.
    pub fn close(&self) -> Result<()> {
        let Some(_lock) = self.lock.lock().take() else { return Ok(()) };
        let logs: Vec<_> = self.logs.lock().values().cloned().collect();
        let mut first = Ok(());
        let mut keep = |done: Result<()>| {
            if first.is_ok() {
                first = done;
            }
        };
        self.write_recovery_points(&logs, PartitionLog::close, &mut keep);
        keep(self.write_high_watermarks());
        keep(self.shared.sync_names());
        self.shared.flusher.stop();
        first?;
        let (disk, dir) = (&*self.shared.disk, &self.shared.dir);
        let held: Result<Vec<_>> = logs.iter().map(|log| log.held()).collect();
        leave_clean_stop(disk, dir, self.shared.config.broker_epoch)?;
        // Behind the marker: a list without one would stand for a stop that was not clean.
        self.shared.inventory.leave(disk, dir, held?)
    }
}

impl Drop for LogManager {
    fn drop(&mut self) {
        self.shared.flusher.stop();
    }
}

/// Each log, and what `how` says of it.
fn each<'a, T>(
    logs: &'a [Arc<PartitionLog>],
    how: &impl Fn(&PartitionLog) -> T,
) -> Vec<(&'a Arc<PartitionLog>, T)> {
    logs.iter().map(|log| (log, how(log))).collect()
}

/// Makes the data directory, and its name survive a loss of power.
fn make_durably(disk: &dyn Disk, dir: &Path) -> Result<()> {
    disk.create_dir_all(dir).map_err(|e| StorageError::io("make", dir, &e))?;
    match dir.parent().map(|parent| disk.sync_dir(parent)) {
        // A parent that may not be read was there before; one without a name is the working directory.
        Some(Err(e)) if !matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => {
            Err(StorageError::io("sync", dir, &e))
        }
        _ => Ok(()),
    }
}

/// Kafka's name for the directory of a partition that is being removed.
fn grave_name(at: &TopicPartition) -> String {
    let suffix = format!("-{}.{}{}", at.partition, Uuid::new_v4().simple(), names::DELETE_DIR_SUFFIX);
    // Topic names are ASCII.
    let room = MAX_FILE_NAME_BYTES.saturating_sub(suffix.len()).min(at.topic.len());
    format!("{}{suffix}", at.topic.get(..room).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_so_once_in_each_interval_and_when_the_clock_was_set_back() {
        let last_ms = AtomicI64::new(0);
        let due: Vec<bool> =
            [100, 101, 109, 110, 50, 59, 60].map(|now_ms| is_due(&last_ms, 10, now_ms)).to_vec();
        assert_eq!(due, [true, false, false, true, true, false, true]);
    }
}
