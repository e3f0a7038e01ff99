//! The machines of one internal topic.
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;

use super::alarm::{Alarm, NEVER_MS};
use super::commit_timeouts::CommitTimeouts;
use super::key::partition_of;
use super::shard::{Shard, Start, Stepped};
use super::waiting::Waiting;
use crate::cluster::view::Cluster;
use crate::state::topics::MetadataImage;
use crate::upkeep::background::kept_running;
use pylog_coordinator::{Effects, Machine, Now, Ticket};
use pylog_storage::{Appended, Clock, PartitionLog, TxnMarker};
use pylog_wire::ErrorCode;

/// The longest sleep before the deadlines are checked again.
const NAP_MAX: Duration = Duration::from_secs(30);
/// How often a broker that may not lead checks whether it may again.
const LEASE_NAP: Duration = Duration::from_millis(100);
/// Logs that are loaded at once.
const LOADERS_MAX: usize = 2;

/// Starts the actions of a coordinator's machines.
pub trait Sink<M: Machine>: Send + Sync + 'static {
    /// Starts `action` of the machine of `partition`; never blocks. Its outcome goes back by [`Coordinator::event`].
    fn start(&self, coordinator: &Arc<Coordinator<M>>, partition: i32, action: M::Action);
}

/// The machines of one internal topic.
pub struct Coordinator<M: Machine> {
    me: Weak<Self>,
    topic: &'static str,
    node_id: i32,
    clock: Arc<dyn Clock>,
    /// Whether this broker may lead.
    cluster: Arc<Cluster>,
    make: Box<dyn Fn() -> M + Send + Sync>,
    shards: RwLock<Shards<M>>,
    /// Partitions to be loaded, while or before somebody does.
    to_load: Mutex<ToLoad<M>>,
    alarm: Alarm,
    timeouts: CommitTimeouts<M::Reply>,
    sink: OnceLock<Box<dyn Sink<M>>>,
    /// Hands actions to `sink`.
    starter: Arc<dyn Start<M>>,
    runtime: OnceLock<Handle>,
}

struct Shards<M: Machine> {
    /// Partitions of the topic; 0 while it is not there.
    count: i32,
    led: HashMap<i32, Arc<Shard<M>>>,
}

struct ToLoad<M: Machine> {
    queue: VecDeque<Arc<Shard<M>>>,
    loaders: usize,
}

impl<M: Machine> Coordinator<M>
where
    M::Action: 'static,
{
    /// Coordinates nothing yet. `make` makes an empty machine.
    pub fn new(
        topic: &'static str,
        node_id: i32,
        clock: Arc<dyn Clock>,
        cluster: Arc<Cluster>,
        make: impl Fn() -> M + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            topic,
            node_id,
            clock,
            cluster,
            make: Box::new(make),
            shards: RwLock::new(Shards { count: 0, led: HashMap::new() }),
            to_load: Mutex::new(ToLoad { queue: VecDeque::new(), loaders: 0 }),
            alarm: Alarm::default(),
            timeouts: CommitTimeouts::default(),
            sink: OnceLock::new(),
            starter: Arc::new(Starter { coordinator: Weak::clone(me) }),
            runtime: OnceLock::new(),
        })
    }

    /// Who starts actions from now on; once.
    pub fn set_sink(&self, sink: impl Sink<M>) {
        // The first one stays.
        let _ = self.sink.set(Box::new(sink));
    }

    /// The internal topic.
    pub fn topic(&self) -> &'static str {
        self.topic
    }

    /// Whether the internal topic is there.
    pub fn has_topic(&self) -> bool {
        self.shards.read().count > 0
    }

    /// The partition that keeps `key`; `None` while the topic is not there.
    pub fn partition_of(&self, key: &str) -> Option<i32> {
        partition_of(key, self.shards.read().count)
    }

    /// Gives the machine of `key` an event. It has taken it when this returns; the answer may take time.
    /// Errors: NOT_COORDINATOR (also when the topic is not there), COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, and what
    /// the append of its records failed with.
    pub fn call(&self, key: &str, make: impl FnOnce(Ticket) -> M::Event) -> Waiting<M::Reply> {
        let shard = match self.shard_of(key) {
            Ok(shard) => shard,
            Err(code) => return Waiting::now(Err(code)),
        };
        let stepped = shard.call(make, self.now());
        self.finish_step(&shard, stepped)
    }

    /// Gives a machine the outcome of an action that it began in its life `life`. Dropped when that machine is gone.
    pub fn outcome(&self, shard: &Arc<Shard<M>>, life: u64, event: M::Event) {
        let now = self.now();
        let step = |machine: &mut M| {
            // Looked at under the machine's lock.
            if shard.life() == life { machine.handle(event, now) } else { Effects::default() }
        };
        let stepped = shard.run(now, step);
        drop(self.finish_step(shard, stepped));
    }

    /// Ends a producer's transaction in `partition`; the marker is acknowledged when the log that comes with it says so.
    ///
    /// # Errors
    /// As [`Shard::append_marker`].
    pub fn append_marker(
        &self,
        partition: i32,
        marker: TxnMarker,
    ) -> Result<(Arc<PartitionLog>, Appended), ErrorCode> {
        let shard = self.shard(partition).ok_or(ErrorCode::NotLeaderOrFollower)?;
        let appended = shard.append_marker(marker)?;
        Ok((Arc::clone(&shard.log), appended))
    }

    /// Does `work` soon, with no machine's lock held; never when the broker does not run.
    pub fn later(&self, work: Box<dyn FnOnce() + Send>) {
        if let Some(runtime) = self.runtime.get() {
            runtime.spawn(async move { work() });
        }
    }

    /// Runs `step` on every machine that is loaded.
    pub fn step_all(&self, step: impl Fn(&mut M, Now) -> Effects<M::Reply, M::Action>) {
        for shard in self.led() {
            let now = self.now();
            let stepped = shard.run(now, |machine| step(machine, now));
            drop(self.finish_step(&shard, stepped));
        }
    }

    /// Looks at every machine, in the order of the partitions.
    ///
    /// # Errors
    /// COORDINATOR_LOAD_IN_PROGRESS when one is not loaded; the others were looked at.
    pub fn for_each_loaded(&self, mut look: impl FnMut(&M)) -> Result<(), ErrorCode> {
        let mut outcome = Ok(());
        for shard in self.led() {
            match shard.look(&mut look) {
                Ok(()) | Err(ErrorCode::NotCoordinator) => {}
                Err(code) => outcome = Err(code),
            }
        }
        outcome
    }

    /// The shard of `partition`, when this broker leads it.
    pub fn shard(&self, partition: i32) -> Option<Arc<Shard<M>>> {
        self.shards.read().led.get(&partition).cloned()
    }

    /// Coordinates what this broker leads in `image`: what is new or led in a new epoch is loaded, what is not led any
    /// more ends.
    pub fn apply(&self, image: &MetadataImage) {
        let mut led = HashMap::new();
        let topic = image.named(self.topic);
        for partition in topic.iter().flat_map(|topic| &topic.partitions) {
            if let (Ok(log), true) = (&partition.log, partition.spec.leader == self.node_id) {
                let (number, epoch) = (partition.spec.partition, partition.spec.leader_epoch);
                let shard = Arc::new(Shard::new(number, epoch, Arc::clone(log)));
                led.insert(number, (shard, partition.leader_state.clone()));
            }
        }
        let count = topic.map_or(0, |topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX));
        let mut ended = Vec::new();
        {
            let mut shards = self.shards.write();
            for (number, before) in std::mem::take(&mut shards.led) {
                match led.get_mut(&number) {
                    Some((now, _))
                        if now.leader_epoch == before.leader_epoch && Arc::ptr_eq(&now.log, &before.log) =>
                    {
                        *now = before;
                    }
                    _ => ended.push(before),
                }
            }
            let led = led.into_iter().map(|(number, (shard, leader_state))| {
                shard.set_leader_state(leader_state);
                (number, shard)
            });
            *shards = Shards { count, led: led.collect() };
        }
        ended.iter().for_each(|shard| shard.end());
        for shard in self.led() {
            if shard.is_loading() {
                self.load_soon(shard);
            }
        }
    }

    /// Begins to load and to watch deadlines, in the runtime of the caller.
    pub fn start(&self) {
        if self.runtime.set(Handle::current()).is_err() {
            return;
        }
        self.load_in_background();
        if let Some(me) = self.me.upgrade() {
            tokio::spawn(kept_running("the clock of a coordinator", move || {
                Arc::clone(&me).watch_deadlines()
            }));
        }
    }

    /// Ends all machines.
    pub fn stop(&self) {
        let shards = std::mem::replace(&mut *self.shards.write(), Shards { count: 0, led: HashMap::new() });
        shards.led.values().for_each(|shard| shard.end());
    }

    fn now(&self) -> Now {
        Now { wall_ms: self.clock.now_ms(), steady_ms: self.clock.steady_ms() }
    }

    fn led(&self) -> Vec<Arc<Shard<M>>> {
        let mut all: Vec<_> = self.shards.read().led.values().cloned().collect();
        all.sort_unstable_by_key(|shard| shard.partition);
        all
    }

    fn shard_of(&self, key: &str) -> Result<Arc<Shard<M>>, ErrorCode> {
        let shards = self.shards.read();
        let partition = partition_of(key, shards.count).ok_or(ErrorCode::NotCoordinator)?;
        if !self.cluster.may_lead() {
            return Err(ErrorCode::NotCoordinator);
        }
        shards.led.get(&partition).cloned().ok_or(ErrorCode::NotCoordinator)
    }

    /// Completes a step without the shard's lock: sends answers, starts actions, loads a machine again that failed.
    pub(super) fn finish_step(
        &self,
        shard: &Arc<Shard<M>>,
        stepped: Result<Stepped<M>, ErrorCode>,
    ) -> Waiting<M::Reply> {
        let stepped = match stepped {
            Ok(stepped) => stepped,
            Err(code) => {
                // The step may have failed because its records could not be appended.
                if shard.is_loading() {
                    self.load_soon(Arc::clone(shard));
                }
                return Waiting::now(Err(code));
            }
        };
        self.alarm.note(shard.deadline_ms());
        let (waiting, unanswered) = stepped.finish(shard, &self.starter);
        if let Some(unanswered) = unanswered {
            self.alarm.note(self.timeouts.begin(&unanswered, self.clock.steady_ms()));
        }
        waiting
    }

    /// Loads an empty log now, any other in the background.
    fn load_soon(&self, shard: Arc<Shard<M>>) {
        let offsets = shard.log.offsets();
        if offsets.log_start_offset == offsets.log_end_offset {
            return self.load(&shard);
        }
        {
            let mut to_load = self.to_load.lock();
            if !to_load.queue.iter().any(|queued| Arc::ptr_eq(queued, &shard)) {
                to_load.queue.push_back(shard);
            }
        }
        self.load_in_background();
    }

    fn load_in_background(&self) {
        let (Some(runtime), Some(me)) = (self.runtime.get(), self.me.upgrade()) else { return };
        let mut to_load = self.to_load.lock();
        if to_load.loaders >= LOADERS_MAX.min(to_load.queue.len()) {
            return;
        }
        to_load.loaders += 1;
        drop(to_load);
        runtime.spawn_blocking(move || while me.load_next() {});
    }

    /// Loads the next shard in the queue; false when there was none.
    fn load_next(&self) -> bool {
        let next = {
            let mut to_load = self.to_load.lock();
            let next = to_load.queue.pop_front();
            to_load.loaders -= usize::from(next.is_none());
            next
        };
        let Some(shard) = next else { return false };
        self.load(&shard);
        true
    }

    fn load(&self, shard: &Arc<Shard<M>>) {
        if let Some(stepped) = shard.load(&self.make, self.now()) {
            drop(self.finish_step(shard, Ok(stepped)));
        }
    }

    async fn watch_deadlines(self: Arc<Self>) {
        loop {
            self.alarm.reset();
            for shard in self.led() {
                self.alarm.found(shard.deadline_ms());
            }
            self.timeouts.next_ms().into_iter().for_each(|at_ms| self.alarm.found(at_ms));
            let at_ms = self.alarm.at_ms();
            let nap = match u64::try_from(at_ms.saturating_sub(self.clock.steady_ms())) {
                Ok(left_ms) if at_ms != NEVER_MS => Duration::from_millis(left_ms).min(NAP_MAX),
                Ok(_never) => NAP_MAX,
                Err(_late) if self.cluster.may_lead() => Duration::ZERO,
                Err(_late) => LEASE_NAP,
            };
            tokio::select! {
                () = tokio::time::sleep(nap) => self.do_what_is_due(),
                () = self.alarm.earlier() => {}
            }
        }
    }

    fn do_what_is_due(&self) {
        self.timeouts.end_overdue(self.clock.steady_ms());
        // A broker that may not lead decides nothing: what it appended would not be committed.
        if !self.cluster.may_lead() {
            return;
        }
        for shard in self.led() {
            let now = self.now();
            if shard.deadline_ms() <= now.steady_ms {
                let stepped = shard.run(now, |machine| machine.tick(now));
                drop(self.finish_step(&shard, stepped));
            }
        }
    }
}

/// Hands actions to the coordinator's sink.
struct Starter<M: Machine> {
    coordinator: Weak<Coordinator<M>>,
}

impl<M: Machine> Start<M> for Starter<M> {
    fn later(&self, work: Box<dyn FnOnce() + Send>) {
        if let Some(coordinator) = self.coordinator.upgrade() {
            coordinator.later(work);
        }
    }

    fn start(&self, partition: i32, action: M::Action) {
        if let Some(coordinator) = self.coordinator.upgrade()
            && let Some(sink) = coordinator.sink.get()
        {
            sink.start(&coordinator, partition, action);
        }
    }
}
