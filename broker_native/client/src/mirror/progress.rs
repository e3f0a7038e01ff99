//! How far each partition is. Shared by the lanes, and by whoever shows it.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::pace::Pace;
use crate::error::ClientError;
use crate::metadata::topic_partition::TopicPartition;
use crate::net::stop::Stop;

/// How long a partition is left alone after an error that may pass.
const SOON: Duration = Duration::from_millis(200);
/// The same after one that a user has to mend.
const LATER: Duration = Duration::from_secs(5);

/// An offset that is not known.
pub const UNKNOWN: i64 = -1;

/// One partition.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The broker of the source that leads it.
    pub leader: i32,
    /// Where the target's log ends; -1 when it was not asked yet.
    pub end: i64,
    /// Where to fetch next: behind `end` where the source has nothing between.
    pub fetch_from: i64,
    /// The source's log start; -1 before the first answer.
    pub source_start: i64,
    /// The source's high watermark; -1 before the first answer.
    pub source_end: i64,
    /// Bytes handed over.
    pub bytes: u64,
    /// Why it does not go on.
    pub error: Option<ClientError>,
    paused_until: Option<Instant>,
}

impl Progress {
    fn new(leader: i32) -> Self {
        Self {
            leader,
            end: UNKNOWN,
            fetch_from: UNKNOWN,
            source_start: UNKNOWN,
            source_end: UNKNOWN,
            bytes: 0,
            error: None,
            paused_until: None,
        }
    }

    /// The target's log ends here.
    pub fn ends_at(&mut self, end: i64) {
        (self.end, self.fetch_from) = (end, end);
    }

    /// Leaves it alone for a while, and begins again where the target ends.
    pub fn fail(&mut self, error: ClientError) {
        let pause = if error.retriable { SOON } else { LATER };
        self.paused_until = Some(Instant::now() + pause);
        self.fetch_from = self.end;
        self.error = Some(error);
    }

    /// It goes on.
    pub fn goes_on(&mut self) {
        (self.error, self.paused_until) = (None, None);
    }
}

/// What lanes share.
#[derive(Debug)]
pub struct Shared {
    /// The source's cluster id, as the target's topics name it.
    pub source_id: String,
    /// Ends all waits.
    pub stop: Stop,
    /// The limit of bytes.
    pub pace: Pace,
    partitions: Mutex<BTreeMap<TopicPartition, Progress>>,
    is_stale: AtomicBool,
    failures: Mutex<BTreeMap<i32, ClientError>>,
}

impl Shared {
    /// Of a mirror without partitions.
    pub fn new(source_id: String, bytes_per_second: Option<u64>) -> Self {
        Self {
            source_id,
            stop: Stop::default(),
            pace: Pace::new(bytes_per_second),
            partitions: Mutex::default(),
            is_stale: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    /// Copies these partitions, each led by a broker of the source, and no others. Those that were copied already go on.
    pub fn assign(&self, wanted: Vec<(TopicPartition, i32)>) {
        let mut partitions = self.partitions.lock();
        let mut before = std::mem::take(&mut *partitions);
        for (partition, leader) in wanted {
            let mut progress = before.remove(&partition).unwrap_or_else(|| Progress::new(leader));
            progress.leader = leader;
            partitions.insert(partition, progress);
        }
    }

    /// The partitions that `leader` leads and that are not to be left alone now.
    pub fn led_by(&self, leader: i32) -> Vec<(TopicPartition, Progress)> {
        let now = Instant::now();
        let due = |progress: &Progress| progress.paused_until.is_none_or(|until| until <= now);
        let partitions = self.partitions.lock();
        let mine = partitions.iter().filter(|(_, progress)| progress.leader == leader && due(progress));
        mine.map(|(partition, progress)| (partition.clone(), progress.clone())).collect()
    }

    /// Changes what is known of a partition, when it is still copied.
    pub fn update(&self, partition: &TopicPartition, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.partitions.lock().get_mut(partition) {
            change(progress);
        }
    }

    /// All partitions.
    pub fn all(&self) -> Vec<(TopicPartition, Progress)> {
        let partitions = self.partitions.lock();
        partitions.iter().map(|(partition, progress)| (partition.clone(), progress.clone())).collect()
    }

    /// A broker does not lead what it was asked for, or cannot be reached: leaders are to be looked for.
    pub fn leaders_are_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Whether leaders are to be looked for; asked once for each time.
    pub fn take_stale(&self) -> bool {
        self.is_stale.swap(false, Ordering::AcqRel)
    }

    /// Notes what stops a lane; `None`: it goes on.
    pub fn note(&self, leader: i32, error: Option<ClientError>) {
        let mut failures = self.failures.lock();
        match error {
            Some(error) => _ = failures.insert(leader, error),
            None => _ = failures.remove(&leader),
        }
    }

    /// What stops lanes now.
    pub fn failures(&self) -> Vec<ClientError> {
        self.failures.lock().values().cloned().collect()
    }
}
