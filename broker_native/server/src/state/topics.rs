//! What this broker serves: topics by name and id, as an immutable image that is replaced as a whole.
//!
//! Request handlers take the image once ([`Topics::now`]) and work on it without a lock; what Python applies is seen
//! by the next request.
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::replication::Replication;
use super::replication::leader_slot::{LeaderSlot, on_append, on_failure};
use super::replication::leader_state::LeaderState;
use super::replication::proposals::Proposer;
use super::watch::Watchers;
use crate::cluster::spec::{PartitionSpec, TopicSpec};
use pylog_log::broker::carried;
use pylog_log::loggers::STORAGE;
use pylog_log::{error, warn};
use pylog_storage::types::CutTail;
use pylog_storage::{LogManager, PartitionLog, Role, StorageError, TopicPartition};

/// Why this broker has no log of a partition.
#[derive(Debug, Clone)]
pub enum Absent {
    /// This broker is not one of its replicas.
    NotReplica,
    /// It should be here, but cannot be used.
    Offline(StorageError),
}

/// A partition that is served.
pub struct Partition {
    /// Leader, epoch, replicas.
    pub spec: PartitionSpec,
    /// Its log, or why there is none.
    pub log: Result<Arc<PartitionLog>, Absent>,
    /// Long polls that wait for its data.
    pub watchers: Arc<Watchers>,
    /// Followers' long polls, which wait for more than is committed.
    pub appended: Arc<Watchers>,
    /// What this broker knows of its followers, when it leads and has some.
    pub leader_state: Option<Arc<LeaderState>>,
    leader_slot: Arc<LeaderSlot>,
}

impl Partition {
    /// Whether the log should be here, but cannot be used.
    pub fn is_offline(&self) -> bool {
        matches!(self.log, Err(Absent::Offline(_)))
    }

    /// Whether a request that waits since `self` was current has to look again.
    fn differs(&self, now: &Self) -> bool {
        let (had, has) = (&self.spec, &now.spec);
        had.leader != has.leader
            || had.leader_epoch != has.leader_epoch
            || had.replicas != has.replicas
            || self.log.is_ok() != now.log.is_ok()
    }

    /// Wakes all requests that wait for this partition.
    fn wake(&self) {
        self.watchers.wake();
        self.appended.wake();
        if let Some(leader_state) = &self.leader_state {
            leader_state.log_starts.wake();
        }
    }
}

/// A topic that is served.
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Uuid,
    /// Whether clients should hide it.
    pub internal: bool,
    /// The id of the cluster that it is a copy of; empty for a topic as any other.
    pub mirror_source: String,
    /// Partitions by number, from 0.
    pub partitions: Vec<Arc<Partition>>,
}

impl Topic {
    /// The partition with this number.
    pub fn partition(&self, number: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(number).ok()?)
    }

    /// Whether only a mirror writes to it (`mirror.source`).
    pub fn is_mirror(&self) -> bool {
        !self.mirror_source.is_empty()
    }
}

/// All topics at one moment.
#[derive(Default, Clone)]
pub struct MetadataImage {
    by_name: HashMap<String, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
    /// Greater than that of every image before.
    version: u64,
}

impl MetadataImage {
    /// The topic with this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// The topic with this id.
    pub fn with_id(&self, id: &Uuid) -> Option<&Arc<Topic>> {
        self.by_id.get(id)
    }

    /// All topics, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// Changes whenever something is applied or removed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of topics.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// The image, and the lock of whoever changes it.
#[derive(Default)]
pub struct Topics {
    now: RwLock<Arc<MetadataImage>>,
    /// Held while the next image is built.
    changing: Mutex<()>,
}

impl Topics {
    /// The image now.
    pub fn now(&self) -> Arc<MetadataImage> {
        Arc::clone(&self.now.read())
    }

    /// All partitions that are led here and copied elsewhere.
    pub fn led(&self) -> Vec<Arc<LeaderState>> {
        let topics = self.now();
        let partitions = topics.all().flat_map(|topic| topic.partitions.iter());
        partitions.filter_map(|partition| partition.leader_state.clone()).collect()
    }

    /// Whether this broker is still served as the leader in that epoch.
    pub fn is_current(&self, leader_state: &Arc<impl Proposer + ?Sized>) -> bool {
        let topics = self.now();
        let partition =
            topics.named(leader_state.topic()).and_then(|topic| topic.partition(leader_state.partition()));
        let now = partition.and_then(|partition| partition.leader_state.as_ref());
        now.is_some_and(|now| std::ptr::addr_eq(Arc::as_ptr(now), Arc::as_ptr(leader_state)))
    }

    /// Opens or makes the logs of `specs` that this broker has a replica of, with `threads` at once, and serves them. Logs
    /// of which it no longer has a replica are removed. Requests that wait for a partition are woken when it has another leader
    /// now.
    ///
    /// A damaged log takes only its partition offline.
    ///
    /// # Errors
    /// The first log that could not be opened for another reason; what could be opened is served all the same.
    pub fn apply(
        &self,
        logs: &LogManager,
        replication: &Arc<Replication>,
        specs: Vec<TopicSpec>,
        threads: usize,
    ) -> Result<(), StorageError> {
        let _changing = self.changing.lock();
        let before = self.now();
        let next_job = std::sync::atomic::AtomicUsize::new(0);
        let jobs: Vec<_> =
            specs.iter().flat_map(|topic| topic.partitions.iter().map(move |p| (topic, p))).collect();
        let done = Mutex::new(Vec::with_capacity(jobs.len()));
        let work = || {
            while let Some((topic, spec)) =
                jobs.get(next_job.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
            {
                let partition = open(logs, replication, &before, topic, spec);
                done.lock().push(((topic.topic_id, spec.partition), partition));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.clamp(1, jobs.len().max(1)) {
                scope.spawn(carried(work));
            }
            work();
        });
        let mut opened: HashMap<_, _> = done.into_inner().into_iter().collect();
        let mut first_error = None;
        let mut next = MetadataImage::clone(&before);
        for spec in &specs {
            let mut numbers: Vec<_> = spec.partitions.iter().map(|p| p.partition).collect();
            numbers.sort_unstable();
            let partitions =
                numbers.iter().filter_map(|n| opened.remove(&(spec.topic_id, *n))).collect::<Vec<_>>();
            for partition in &partitions {
                if let Err(Absent::Offline(error)) = &partition.log {
                    let partition = TopicPartition::new(&spec.name, partition.spec.partition);
                    error!(target: STORAGE, %partition, "a partition is offline: {error}");
                    if !is_damage(error) {
                        first_error.get_or_insert_with(|| error.clone());
                    }
                }
            }
            let topic = Arc::new(Topic {
                name: spec.name.clone(),
                id: spec.topic_id,
                internal: spec.internal,
                mirror_source: spec.config.mirror_source.clone(),
                partitions,
            });
            next.by_name.insert(topic.name.clone(), Arc::clone(&topic));
            next.by_id.insert(topic.id, topic);
        }
        next.version += 1;
        let next = Arc::new(next);
        *self.now.write() = Arc::clone(&next);
        wake_changed(&before, &next, &specs);
        first_error.map_or(Ok(()), Err)
    }

    /// Stops serving the topic, then removes its logs. Nothing happens when it is not served.
    ///
    /// # Errors
    /// The first log whose files could not be removed.
    pub fn remove(&self, logs: &LogManager, name: &str) -> Result<(), StorageError> {
        let _changing = self.changing.lock();
        let mut next = MetadataImage::clone(&self.now());
        let Some(topic) = next.by_name.remove(name) else { return Ok(()) };
        next.by_id.remove(&topic.id);
        next.version += 1;
        *self.now.write() = Arc::new(next);
        topic.partitions.iter().for_each(|partition| partition.wake());
        let removed =
            logs.remove_partitions(name, topic.partitions.iter().map(|partition| partition.spec.partition));
        match removed {
            // Its directory was removed by somebody else: the topic is gone, as was asked.
            Err(StorageError::NotFound { .. }) => Ok(()),
            removed => removed,
        }
    }
}

/// Whether the partition's own files are at fault: the broker serves the others.
fn is_damage(error: &StorageError) -> bool {
    match error {
        StorageError::Corrupt { .. }
        | StorageError::ChangedWhileStopped { .. }
        | StorageError::Malformed { .. }
        | StorageError::Mismatch { .. }
        | StorageError::Poisoned { .. } => true,
        // A link, a pipe, a folder in place of a file, or a file in place of a folder; the disk itself works.
        StorageError::Io { kind, .. } => {
            matches!(kind, ErrorKind::InvalidInput | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
        }
        _ => false,
    }
}

/// Whether a damaged replica outside the ISR may be removed and copied again: its files are its own.
fn is_own_damage(error: &StorageError) -> bool {
    is_damage(error) && !matches!(error, StorageError::Mismatch { .. })
}

/// Wakes requests that wait for a partition whose leader, replicas or log have changed.
fn wake_changed(before: &MetadataImage, now: &MetadataImage, specs: &[TopicSpec]) {
    for id in specs.iter().map(|spec| &spec.topic_id) {
        let (Some(had), Some(has)) = (before.with_id(id), now.with_id(id)) else { continue };
        let pairs = had.partitions.iter().zip(&has.partitions);
        pairs.filter(|(had, has)| had.differs(has)).for_each(|(had, _)| had.wake());
    }
}

/// The partition as `spec` wants it: the log and the watchers of before when it was served already.
fn open(
    logs: &LogManager,
    replication: &Arc<Replication>,
    before: &MetadataImage,
    topic: &TopicSpec,
    spec: &PartitionSpec,
) -> Arc<Partition> {
    let known =
        before.with_id(&topic.topic_id).and_then(|known| known.partition(spec.partition)).map(Arc::as_ref);
    let node_id = replication.node_id;
    if !spec.replicas.contains(&node_id) {
        return not_replica(logs, topic, spec, known);
    }
    let role = role_of(spec, node_id);
    if let Some(known @ Partition { log: Ok(log), spec: had, .. }) = known {
        log.update_config(topic.config.clone());
        let log = match had.leader_epoch == spec.leader_epoch && role_of(had, node_id) == role {
            true => Ok(Arc::clone(log)),
            false => log.set_role(role, spec.leader_epoch).map(|()| Arc::clone(log)).map_err(Absent::Offline),
        };
        let leader_state = lead(replication, topic, spec, role, Some(known), &log);
        known.leader_slot.take(leader_state.clone());
        let (watchers, appended) = (Arc::clone(&known.watchers), Arc::clone(&known.appended));
        let (spec, leader_slot) = (spec.clone(), Arc::clone(&known.leader_slot));
        return Arc::new(Partition { spec, log, watchers, appended, leader_state, leader_slot });
    }
    let (watchers, appended, leader_slot) = (Arc::<Watchers>::default(), Arc::default(), Arc::default());
    let open = || {
        let (id, config) = (topic.topic_id, topic.config.clone());
        logs.open_partition(&topic.name, spec.partition, id, config, role, spec.leader_epoch)
    };
    let opened = match open() {
        // This replica is not in sync, and the leader has all of its records.
        Err(error) if role == Role::Follower && is_own_damage(&error) && !spec.isr.contains(&node_id) => {
            warn!(
                target: STORAGE, partition = %TopicPartition::new(&topic.name, spec.partition),
                "a damaged replica begins anew and is filled by its leader: {error}"
            );
            give_up(logs, topic, spec).and_then(|()| open())
        }
        opened => opened,
    };
    if let Ok(log) = &opened {
        log_findings(log);
        let wake = Arc::clone(&watchers);
        log.on_advance(Arc::new(move |_high_watermark| wake.wake()));
        log.on_append(on_append(&leader_slot, &appended));
        log.on_failure(on_failure(&leader_slot));
    }
    let log = opened.map_err(Absent::Offline);
    let leader_state = lead(replication, topic, spec, role, None, &log);
    leader_slot.take(leader_state.clone());
    Arc::new(Partition { spec: spec.clone(), log, watchers, appended, leader_state, leader_slot })
}

/// Logs what recovery found in a log that was just opened.
fn log_findings(log: &PartitionLog) {
    let at = log.topic_partition();
    for note in log.notes() {
        warn!(target: STORAGE, partition = %at, "{at}: {note}");
    }
    if let Some(CutTail { offset, bytes, reason, kept, .. }) = log.cut_tail() {
        let dir = log.dir();
        warn!(
            target: STORAGE, partition = %at,
            "{at}: after an unclean stop the log ends at offset {offset}: {bytes} bytes from there on were cut ({reason}); {kept} of them \
             are kept as .cut files in {} (at most log.recovery.kept.bytes)",
            dir.display()
        );
    }
}

/// What this broker knows of the followers: the same as before while it leads in the same epoch.
fn lead(
    replication: &Arc<Replication>,
    topic: &TopicSpec,
    spec: &PartitionSpec,
    role: Role,
    known: Option<&Partition>,
    log: &Result<Arc<PartitionLog>, Absent>,
) -> Option<Arc<LeaderState>> {
    let log = log.as_ref().ok().filter(|_| role == Role::Leader)?;
    let same = known.filter(|known| known.spec.leader_epoch == spec.leader_epoch);
    if let Some(leader_state) = same.and_then(|known| known.leader_state.as_ref()) {
        leader_state.stored(spec);
        return Some(Arc::clone(leader_state));
    }
    Some(LeaderState::new(replication, &topic.name, spec, log))
}

/// What this broker is to the partition.
fn role_of(spec: &PartitionSpec, node_id: i32) -> Role {
    match (spec.leader == node_id, spec.replicas.len()) {
        (true, 1) => Role::Alone,
        (true, _) => Role::Leader,
        (false, _) => Role::Follower,
    }
}

/// Removes what there is of a replica.
fn give_up(logs: &LogManager, topic: &TopicSpec, spec: &PartitionSpec) -> Result<(), StorageError> {
    match logs.remove_partition(&topic.name, spec.partition) {
        // Its directory is what was missing.
        Err(StorageError::NotFound { .. }) => logs.expect_nothing(&topic.name, spec.partition),
        removed => removed,
    }
}

/// A partition of which this broker is not a replica; a log that is still here is removed.
fn not_replica(
    logs: &LogManager,
    topic: &TopicSpec,
    spec: &PartitionSpec,
    known: Option<&Partition>,
) -> Arc<Partition> {
    let at = TopicPartition::new(&topic.name, spec.partition);
    if let Some(Partition { log: Ok(_), leader_slot, .. }) = known {
        leader_slot.take(None);
        if let Err(error) = logs.remove_partition(&topic.name, spec.partition) {
            warn!(target: STORAGE, partition = %at, "replica {at}, which moved away, could not be removed: {error}");
        }
    } else if let Err(error) = logs.expect_nothing(&topic.name, spec.partition) {
        warn!(target: STORAGE, partition = %at, "replica {at}, which moved away, is still expected here: {error}");
    }
    Arc::new(Partition {
        spec: spec.clone(),
        log: Err(Absent::NotReplica),
        watchers: Arc::default(),
        appended: Arc::default(),
        leader_state: None,
        leader_slot: Arc::default(),
    })
}
