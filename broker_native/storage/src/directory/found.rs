//! Which partitions a data directory has.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::error::{DirectoryError, Result};
use super::partition::PartitionFiles;
use crate::checkpoint::{PartitionOffsets, read_offsets};
use crate::disk::RealDisk;
use crate::error::TopicPartition;
use crate::identity::read_topic_id;
use crate::names;

/// Topics that belong to brokers, as these say themselves, and Kafka's metadata.
const INTERNAL: [&str; 4] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];

/// A directory that was opened; the partitions are those that it had then.
#[derive(Debug)]
pub struct LogDirectory {
    path: PathBuf,
    partitions: BTreeSet<TopicPartition>,
    log_starts: PartitionOffsets,
    recovery_points: PartitionOffsets,
    cleaned: PartitionOffsets,
    skip_damaged: bool,
}

impl LogDirectory {
    /// Looks at a directory. `skip_damaged`: what is no batch is left out, wherever it stands.
    ///
    /// # Errors
    /// [`DirectoryError::NotADirectory`]; [`DirectoryError::File`] for a checkpoint that cannot be understood.
    pub fn open(path: &Path, skip_damaged: bool) -> Result<Self> {
        let wrong = |reason: String| DirectoryError::NotADirectory { path: path.to_path_buf(), reason };
        let listed = fs::read_dir(path)
            .map_err(|cause| wrong(format!("{cause}; all machines that read must see it under this path")))?;
        let (mut partitions, mut has_segments) = (BTreeSet::new(), false);
        for entry in listed {
            let entry = entry.map_err(|cause| DirectoryError::io("list", path, &cause))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            has_segments |=
                names::parse_segment_file(&name).is_some_and(|(_, suffix)| suffix == names::LOG_SUFFIX);
            if let Some(at) = names::parse_partition_dir(&name).filter(|_| entry.path().is_dir()) {
                partitions.insert(at);
            }
        }
        if has_segments {
            return Err(wrong(
                "it is the directory of one partition; give the one that it lies in".to_owned(),
            ));
        }
        if partitions.is_empty() && !path.join(names::META_PROPERTIES).exists() {
            return Err(wrong("it has no folder <topic>-<partition> and no meta.properties".to_owned()));
        }
        let offsets = |name: &str| {
            let file = path.join(name);
            // Apache Kafka makes the files when it starts, and fills them later.
            let is_empty = fs::metadata(&file).is_ok_and(|found| found.len() == 0);
            if is_empty { Ok(PartitionOffsets::new()) } else { read_offsets(&RealDisk, &file) }
        };
        Ok(Self {
            partitions,
            log_starts: offsets(names::LOG_START_CHECKPOINT)?,
            recovery_points: offsets(names::RECOVERY_POINT_CHECKPOINT)?,
            cleaned: offsets(names::CLEANER_CHECKPOINT)?,
            path: path.to_path_buf(),
            skip_damaged,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The partitions, by name.
    pub fn partitions(&self) -> impl Iterator<Item = &TopicPartition> {
        self.partitions.iter()
    }

    /// Whether the topic belongs to the brokers.
    pub fn is_internal(topic: &str) -> bool {
        INTERNAL.contains(&topic)
    }

    /// The id of a partition's topic; nil where no file says it.
    ///
    /// # Errors
    /// [`DirectoryError::File`] when the file makes no sense.
    pub fn topic_id(&self, at: &TopicPartition) -> Result<Uuid> {
        let found = read_topic_id(&RealDisk, &names::partition_dir(&self.path, at)?)?;
        Ok(found.unwrap_or_default())
    }

    /// The files of a partition.
    ///
    /// # Errors
    /// [`DirectoryError::Unknown`]; [`DirectoryError::File`] when its directory cannot be listed.
    pub fn partition(&self, at: &TopicPartition) -> Result<PartitionFiles> {
        if !self.partitions.contains(at) {
            return Err(DirectoryError::Unknown { at: at.clone(), path: self.path.clone() });
        }
        let said = super::partition::Said {
            log_start: self.log_starts.get(at).copied().unwrap_or(0),
            recovery_point: self.recovery_points.get(at).copied(),
            was_compacted: self.cleaned.contains_key(at),
            skip_damaged: self.skip_damaged,
        };
        PartitionFiles::open(at.clone(), names::partition_dir(&self.path, at)?, said)
    }
}
