//! One fetch session: the partitions that a consumer reads, and what the last answer said about each. Pure.
//!
//! An incremental request names only partitions that are new, have moved on, or are to be forgotten; an incremental
//! answer only those with records, an error, or offsets other than the client knows (KIP-227). Partitions are served in
//! the session's order, and one that gave records goes to its end, so that a full answer never starves the others.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use pylog_storage::MAX_TOPIC_NAME_LEN;
use pylog_wire::messages::fetch::{FetchPartition, ForgottenTopic, PartitionData};

/// Offset that no log has: the client has not been sent this partition's offsets.
const NEVER_SENT: i64 = -1;

/// A topic as fetches name it: until version 12 by name, then by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicKey {
    /// Until version 12.
    Name(Arc<str>),
    /// From version 13 on.
    Id(Uuid),
}

impl TopicKey {
    /// Whether a topic may be called so, as far as the length of its name goes.
    pub fn may_exist(&self) -> bool {
        match self {
            Self::Name(name) => name.len() <= MAX_TOPIC_NAME_LEN,
            Self::Id(_) => true,
        }
    }
}

/// Where a consumer stands in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// The leader's epoch as the client knows it, -1 when it does not.
    pub leader_epoch: i32,
    /// First offset wanted.
    pub offset: i64,
    /// Epoch of the last record fetched, -1 when not given.
    pub last_fetched_epoch: i32,
    /// Where the reader's own log begins, -1 for a consumer.
    pub log_start_offset: i64,
    /// Most bytes wanted.
    pub max_bytes: i32,
}

impl From<&FetchPartition> for Position {
    fn from(partition: &FetchPartition) -> Self {
        Self {
            partition: partition.partition,
            leader_epoch: partition.current_leader_epoch,
            offset: partition.fetch_offset,
            last_fetched_epoch: partition.last_fetched_epoch,
            log_start_offset: partition.log_start_offset,
            max_bytes: partition.partition_max_bytes,
        }
    }
}

/// A partition to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedPartition {
    /// Its topic.
    pub topic: TopicKey,
    /// Where to read.
    pub position: Position,
}

/// What an answer says of a partition, as far as a session remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredPartition {
    /// One past the last record that may be read.
    pub high_watermark: i64,
    /// First record that may be read.
    pub log_start_offset: i64,
    /// Bytes of its records.
    pub bytes: usize,
    /// Whether it must be sent whatever the offsets are: an error, a log that departs from the client's, a better replica.
    pub is_news: bool,
}

impl AnsweredPartition {
    /// Of an answer whose records are `bytes` long.
    pub fn of(data: &PartitionData, bytes: usize) -> Self {
        Self {
            high_watermark: data.high_watermark,
            log_start_offset: data.log_start_offset,
            bytes,
            is_news: data.error_code != 0
                || data.preferred_read_replica >= 0
                || data.diverging_epoch != Default::default(),
        }
    }
}

#[derive(Debug)]
struct Cached {
    asked: AskedPartition,
    high_watermark: i64,
    log_start_offset: i64,
}

impl Cached {
    fn new(asked: AskedPartition) -> Self {
        Self { asked, high_watermark: NEVER_SENT, log_start_offset: NEVER_SENT }
    }

    /// Notes what the client is sent; returns whether the partition has to be in the answer.
    fn note_answer(&mut self, answered: &AnsweredPartition) -> bool {
        let moved = self.high_watermark != answered.high_watermark
            || self.log_start_offset != answered.log_start_offset;
        // After an error goes away the partition is sent once more.
        self.high_watermark = if answered.is_news { NEVER_SENT } else { answered.high_watermark };
        self.log_start_offset = answered.log_start_offset;
        moved || answered.is_news || answered.bytes > 0
    }
}

/// The partitions of one session, in the order in which they are served.
#[derive(Debug, Default)]
pub struct Partitions {
    by_place: BTreeMap<u64, Cached>,
    places: HashMap<(TopicKey, i32), u64>,
    next_place: u64,
}

impl Partitions {
    /// Number of partitions.
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// Adds partitions behind the others; of those that are there only the position changes.
    pub fn update(&mut self, asked: Vec<AskedPartition>) {
        for partition in asked {
            let key = (partition.topic.clone(), partition.position.partition);
            let known = self.places.get(&key).and_then(|place| self.by_place.get_mut(place));
            match known {
                Some(known) => known.asked.position = partition.position,
                None => {
                    self.places.insert(key, self.next_place);
                    self.by_place.insert(self.next_place, Cached::new(partition));
                    self.next_place += 1;
                }
            }
        }
    }

    /// Removes partitions; those that are not there do not matter.
    pub fn forget(&mut self, topics: &[ForgottenTopic], by_id: bool) {
        for topic in topics {
            let key = topic_key(&topic.topic, topic.topic_id, by_id);
            for partition in &topic.partitions {
                if let Some(place) = self.places.remove(&(key.clone(), *partition)) {
                    self.by_place.remove(&place);
                }
            }
        }
    }

    /// What to read, in order.
    pub fn asked(&self) -> Vec<AskedPartition> {
        self.by_place.values().map(|cached| cached.asked.clone()).collect()
    }

    /// Remembers an answer about all partitions, in the order of [`Partitions::asked`]; for each, whether it is sent.
    pub fn note_answer(&mut self, answered: &[AnsweredPartition]) -> Vec<bool> {
        let mut sent = Vec::with_capacity(answered.len());
        let mut served = Vec::new();
        for ((place, cached), answered) in self.by_place.iter_mut().zip(answered) {
            sent.push(cached.note_answer(answered));
            if answered.bytes > 0 {
                served.push(*place);
            }
        }
        for place in served {
            let Some(cached) = self.by_place.remove(&place) else { continue };
            let key = (cached.asked.topic.clone(), cached.asked.position.partition);
            self.places.insert(key, self.next_place);
            self.by_place.insert(self.next_place, cached);
            self.next_place += 1;
        }
        sent
    }
}

/// The key of a topic in a request.
pub fn topic_key(name: &str, id: Uuid, by_id: bool) -> TopicKey {
    if by_id { TopicKey::Id(id) } else { TopicKey::Name(name.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn asked(name: &str, partition: i32, offset: i64) -> AskedPartition {
        let position = Position {
            partition,
            leader_epoch: -1,
            offset,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            max_bytes: 100,
        };
        AskedPartition { topic: TopicKey::Name(name.into()), position }
    }

    fn answered(high_watermark: i64, bytes: usize) -> AnsweredPartition {
        AnsweredPartition { high_watermark, log_start_offset: 0, bytes, is_news: false }
    }

    fn session(count: i32) -> Partitions {
        let mut partitions = Partitions::default();
        partitions.update((0..count).map(|partition| asked("t", partition, 0)).collect());
        partitions
    }

    fn order(partitions: &Partitions) -> Vec<i32> {
        partitions.asked().iter().map(|partition| partition.position.partition).collect()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let mut partitions = session(3);
        assert_eq!(
            partitions.note_answer(&[answered(5, 0), answered(0, 0), answered(7, 0)]),
            [true, true, true],
            "all are new"
        );
        assert_eq!(
            partitions.note_answer(&[answered(5, 0), answered(0, 0), answered(7, 0)]),
            [false, false, false]
        );
        assert_eq!(
            partitions.note_answer(&[answered(5, 0), answered(1, 0), answered(7, 0)]),
            [false, true, false]
        );
        let moved = AnsweredPartition { log_start_offset: 2, ..answered(5, 0) };
        assert_eq!(partitions.note_answer(&[moved, answered(1, 0), answered(7, 0)]), [true, false, false]);
    }

    #[test]
    fn records_are_always_sent() {
        let mut partitions = session(1);
        for _ in 0..3 {
            assert_eq!(partitions.note_answer(&[answered(5, 10)]), [true]);
        }
    }

    #[test]
    fn an_error_is_sent_every_time_and_the_partition_once_more_when_it_is_gone() {
        let mut partitions = session(1);
        partitions.note_answer(&[answered(5, 0)]);
        let error = AnsweredPartition { high_watermark: -1, log_start_offset: -1, bytes: 0, is_news: true };
        assert_eq!(partitions.note_answer(&[error]), [true]);
        assert_eq!(partitions.note_answer(&[error]), [true]);
        assert_eq!(partitions.note_answer(&[answered(5, 0)]), [true]);
        assert_eq!(partitions.note_answer(&[answered(5, 0)]), [false]);
    }

    #[test]
    fn a_partition_that_gave_records_goes_behind_the_others() {
        let mut partitions = session(4);
        partitions.note_answer(&[answered(5, 10), answered(5, 0), answered(5, 10), answered(5, 0)]);
        assert_eq!(order(&partitions), [1, 3, 0, 2]);
        partitions.note_answer(&[answered(5, 10), answered(5, 0), answered(5, 0), answered(5, 0)]);
        assert_eq!(order(&partitions), [3, 0, 2, 1]);
    }

    #[test]
    fn an_update_moves_known_partitions_and_adds_new_ones_behind() {
        let mut partitions = session(2);
        partitions.update(vec![asked("t", 0, 9), asked("u", 0, 3)]);
        let positions: Vec<_> = partitions
            .asked()
            .iter()
            .map(|partition| (partition.position.partition, partition.position.offset))
            .collect();
        assert_eq!(positions, [(0, 9), (1, 0), (0, 3)]);
        assert_eq!(partitions.len(), 3);
    }

    #[test]
    fn what_is_forgotten_is_not_read_any_more() {
        let mut partitions = session(3);
        let forgotten = ForgottenTopic { topic: "t".into(), partitions: vec![0, 2, 7], ..Default::default() };
        partitions.forget(&[forgotten], false);
        assert_eq!(order(&partitions), [1]);
        let other = ForgottenTopic { topic: "u".into(), partitions: vec![1], ..Default::default() };
        partitions.forget(&[other], false);
        assert!(!partitions.is_empty());
    }

    #[test]
    fn a_partition_named_twice_is_read_once_from_the_later_offset() {
        let mut partitions = Partitions::default();
        partitions.update(vec![asked("t", 0, 1), asked("t", 0, 2)]);
        assert_eq!(partitions.asked(), [asked("t", 0, 2)]);
    }
}
