//! What the partitions of one data directory share: disk, clock, open files, checkpoints, the flusher, and files that
//! wait for removal.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::checkpoint::{PartitionOffsets, read_offsets, write_offsets};
use super::clock::Clock;
use super::config::ManagerConfig;
use super::disk::Disk;
use super::error::{Result, StorageError, TopicPartition};
use super::files::FilePool;
use super::flusher::Flusher;
use super::inventory::Inventory;
use super::names;

/// See the module.
pub(super) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub pool: Arc<FilePool>,
    pub dir: PathBuf,
    pub config: ManagerConfig,
    pub flusher: Flusher,
    /// First readable offsets that are not the base of the first segment.
    pub log_starts: Checkpoint,
    /// Up to where each log is on the device.
    pub recovery_points: Checkpoint,
    /// Up to where each compacted log was cleaned; a log that is named here may have holes.
    pub cleaner_offsets: Checkpoint,
    /// Up to where logs with other replicas were committed; may be behind.
    pub high_watermarks: Checkpoint,
    /// What the logs were at the last clean stop.
    pub inventory: Inventory,
    /// Whether a partition's directory was made, and its name may not be on the device.
    pub unsynced: AtomicBool,
    /// Logs that were made and that no checkpoint names yet.
    pub made: Mutex<Vec<TopicPartition>>,
    graveyard: Mutex<Vec<Doomed>>,
    /// Called when a partition had more producers than it may remember.
    pub on_crowded: OnceLock<CrowdedListener>,
}

/// Called with a partition and how many of its producers were forgotten because there were too many.
pub type CrowdedListener = Box<dyn Fn(&TopicPartition, usize) + Send + Sync>;

/// One checkpoint of the data directory: its content, and the file.
pub(super) struct Checkpoint {
    name: &'static str,
    offsets: Mutex<PartitionOffsets>,
}

/// A renamed file or directory that is unlinked when its time comes.
struct Doomed {
    /// By the steady clock.
    due_ms: i64,
    path: PathBuf,
    is_dir: bool,
}

impl Checkpoint {
    /// Reads the checkpoint of that name.
    fn read(disk: &dyn Disk, dir: &Path, name: &'static str) -> Result<Self> {
        let offsets = read_offsets(disk, &dir.join(name))?;
        Ok(Self { name, offsets: Mutex::new(offsets) })
    }

    /// The partition's offset.
    pub fn get(&self, at: &TopicPartition) -> Option<i64> {
        self.offsets.lock().get(at).copied()
    }

    /// Changes the content by `change`, and the file when that changed anything.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`]; content and file are then as before.
    pub fn update(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        change: impl FnOnce(&mut PartitionOffsets),
    ) -> Result<()> {
        let mut offsets = self.offsets.lock();
        let mut changed = offsets.clone();
        change(&mut changed);
        if changed != *offsets {
            write_offsets(disk, &dir.join(self.name), &changed)?;
            *offsets = changed;
        }
        Ok(())
    }

    /// Takes partitions out. The content, which names every log, is copied only where it names one of them: each new log asks.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    fn forget(&self, disk: &dyn Disk, dir: &Path, going: &[TopicPartition]) -> Result<()> {
        let is_named = |offsets: &PartitionOffsets| going.iter().any(|at| offsets.contains_key(at));
        if !is_named(&self.offsets.lock()) {
            return Ok(());
        }
        self.update(disk, dir, |offsets| going.iter().for_each(|at| _ = offsets.remove(at)))
    }
}

impl Shared {
    /// Makes the names of partition directories durable when one is not.
    pub fn sync_names(&self) -> Result<()> {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.disk.sync_dir(&self.dir).map_err(|e| {
            self.unsynced.store(true, Ordering::Release);
            StorageError::io("sync", &self.dir, &e)
        })
    }

    /// Writes down which logs were made: a folder that is gone later was there.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    pub fn note_made(&self) -> Result<()> {
        let made = std::mem::take(&mut *self.made.lock());
        if made.is_empty() {
            return Ok(());
        }
        // A loss of power must not leave a checkpoint that names a folder which never came to the device.
        let noted = self.sync_names().and_then(|()| {
            self.update_recovery_points(|points| {
                made.iter().for_each(|at| _ = points.entry(at.clone()).or_insert(0))
            })
        });
        noted.inspect_err(|_| self.made.lock().extend(made.iter().cloned()))
    }

    /// Changes the first readable offsets, on the device when this returns.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    pub fn update_log_starts(&self, change: impl FnOnce(&mut PartitionOffsets)) -> Result<()> {
        self.log_starts.update(&*self.disk, &self.dir, change)
    }

    /// Changes the recovery points, on the device when this returns.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    pub fn update_recovery_points(&self, change: impl FnOnce(&mut PartitionOffsets)) -> Result<()> {
        self.recovery_points.update(&*self.disk, &self.dir, change)
    }

    /// Changes up to where logs were cleaned, on the device when this returns.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    pub fn update_cleaner_offsets(&self, change: impl FnOnce(&mut PartitionOffsets)) -> Result<()> {
        self.cleaner_offsets.update(&*self.disk, &self.dir, change)
    }

    /// Changes up to where logs are known to be committed, on the device when this returns.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`].
    pub fn update_high_watermarks(&self, change: impl FnOnce(&mut PartitionOffsets)) -> Result<()> {
        self.high_watermarks.update(&*self.disk, &self.dir, change)
    }

    /// Takes partitions that are gone, or not there yet, out of all checkpoints.
    ///
    /// # Errors
    /// Those of [`Checkpoint::update`]; checkpoints behind the one that failed are as before.
    pub fn forget(&self, going: &[TopicPartition]) -> Result<()> {
        let all = [&self.recovery_points, &self.log_starts, &self.high_watermarks, &self.cleaner_offsets];
        all.into_iter().try_for_each(|each| each.forget(&*self.disk, &self.dir, going))
    }

    /// Renames a segment's file and unlinks it `delay_ms` later. A file that cannot be renamed is left for the next
    /// start, which finds it below the log's start.
    pub fn bury_file(&self, path: &Path, delay_ms: i64) {
        let mut grave = path.as_os_str().to_owned();
        grave.push(names::DELETED_SUFFIX);
        let grave = PathBuf::from(grave);
        if self.disk.rename(path, &grave).is_ok() {
            self.bury(grave, false, delay_ms);
        }
    }

    /// Unlinks what was renamed already, `delay_ms` from now.
    pub fn bury(&self, path: PathBuf, is_dir: bool, delay_ms: i64) {
        let due_ms = self.clock.steady_ms().saturating_add(delay_ms);
        self.graveyard.lock().push(Doomed { due_ms, path, is_dir });
        if delay_ms <= 0 {
            self.unlink_due();
        }
    }

    /// Unlinks what is due. What cannot be unlinked is left for the next start.
    pub fn unlink_due(&self) {
        let now_ms = self.clock.steady_ms();
        let due: Vec<Doomed> = {
            let mut graveyard = self.graveyard.lock();
            let (due, later) = graveyard.drain(..).partition(|doomed| doomed.due_ms <= now_ms);
            *graveyard = later;
            due
        };
        for doomed in due {
            let _ = if doomed.is_dir {
                self.disk.remove_dir_all(&doomed.path)
            } else {
                self.disk.remove_file(&doomed.path)
            };
        }
    }

    /// The shared part of a data directory that is locked.
    ///
    /// # Errors
    /// [`StorageError::Malformed`] and [`StorageError::Io`] of a checkpoint.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        config: ManagerConfig,
    ) -> Result<Self> {
        let pool = Arc::new(FilePool::new(disk, config.max_open_files));
        let disk = Arc::clone(&pool.disk);
        let checkpoint = |name| Checkpoint::read(&*disk, dir, name);
        Ok(Self {
            log_starts: checkpoint(names::LOG_START_CHECKPOINT)?,
            recovery_points: checkpoint(names::RECOVERY_POINT_CHECKPOINT)?,
            cleaner_offsets: checkpoint(names::CLEANER_CHECKPOINT)?,
            high_watermarks: checkpoint(names::HIGH_WATERMARK_CHECKPOINT)?,
            inventory: Inventory::take(&*disk, dir)?,
            pool,
            flusher: Flusher::new(config.flush_threads),
            disk,
            clock,
            dir: dir.to_path_buf(),
            config,
            unsynced: AtomicBool::new(false),
            made: Mutex::default(),
            graveyard: Mutex::default(),
            on_crowded: OnceLock::new(),
        })
    }
}
