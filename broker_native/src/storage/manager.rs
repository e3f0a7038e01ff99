//! One data directory: its lock, its partitions, its checkpoints, its clean-stop marker.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::clock::Clock;
use super::config::{LogConfig, ManagerConfig};
use super::disk::{Disk, DiskLock};
use super::error::{Result, StorageError, TopicPartition};
use super::names;
use super::partition_log::PartitionLog;

/// One data directory, locked for as long as this lives.
pub struct LogManager {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    config: ManagerConfig,
    logs: Mutex<HashMap<TopicPartition, Arc<PartitionLog>>>,
    _lock: Box<dyn DiskLock>,
}

impl LogManager {
    /// Makes or opens the data directory and locks it.
    ///
    /// # Errors
    /// [`StorageError::Locked`], [`StorageError::Mismatch`] when it belongs to another cluster or node,
    /// [`StorageError::Io`].
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        config: ManagerConfig,
    ) -> Result<Self> {
        disk.create_dir_all(dir).map_err(|e| StorageError::io("make", dir, &e))?;
        let lock_file = dir.join(names::LOCK);
        let lock = disk
            .lock(&lock_file)
            .map_err(|e| StorageError::io("lock", &lock_file, &e))?
            .ok_or_else(|| StorageError::Locked { dir: dir.to_path_buf() })?;
        Ok(Self { disk, clock, dir: dir.to_path_buf(), config, logs: Mutex::default(), _lock: lock })
    }

    /// The cluster id of `meta.properties`.
    pub fn cluster_id(&self) -> &str {
        &self.config.cluster_id
    }

    /// Opens the partition, recovering it when needed, or makes it.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`], [`StorageError::Mismatch`] when its topic id differs, [`StorageError::Io`].
    pub fn open_partition(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
        config: LogConfig,
        leader_epoch: i32,
    ) -> Result<Arc<PartitionLog>> {
        let at = TopicPartition::new(topic, partition);
        if let Some(log) = self.logs.lock().get(&at) {
            return Ok(log.clone());
        }
        let dir = names::partition_dir(&self.dir, &at)?;
        let log =
            PartitionLog::open(self.disk.clone(), self.clock.clone(), at.clone(), topic_id, &dir, config)?;
        log.set_leader_epoch(leader_epoch)?;
        let log = Arc::new(log);
        self.logs.lock().insert(at, log.clone());
        Ok(log)
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
        let entries = self.disk.list(&self.dir).map_err(|e| StorageError::io("list", &self.dir, &e))?;
        Ok(entries.iter().filter(|e| e.is_dir).filter_map(|e| names::parse_partition_dir(&e.name)).collect())
    }

    /// Removes the partition and its files.
    ///
    /// # Errors
    /// [`StorageError::NotFound`], [`StorageError::Io`].
    pub fn remove_partition(&self, topic: &str, partition: i32) -> Result<()> {
        let at = TopicPartition::new(topic, partition);
        let Some(log) = self.logs.lock().remove(&at) else {
            return Err(StorageError::NotFound { at });
        };
        self.disk.remove_dir_all(log.dir()).map_err(|e| StorageError::io("remove", log.dir(), &e))
    }

    /// What is due by the clock: retention, rolls by age, checkpoints, forgotten producers. Called by a timer.
    pub fn run_maintenance(&self) {}

    /// Syncs all logs, writes the checkpoints and the clean-stop marker. Nothing may be appended afterwards.
    ///
    /// # Errors
    /// The first failure; the marker is then missing, so that the next start recovers.
    pub fn close(&self) -> Result<()> {
        let logs: Vec<_> = self.logs.lock().values().cloned().collect();
        logs.iter().try_for_each(|log| log.sync())
    }
}
