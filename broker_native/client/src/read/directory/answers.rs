//! What is asked of a directory when a read is planned: topics, offsets. What it has is found out once for each partition, so
//! that all answers are of one moment.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::failure::of_directory;
use crate::config::Isolation;
use crate::error::{ClientError, Result};
use crate::metadata::listed_topic::ListedTopic;
use crate::metadata::topic_id;
use crate::metadata::topic_partition::TopicPartition;
use crate::read::feed::Aborted;
use pylog_record::{Codec, batches};
use pylog_storage::TopicPartition as Named;
use pylog_storage::directory::cursor::Cursor;
use pylog_storage::directory::damage::Damage;
use pylog_storage::directory::found::LogDirectory;
use pylog_storage::directory::partition::{Bounds, PartitionFiles};
use pylog_wire::ErrorCode;

/// Most lines about what was left out that wait for whoever asks; the rest are counted.
const MAX_NOTICES: usize = 100;
/// What stands for the end of a partition in a question for an offset, and for its begin.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// A directory, and what a reader of it may see.
#[derive(Debug)]
pub struct Directory {
    found: LogDirectory,
    isolation: Isolation,
    opened: Mutex<BTreeMap<Named, Arc<PartitionFiles>>>,
    notices: Mutex<Notices>,
}

#[derive(Debug, Default)]
struct Notices {
    lines: Vec<String>,
    more: u64,
}

impl Notices {
    /// Takes a line, unless it waits already: damage at the end of a log is seen when it is planned and when it is read.
    fn push(&mut self, line: String) {
        if self.lines.contains(&line) {
            return;
        }
        if self.lines.len() < MAX_NOTICES { self.lines.push(line) } else { self.more += 1 }
    }
}

impl Directory {
    /// Opens it. `skip_damaged`: bytes that are no batches are left out, and told.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no data directory, `KAFKA_STORAGE_ERROR`.
    pub fn open(path: &Path, isolation: Isolation, skip_damaged: bool) -> Result<Self> {
        let found = LogDirectory::open(path, skip_damaged).map_err(|error| of_directory(&error))?;
        Ok(Self { found, isolation, opened: Mutex::default(), notices: Mutex::default() })
    }

    /// The topics with these names, or all; a name that is not there with an error. In JSON, as
    /// [`crate::admin::topics::describe_topics`].
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub fn describe_topics(&self, names: Option<&[String]>) -> Result<Vec<Value>> {
        Ok(self.list_partitions(names)?.iter().map(topic_json).collect())
    }

    /// As [`Self::describe_topics`]: only which partitions there are.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub fn list_partitions(&self, names: Option<&[String]>) -> Result<Vec<ListedTopic>> {
        let mut topics: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
        for at in self.found.partitions() {
            topics.entry(&at.topic).or_default().push(at);
        }
        match names {
            None => topics.iter().map(|(name, partitions)| self.topic(name, partitions)).collect(),
            Some(names) => names
                .iter()
                .map(|name| self.topic(name, topics.get(name.as_str()).map_or(&[], Vec::as_slice)))
                .collect(),
        }
    }

    fn topic(&self, name: &str, partitions: &[&Named]) -> Result<ListedTopic> {
        let id = match partitions.first() {
            Some(at) => self.found.topic_id(at).map_err(|error| of_directory(&error))?,
            None => uuid::Uuid::nil(),
        };
        let missing = ErrorCode::UnknownTopicOrPartition.name();
        Ok(ListedTopic {
            name: name.to_owned(),
            topic_id: topic_id::text(id),
            is_internal: LogDirectory::is_internal(name),
            error: partitions.is_empty().then_some(missing),
            partitions: partitions.iter().map(|at| at.partition).collect(),
        })
    }

    /// Offset and timestamp of the first record of a partition that is not older than `timestamp_ms`, (-1, -1) without one; its first
    /// offset for -2, and for -1 the one behind its last record that a reader of this level sees.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `KAFKA_STORAGE_ERROR`.
    pub fn offset(&self, at: &Named, timestamp_ms: i64, isolation: Isolation) -> Result<(i64, i64)> {
        let (files, bounds) = self.partition(at)?;
        let end = match isolation {
            Isolation::ReadCommitted => bounds.last_stable_offset,
            Isolation::ReadUncommitted => bounds.log_end_offset,
        };
        match timestamp_ms {
            LATEST => Ok((end, -1)),
            EARLIEST => Ok((bounds.log_start_offset, -1)),
            _ if timestamp_ms < 0 => {
                Err(ClientError::invalid(format!("{timestamp_ms} is no time in ms, nor -1 or -2")))
            }
            _ => {
                let first = files.first_at(timestamp_ms).map_err(|error| of_directory(&error))?;
                Ok(first.filter(|(offset, _)| *offset < end).unwrap_or((-1, -1)))
            }
        }
    }

    /// Of each segment of a partition the first offset and the bytes of its batches.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `KAFKA_STORAGE_ERROR`.
    pub fn segments(&self, at: &Named) -> Result<Vec<(i64, u64)>> {
        self.files(at)?.sizes().map_err(|error| of_directory(&error))
    }

    /// What a partition is: its bounds, segments and bytes in JSON.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `KAFKA_STORAGE_ERROR`.
    pub fn inspect(&self, at: &Named) -> Result<Value> {
        let (files, bounds) = self.partition(at)?;
        let sizes = files.sizes().map_err(|error| of_directory(&error))?;
        Ok(json!({
            "log_start_offset": bounds.log_start_offset,
            "last_stable_offset": bounds.last_stable_offset,
            "log_end_offset": bounds.log_end_offset,
            "segments": sizes.len(),
            "bytes": sizes.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        }))
    }

    /// Reads a partition from its first to its last offset, and says what there is, in JSON: record batches and records (of control
    /// batches, too), and the codecs of the batches.
    ///
    /// # Errors
    /// Those of a cursor.
    pub fn verify(&self, at: &Named) -> Result<Value> {
        let (files, bounds) = self.partition(at)?;
        let mut cursor = Cursor::new(files, &(bounds.log_start_offset..bounds.log_end_offset));
        let (mut count, mut records, mut codecs) = (0_u64, 0_i64, BTreeSet::new());
        let mut piece = Vec::new();
        while self.next_piece(&mut cursor, &mut piece)? {
            for (header, _) in batches(&piece).map_while(std::result::Result::ok) {
                count += 1;
                records += i64::from(header.records_count);
                codecs.extend(Codec::from_attributes(header.attributes).map(Codec::name));
            }
        }
        Ok(json!({"batches": count, "records": records, "codecs": codecs}))
    }

    /// What waits to be told: what was left out, and why a log ends where it does. Each once.
    pub fn take_notices(&self) -> Vec<String> {
        let Notices { mut lines, more } = std::mem::take(&mut *self.notices.lock());
        if more > 0 {
            lines.push(format!("and {more} more of the kind"));
        }
        lines
    }

    /// The files of a range with the transactions that are to be hidden in it.
    pub(super) fn range(
        &self,
        partition: &TopicPartition,
        offsets: &Range<i64>,
    ) -> Result<(Arc<PartitionFiles>, Vec<Aborted>)> {
        let at = Named::new(&partition.topic, partition.partition);
        let files = self.files(&at)?;
        let id = self.found.topic_id(&at).map_err(|error| of_directory(&error))?;
        if !partition.topic_id.is_nil() && !id.is_nil() && id != partition.topic_id {
            let message = format!(
                "the topic of {at} in {} has the id {}, and the read was planned for {}",
                self.found.path().display(),
                topic_id::text(id),
                topic_id::text(partition.topic_id)
            );
            return Err(ClientError::fatal(ErrorCode::InconsistentTopicId.name(), message));
        }
        let aborted = match self.isolation {
            Isolation::ReadCommitted => files.aborted(offsets).map_err(|error| of_directory(&error))?,
            Isolation::ReadUncommitted => Vec::new(),
        };
        Ok((files, aborted.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)).collect()))
    }

    /// The next whole batches of a cursor; what it left out is noted.
    pub(super) fn next_piece(&self, cursor: &mut Cursor, piece: &mut Vec<u8>) -> Result<bool> {
        let next = cursor.next_piece(piece);
        self.note(&cursor.take_skipped());
        next.map_err(|error| of_directory(&error))
    }

    fn partition(&self, at: &Named) -> Result<(Arc<PartitionFiles>, Bounds)> {
        let is_new = !self.opened.lock().contains_key(at);
        let files = self.files(at)?;
        let bounds = files.bounds().map_err(|error| of_directory(&error))?;
        if is_new {
            self.note(&bounds.damage);
            self.note_open(at, &bounds);
        }
        Ok((files, bounds))
    }

    fn files(&self, at: &Named) -> Result<Arc<PartitionFiles>> {
        let mut opened = self.opened.lock();
        if let Some(files) = opened.get(at) {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(self.found.partition(at).map_err(|error| of_directory(&error))?);
        opened.insert(at.clone(), Arc::clone(&files));
        Ok(files)
    }

    /// Says why a reader of committed records does not get to the end.
    fn note_open(&self, at: &Named, bounds: &Bounds) {
        let Bounds { last_stable_offset: stable, log_end_offset: end, .. } = bounds;
        if self.isolation == Isolation::ReadCommitted && stable < end {
            self.notices.lock().push(format!(
                "{at} is read up to offset {stable} of {end}: there begins a transaction that had not ended; isolationLevel=read_uncommitted reads on"
            ));
        }
    }

    fn note(&self, damage: &[Damage]) {
        let mut notices = self.notices.lock();
        damage.iter().for_each(|damage| notices.push(damage.to_string()));
    }
}

fn topic_json(topic: &ListedTopic) -> Value {
    let partition = |number: &i32| json!({"partition": number, "leader": -1, "leader_epoch": -1, "replicas": [], "isr": [], "error": null});
    json!({
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "error": topic.error,
        "partitions": topic.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}
