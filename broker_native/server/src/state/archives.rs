//! What the archive (`archive.url`) has of the partitions that this broker leads, and the questions of clients to it. Python reads and
//! writes the archive (`pylog_spark/archive/tiered`): it says here what is in it, takes the questions and answers them.
//!
//! What is known is of one leadership: who has become the leader knows nothing until Python has read the manifest. Until then a
//! question of which the answer depends on it has a retriable error, and Python is woken ([`Archives::miss`]). Any thread.
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use uuid::Uuid;

use super::questions::{NotAsked, Questions};
use super::topics::{Partition, Topic};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;

/// Errors of which a client learns more than that it may ask again.
const REFUSALS: [ErrorCode; 3] =
    [ErrorCode::OffsetOutOfRange, ErrorCode::NotLeaderOrFollower, ErrorCode::PolicyViolation];

/// What the archive has of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The epoch of the leader that has read this.
    pub leader_epoch: i32,
    /// Its first offset.
    pub start: i64,
    /// The offset behind its last one; equal to `start` when there is nothing.
    pub end: i64,
    /// Leader epochs and the first offset of each, of what the archive has in common with the log.
    pub epochs: Vec<(i32, i64)>,
}

impl Archived {
    /// The largest epoch up to `epoch`, and where the next one begins; `None` where the archive does not know the next one. As in Kafka
    /// an epoch before all known ones ends where the first of them begins.
    pub fn epoch_end(&self, epoch: i32) -> Option<(i32, i64)> {
        let (first, start) = *self.epochs.first()?;
        if (0..first).contains(&epoch) {
            return Some((epoch, start.max(self.start)));
        }
        let behind = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let (_, end) = self.epochs.get(behind)?;
        let (found, _) = self.epochs.get(behind.checked_sub(1)?)?;
        Some((*found, *end))
    }

    /// The largest epoch up to `epoch` of which the archive has records.
    pub fn epoch_up_to(&self, epoch: i32) -> Option<i32> {
        self.epochs.iter().rev().map(|(known, _)| *known).find(|known| *known <= epoch)
    }
}

/// What a client wants of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Whole batches from the one with this offset on, about so many bytes of them.
    Batches {
        /// From where on.
        offset: i64,
        /// Those of the first batch may be more.
        max_bytes: usize,
    },
    /// The first record with this timestamp (ms) or a later one.
    Time(i64),
    /// That nothing before this offset is read any more.
    Delete(i64),
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the topic.
    pub topic: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Number.
    pub partition: i32,
}

/// An aborted transaction: producer, first offset, offset of the marker.
pub type AbortedBatches = (i64, i64, i64);

/// What Python answers.
#[derive(Debug)]
pub enum Answered {
    /// Batches, the one that is wanted among them, and the transactions in them that were aborted.
    Batches(Bytes, Vec<AbortedBatches>),
    /// Offset and timestamp of a record; none such, or nothing was asked for.
    Offset(Option<(i64, i64)>),
    /// Why not.
    Refused(ErrorCode),
}

#[derive(Default)]
struct Missing {
    /// Something is to be found out that is not known.
    is_any: bool,
    closed: bool,
}

/// See the module.
pub struct Archives {
    known: RwLock<HashMap<(Uuid, i32), Arc<Archived>>>,
    questions: Questions<(Place, Wanted), Answered>,
    missing: Mutex<Missing>,
    missed: Condvar,
}

impl Archives {
    /// At most `most` questions wait at once, half of them of one address.
    pub fn new(most: u32) -> Self {
        Self {
            known: RwLock::default(),
            questions: Questions::new(most),
            missing: Mutex::default(),
            missed: Condvar::new(),
        }
    }

    /// What the archive has of a partition that this broker leads in this epoch; `None` while that is not known.
    pub fn of(&self, topic_id: Uuid, partition: i32, leader_epoch: i32) -> Option<Arc<Archived>> {
        let known = self.known.read().get(&(topic_id, partition)).cloned();
        known.filter(|archived| archived.leader_epoch == leader_epoch)
    }

    /// This is what the archive has now.
    pub fn set(&self, topic_id: Uuid, partition: i32, archived: Archived) {
        self.known.write().insert((topic_id, partition), Arc::new(archived));
    }

    /// Forgets all but these.
    pub fn keep(&self, led: &HashSet<(Uuid, i32)>) {
        self.known.write().retain(|at, _| led.contains(at));
    }

    /// Where the whole log begins for clients: in the archive, or here.
    ///
    /// # Errors
    /// It is not known yet.
    pub fn start(&self, topic: &Topic, partition: &Partition, log: &PartitionLog) -> Result<i64, NotKnown> {
        let here = log.offsets().log_start_offset;
        // Nothing is before the first offset, whatever the archive has: so a new topic has a beginning at once.
        if !log.config().remote_storage_enable || here == 0 {
            return Ok(here);
        }
        let spec = &partition.spec;
        match self.of(topic.id, spec.partition, spec.leader_epoch) {
            Some(archived) if archived.start < archived.end => Ok(archived.start.min(here)),
            Some(_) => Ok(here),
            None => {
                self.miss();
                Err(NotKnown)
            }
        }
    }

    /// Something is to be found out: wakes who does that.
    pub fn miss(&self) {
        self.missing.lock().is_any = true;
        self.missed.notify_all();
    }

    /// Waits until something is missed; false when nothing was for so long.
    pub fn wait_for_miss(&self, timeout: Duration) -> bool {
        let mut missing = self.missing.lock();
        if !missing.is_any && !missing.closed {
            self.missed.wait_for(&mut missing, timeout);
        }
        std::mem::take(&mut missing.is_any)
    }

    /// Asks for a client at `address`, and waits for at most `timeout`; `None` when it takes longer.
    ///
    /// # Errors
    /// KAFKA_STORAGE_ERROR: the archive cannot be read now, or too many wait for it. It may be asked again. Others that
    /// [`Answered::Refused`] names.
    pub async fn ask(
        &self,
        address: IpAddr,
        at: Place,
        wanted: Wanted,
        timeout: Duration,
    ) -> Result<Option<Answered>, ErrorCode> {
        match self.questions.ask(address, (at, wanted), timeout).await {
            Ok(Some(Answered::Refused(error))) => Err(error),
            Ok(answered) => Ok(answered),
            Err(NotAsked) => Err(ErrorCode::KafkaStorageError),
        }
    }

    /// The next question, with the number to answer it by; `None` when there is none for so long.
    pub fn next(&self, timeout: Duration) -> Option<(u64, (Place, Wanted))> {
        self.questions.next(timeout)
    }

    /// Answers a question that was taken.
    pub fn answer(&self, id: u64, answered: Answered) {
        self.questions.answer(id, answered);
    }

    /// Refuses a question that was taken; `kind` is the name of an error that its client is to have, else it may ask again.
    pub fn refuse(&self, id: u64, kind: &str) {
        let known = REFUSALS.into_iter().find(|code| code.name() == kind);
        self.answer(id, Answered::Refused(known.unwrap_or(ErrorCode::KafkaStorageError)));
    }

    /// Refuses what waits and all that comes.
    pub fn close(&self) {
        self.questions.close();
        self.missing.lock().closed = true;
        self.missed.notify_all();
    }
}

/// What the archive has is not known yet: the request is to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKnown;

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(60);
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn at() -> Place {
        Place { topic: "t".into(), topic_id: Uuid::from_u128(1), partition: 0 }
    }

    #[test]
    fn what_is_known_is_of_one_leadership() {
        let archives = Archives::new(2);
        let id = at().topic_id;
        assert_eq!(archives.of(id, 0, 3), None);
        let archived = Archived { leader_epoch: 3, start: 0, end: 10, epochs: vec![] };
        archives.set(id, 0, archived.clone());
        assert_eq!(archives.of(id, 0, 3).as_deref(), Some(&archived));
        assert_eq!(archives.of(id, 0, 4), None);
        archives.keep(&HashSet::new());
        assert_eq!(archives.of(id, 0, 3), None);
    }

    #[test]
    fn an_epoch_ends_where_the_archive_knows_the_next_one() {
        let epochs = vec![(1, 0), (3, 10), (5, 20)];
        let archived = Archived { leader_epoch: 5, start: 0, end: 30, epochs };
        assert_eq!(archived.epoch_end(-1), None);
        assert_eq!(archived.epoch_end(0), Some((0, 0)));
        assert_eq!(archived.epoch_end(1), Some((1, 10)));
        assert_eq!(archived.epoch_end(4), Some((3, 20)));
        assert_eq!(archived.epoch_end(5), None, "the log itself knows where its last epochs end");
        assert_eq!([0, 1, 4, 9].map(|epoch| archived.epoch_up_to(epoch)), [None, Some(1), Some(3), Some(5)]);
        let archived = Archived { start: 7, ..archived };
        assert_eq!(archived.epoch_end(0), Some((0, 7)), "records before the start are deleted");
    }

    #[tokio::test]
    async fn a_question_is_answered_by_who_takes_it() {
        let archives = Arc::new(Archives::new(4));
        let python = Arc::clone(&archives);
        let answering = std::thread::spawn(move || {
            let (id, asked) = python.next(LONG).unwrap();
            assert_eq!(asked, (at(), Wanted::Time(7)));
            python.answer(id, Answered::Offset(Some((5, 8))));
            let (id, _) = python.next(LONG).unwrap();
            python.refuse(id, "POLICY_VIOLATION");
        });
        let answered = archives.ask(HERE, at(), Wanted::Time(7), LONG).await;
        assert!(matches!(answered, Ok(Some(Answered::Offset(Some((5, 8)))))), "{answered:?}");
        let refused = archives.ask(HERE, at(), Wanted::Delete(7), LONG).await;
        assert_eq!(refused.unwrap_err(), ErrorCode::PolicyViolation);
        answering.join().unwrap();
        archives.close();
        let refused = archives.ask(HERE, at(), Wanted::Time(7), LONG).await;
        assert_eq!(refused.unwrap_err(), ErrorCode::KafkaStorageError);
    }

    #[test]
    fn who_waits_for_what_is_missing_is_woken() {
        let archives = Arc::new(Archives::new(2));
        assert!(!archives.wait_for_miss(SOON));
        archives.miss();
        assert!(archives.wait_for_miss(LONG));
        assert!(!archives.wait_for_miss(SOON));
    }
}
