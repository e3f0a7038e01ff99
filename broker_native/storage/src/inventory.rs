//! What the logs of a data directory were when it was closed cleanly: `clean-stop-inventory`, a file of pylog's own in JSON.
//!
//! After a clean stop nothing is scanned, so a file that was lost, emptied or exchanged since would not be noticed: records would be
//! missing, or aborted ones be served, without a warning. The next start compares names, lengths and the first batch's CRC of each
//! log that it opens with this list, and refuses or mends what differs.
//!
//! The list stands for one clean stop only, known by the time of its marker; a directory that was copied without its times, or used
//! by Apache Kafka since, is not compared. What was refused stays in the list, also after an unclean stop, until it is put right or removed.
//!
//! One thing is written down while logs are used, too, whenever their recovery points are: how many aborted transactions the index of
//! each segment has, and their sum. An index need not exist, so the loss of one after a kill would turn aborted records into
//! committed ones. An index that differs from the list is no proof of that (compaction removes entries): such a log has its indexes made
//! anew from its batches.
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::disk::{Disk, OpenMode};
use super::error::{Result, StorageError, TopicPartition};
use super::files::{SyncWhen, malformed, read_text, replace};
use super::names;

const VERSION: i32 = 1;
/// Where a batch holds its CRC, and its bytes.
const CRC_AT: u64 = 17;
const CRC_BYTES: usize = 4;

/// What one segment was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SegmentInventory {
    pub base_offset: i64,
    /// Bytes of the `.log` file.
    pub bytes: u64,
    /// Transactions in the `.txnindex`.
    pub aborted: u64,
    /// CRC-32C of them.
    #[serde(default)]
    pub aborted_sum: Option<u32>,
}

/// What one log was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogInventory {
    topic: String,
    partition: i32,
    topic_id: Uuid,
    /// First readable offset.
    pub log_start: i64,
    /// One past the last; None when it is not known.
    pub log_end: Option<i64>,
    /// The CRC field of the first batch: two partitions of one topic differ in it, whatever their lengths. None without a batch.
    first_crc: Option<u32>,
    pub segments: Vec<SegmentInventory>,
}

/// What is known of a log that is used: how many aborted transactions each segment has and their CRC-32C, by its base offset (those
/// without any are left out), and the first batch's CRC with the base offset of its segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AbortedCounts {
    topic: String,
    partition: i32,
    topic_id: Uuid,
    segments: BTreeMap<i64, (u64, u32)>,
    #[serde(default)]
    first: Option<(i64, u32)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    version: i32,
    stopped_at_ms: i64,
    logs: Vec<LogInventory>,
    refused: Vec<LogInventory>,
    #[serde(default)]
    aborted: Vec<AbortedCounts>,
}

/// What stays in the file also after an unclean stop.
#[derive(Default)]
struct StoredInventory {
    /// Logs that were not as they should be.
    refused: BTreeMap<TopicPartition, LogInventory>,
    aborted: BTreeMap<TopicPartition, AbortedCounts>,
}

/// See the module. May be used from any thread.
pub(super) struct Inventory {
    file: PathBuf,
    /// Of the last stop, when that was clean; logs that were opened since are not in it any more.
    stopped: Mutex<HashMap<TopicPartition, LogInventory>>,
    kept: Mutex<StoredInventory>,
}

impl AbortedCounts {
    /// Those of `segments`, and the first batch's.
    pub fn new(
        at: &TopicPartition,
        topic_id: Uuid,
        segments: impl Iterator<Item = SegmentInventory>,
        first: Option<(i64, u32)>,
    ) -> Self {
        let segments = segments.filter(|segment| segment.aborted > 0);
        let segments = segments
            .filter_map(|segment| Some((segment.base_offset, (segment.aborted, segment.aborted_sum?))));
        let segments = segments.collect();
        Self { topic: at.topic.to_string(), partition: at.partition, topic_id, segments, first }
    }

    fn at(&self) -> TopicPartition {
        TopicPartition::new(&self.topic, self.partition)
    }

    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.first.is_none()
    }
}

impl LogInventory {
    /// What `segments` of a log in `dir` are now, all of them on the device.
    pub fn now(
        disk: &dyn Disk,
        (at, topic_id): (&TopicPartition, Uuid),
        dir: &Path,
        offsets: std::ops::Range<i64>,
        mut segments: Vec<SegmentInventory>,
    ) -> Result<Self> {
        for segment in &mut segments {
            let path = names::segment_file(dir, segment.base_offset, names::LOG_SUFFIX);
            segment.bytes = disk.file_len(&path).map_err(|e| StorageError::io("read", &path, &e))?;
        }
        let first_crc = first_crc(disk, dir, &segments);
        let (topic, partition) = (at.topic.to_string(), at.partition);
        let (log_start, log_end) = (offsets.start, Some(offsets.end));
        Ok(Self { topic, partition, topic_id, log_start, log_end, first_crc, segments })
    }

    fn at(&self) -> TopicPartition {
        TopicPartition::new(&self.topic, self.partition)
    }

    /// A log of which nothing is known but that it was here.
    pub fn unknown(at: &TopicPartition, topic_id: Uuid) -> Self {
        let (topic, partition) = (at.topic.to_string(), at.partition);
        Self {
            topic,
            partition,
            topic_id,
            log_start: 0,
            log_end: None,
            first_crc: None,
            segments: Vec::new(),
        }
    }

    fn aborted(&self) -> AbortedCounts {
        let first = self.segments.iter().find(|segment| segment.bytes > 0).map(|segment| segment.base_offset);
        let first = first.zip(self.first_crc);
        AbortedCounts::new(&self.at(), self.topic_id, self.segments.iter().cloned(), first)
    }

    /// The first thing in `dir`, which has these `files`, that is not as it was, and where. None when all is.
    pub fn difference(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        files: Option<&[String]>,
    ) -> Option<(PathBuf, String)> {
        let is_empty = self.log_end == Some(0);
        let Some(files) = files else {
            return (!is_empty).then(|| (dir.to_path_buf(), "is gone".to_owned()));
        };
        if self.log_end.is_none() {
            let is_segment = |name: &String| {
                names::parse_segment_file(name).is_some_and(|(_, what)| what == names::LOG_SUFFIX)
            };
            return (!files.iter().any(is_segment)).then(|| (dir.to_path_buf(), "is empty".to_owned()));
        }
        for segment in &self.segments {
            let path = names::segment_file(dir, segment.base_offset, names::LOG_SUFFIX);
            let bytes = segment.bytes;
            match disk.file_len(&path) {
                Ok(found) if found == bytes => {}
                Err(cause)
                    if cause.kind() == ErrorKind::NotFound && bytes == 0 && self.segments.len() > 1 => {}
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    return Some((path, "is gone".to_owned()));
                }
                Err(cause) => return Some((path, format!("cannot be looked at ({cause})"))),
                Ok(found) => return Some((path, format!("has {found} bytes, not {bytes}"))),
            }
        }
        let known = |base| self.segments.iter().any(|segment| segment.base_offset == base);
        let foreign = files.iter().find(|name| {
            names::parse_segment_file(name)
                .is_some_and(|(base, what)| what == names::LOG_SUFFIX && !known(base))
        });
        if let Some(name) = foreign {
            return Some((dir.join(name), "was not there".to_owned()));
        }
        (first_crc(disk, dir, &self.segments) != self.first_crc)
            .then(|| (dir.to_path_buf(), "holds the records of another partition".to_owned()))
    }
}

/// The CRC field of the first batch; none where none can be read.
fn first_crc(disk: &dyn Disk, dir: &Path, segments: &[SegmentInventory]) -> Option<u32> {
    let first = segments.iter().find(|segment| segment.bytes > 0)?;
    crc_of_first_batch(disk, dir, first.base_offset)
}

/// The CRC field of the first batch of a segment; none where none can be read.
pub(super) fn crc_of_first_batch(disk: &dyn Disk, dir: &Path, base_offset: i64) -> Option<u32> {
    let path = names::segment_file(dir, base_offset, names::LOG_SUFFIX);
    let mut crc = [0; CRC_BYTES];
    disk.open(&path, OpenMode::Read).and_then(|file| file.read_exact_at(&mut crc, CRC_AT)).ok()?;
    Some(u32::from_be_bytes(crc))
}

impl Inventory {
    /// Reads the list before the marker of the clean stop is taken, and leaves only what was refused in it.
    ///
    /// # Errors
    /// [`StorageError::Malformed`], [`StorageError::Io`].
    pub fn take(disk: &dyn Disk, dir: &Path) -> Result<Self> {
        let file = dir.join(names::INVENTORY);
        let empty = || Self { file: file.clone(), stopped: Mutex::default(), kept: Mutex::default() };
        let Some(text) = read_text(disk, &file)? else { return Ok(empty()) };
        let document: Document =
            serde_json::from_str(&text).map_err(|error| malformed(&file, error.to_string()))?;
        if document.version != VERSION {
            return Err(malformed(&file, format!("it has version {}, not {VERSION}", document.version)));
        }
        let marked_ms = disk.modified_ms(&dir.join(names::CLEAN_SHUTDOWN));
        let is_of_last_stop = marked_ms.is_ok_and(|ms| ms == document.stopped_at_ms);
        let by_place = |logs: Vec<LogInventory>| logs.into_iter().map(|held| (held.at(), held));
        // After a clean stop the list of that stop says it.
        let counts: Vec<_> = match is_of_last_stop {
            true => document.logs.iter().map(LogInventory::aborted).collect(),
            false => document.aborted,
        };
        let stopped = if is_of_last_stop { by_place(document.logs).collect() } else { HashMap::new() };
        let refused = by_place(document.refused).collect();
        let counts = counts.into_iter().filter(|counts| !counts.is_empty());
        let aborted = counts.map(|counts| (counts.at(), counts)).collect();
        let kept = Mutex::new(StoredInventory { refused, aborted });
        let inventory = Self { file: file.clone(), stopped: Mutex::new(stopped), kept };
        inventory.store(disk, &inventory.kept.lock(), Vec::new(), 0)?;
        Ok(inventory)
    }

    /// What the log was; none when nothing is known of it, or of one with that name only.
    pub fn expected(&self, at: &TopicPartition, topic_id: Uuid) -> Option<LogInventory> {
        let refused = self.kept.lock().refused.get(at).cloned();
        let held = refused.or_else(|| self.stopped.lock().get(at).cloned())?;
        (topic_id.is_nil() || held.topic_id == topic_id).then_some(held)
    }

    /// The log is not as it was: every start says so until it is, or until the list does not ask for it any more.
    pub fn refuse(&self, disk: &dyn Disk, held: LogInventory) -> Result<()> {
        let mut kept = self.kept.lock();
        if kept.refused.insert(held.at(), held).is_some() {
            return Ok(());
        }
        self.store(disk, &kept, Vec::new(), 0)
    }

    /// These logs were here, and everything that named them is gone. Each is refused until it is put back, or given up.
    pub fn expect(&self, disk: &dyn Disk, logs: impl Iterator<Item = (TopicPartition, Uuid)>) -> Result<()> {
        let mut kept = self.kept.lock();
        for (at, topic_id) in logs {
            let unknown = LogInventory::unknown(&at, topic_id);
            kept.refused.entry(at).or_insert(unknown);
        }
        self.store(disk, &kept, Vec::new(), 0)
    }

    /// Nothing is expected of these logs any more: they are as they were, or given up.
    pub fn forget<'a>(
        &self,
        disk: &dyn Disk,
        logs: impl IntoIterator<Item = &'a TopicPartition>,
    ) -> Result<()> {
        let mut changed = false;
        let mut kept = self.kept.lock();
        for at in logs {
            self.stopped.lock().remove(at);
            changed |= kept.refused.remove(at).is_some();
        }
        if changed { self.store(disk, &kept, Vec::new(), 0) } else { Ok(()) }
    }

    /// How many aborted transactions the index of a segment had at least, of a log with that id, and their CRC-32C.
    pub fn aborted(&self, at: &TopicPartition, topic_id: Uuid, base_offset: i64) -> (u64, u32) {
        let kept = self.kept.lock();
        let counts = kept.aborted.get(at).filter(|counts| topic_id.is_nil() || counts.topic_id == topic_id);
        counts.and_then(|counts| counts.segments.get(&base_offset)).copied().unwrap_or((0, 0))
    }

    /// Base offset of the first segment with a batch and that batch's CRC, of a log with that id, when they were written down last.
    pub fn first(&self, at: &TopicPartition, topic_id: Uuid) -> Option<(i64, u32)> {
        let kept = self.kept.lock();
        kept.aborted.get(at).filter(|known| topic_id.is_nil() || known.topic_id == topic_id)?.first
    }

    /// Writes down how many aborted transactions logs have, all of them on the device.
    pub fn note_aborted(&self, disk: &dyn Disk, counts: impl Iterator<Item = AbortedCounts>) -> Result<()> {
        let mut kept = self.kept.lock();
        let mut changed = false;
        for counts in counts {
            let at = counts.at();
            if counts.is_empty() {
                changed |= kept.aborted.remove(&at).is_some();
            } else if kept.aborted.get(&at) != Some(&counts) {
                kept.aborted.insert(at, counts);
                changed = true;
            }
        }
        if changed { self.store(disk, &kept, Vec::new(), 0) } else { Ok(()) }
    }

    /// Writes what `logs` are, behind the marker of a clean stop.
    pub fn leave(&self, disk: &dyn Disk, dir: &Path, logs: Vec<LogInventory>) -> Result<()> {
        let marker = dir.join(names::CLEAN_SHUTDOWN);
        let marked_ms = disk.modified_ms(&marker).map_err(|e| StorageError::io("read", &marker, &e))?;
        let mut kept = self.kept.lock();
        kept.aborted.clear();
        self.store(disk, &kept, logs, marked_ms)
    }

    /// Where the list is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Writes the file. The caller holds the lock of `kept`: logs are opened by many threads, and two that wrote at once
    /// would take the file beside it from each other.
    fn store(
        &self,
        disk: &dyn Disk,
        kept: &StoredInventory,
        logs: Vec<LogInventory>,
        stopped_at_ms: i64,
    ) -> Result<()> {
        let refused: Vec<LogInventory> = kept.refused.values().cloned().collect();
        let aborted: Vec<AbortedCounts> = kept.aborted.values().cloned().collect();
        if logs.is_empty() && refused.is_empty() && aborted.is_empty() {
            return match disk.remove_file(&self.file) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed
                    .and_then(|()| self.file.parent().map_or(Ok(()), |dir| disk.sync_dir(dir)))
                    .map_err(|e| StorageError::io("remove", &self.file, &e)),
            };
        }
        let document = Document { version: VERSION, stopped_at_ms, logs, refused, aborted };
        let text =
            serde_json::to_string(&document).map_err(|error| malformed(&self.file, error.to_string()))?;
        let at = TopicPartition::new("data directory", 0);
        replace(disk, &self.file, text.as_bytes(), SyncWhen::Now, &at)
    }
}
