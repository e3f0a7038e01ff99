//! Which partitions are followed: gives each to a thread of its leader, starts and stops the threads.
//!
//! Nothing is followed before this broker is registered, because a leader counts only registered followers. Locks: the
//! manager's, then a slot's or an inbox'; no thread of a fetcher takes the manager's.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use uuid::Uuid;

use super::context::{FollowerContext, FollowerSettings};
use super::exchange::Address;
use super::fetcher::Fetcher;
use super::machine::Following;
use super::slot::Slot;
use pylog_log::loggers::REPLICATION;
use pylog_log::warn;
use pylog_storage::PartitionLog;

/// A partition to follow.
pub struct Assignment {
    /// Its topic.
    pub topic_id: Uuid,
    /// Its number.
    pub partition: i32,
    /// The broker that leads it.
    pub leader: i32,
    /// In which epoch.
    pub leader_epoch: i32,
    /// The copy.
    pub log: Arc<PartitionLog>,
    /// Whether catching up is slowed down to the throttle's rate.
    pub throttled: bool,
}

/// See the module.
pub struct ReplicaManager {
    context: Arc<FollowerContext>,
    state: Mutex<ManagerState>,
}

#[derive(Default)]
struct ManagerState {
    slots: HashMap<Uuid, HashMap<i32, Arc<Slot>>>,
    /// By leader and number.
    fetchers: HashMap<(i32, usize), Fetcher>,
    addresses: HashMap<i32, Address>,
    registered: bool,
    closed: bool,
    /// Threads that are to end and were not joined yet.
    ending: Vec<JoinHandle<()>>,
}

impl ReplicaManager {
    /// Follows nothing yet.
    pub fn new(settings: FollowerSettings) -> Self {
        Self { context: Arc::new(FollowerContext::new(settings)), state: Mutex::default() }
    }

    /// Lets go of the partitions of a topic that are not to be followed any more in the leader and epoch that they are
    /// followed in; `stays` gives who is to be followed. When this returns no thread touches their logs.
    pub fn let_go(&self, topic_id: &Uuid, stays: impl Fn(i32) -> Option<(i32, i32)>) {
        let mut state = self.state.lock();
        let ManagerState { slots, fetchers, .. } = &mut *state;
        let Some(topic) = slots.get_mut(topic_id) else { return };
        topic.retain(|partition, slot| {
            if stays(*partition) == Some((slot.leader, slot.leader_epoch)) {
                return true;
            }
            slot.let_go();
            if let Some(fetcher) = fetchers.get(&self.place(slot)) {
                fetcher.remove(Arc::clone(slot));
            }
            false
        });
        if topic.is_empty() {
            slots.remove(topic_id);
        }
    }

    /// Follows these as well. A partition that is followed already stays as it is.
    pub fn follow(&self, assignments: impl IntoIterator<Item = Assignment>) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        for assignment in assignments {
            let topic = state.slots.entry(assignment.topic_id).or_default();
            if let Some(known) = topic.get(&assignment.partition) {
                known.throttle(assignment.throttled);
                continue;
            }
            let following = Following::new(assignment.leader_epoch, self.context.settings.backoff_max_ms);
            let slot = Slot::new(
                (assignment.topic_id, assignment.partition),
                assignment.leader,
                following,
                assignment.log,
            );
            slot.throttle(assignment.throttled);
            let slot = Arc::new(slot);
            topic.insert(assignment.partition, Arc::clone(&slot));
            self.start_following(&mut state, slot);
        }
    }

    /// Takes over where the other brokers are, and the epoch of this one's registration (`None`: it has none now).
    pub fn meet(&self, addresses: HashMap<i32, Address>, own_epoch: Option<i64>) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        if let Some(epoch) = own_epoch {
            self.context.registered(epoch);
            state.registered = true;
        }
        let ManagerState { fetchers, ending, addresses: before, .. } = &mut *state;
        ending.retain(|thread| !thread.is_finished());
        fetchers.retain(|(leader, _), fetcher| {
            let stays = addresses.get(leader) == before.get(leader);
            if !stays {
                ending.extend(fetcher.stop());
            }
            stays
        });
        state.addresses = addresses;
        let all: Vec<_> = state.slots.values().flat_map(HashMap::values).cloned().collect();
        let without: Vec<_> =
            all.into_iter().filter(|slot| !state.fetchers.contains_key(&self.place(slot))).collect();
        without.into_iter().for_each(|slot| self.start_following(&mut state, slot));
    }

    /// The bytes per second for throttled partitions; `i64::MAX` is no limit.
    pub fn set_throttle(&self, bytes_per_second: i64) {
        self.context.throttle.set(bytes_per_second);
    }

    /// Stops all threads and waits for them. Nothing is followed afterwards.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.slots.drain().flat_map(|(_, topic)| topic).for_each(|(_, slot)| slot.let_go());
        let mut threads = std::mem::take(&mut state.ending);
        threads.extend(state.fetchers.drain().filter_map(|(_, mut fetcher)| fetcher.stop()));
        drop(state);
        for thread in threads {
            // A panic inside was printed by the hook; there is nothing left to stop.
            let _ = thread.join();
        }
    }

    /// Gauges and counters by name.
    pub fn snapshot(&self) -> BTreeMap<&'static str, u64> {
        let state = self.state.lock();
        let slots = || state.slots.values().flat_map(HashMap::values);
        let lag = slots().filter_map(|slot| slot.lag()).max().unwrap_or(0);
        let failed = slots().filter(|slot| slot.is_failed()).count();
        BTreeMap::from([
            ("followed_partitions", slots().count() as u64),
            ("follower_max_lag", u64::try_from(lag).unwrap_or(0)),
            ("follower_failed_partitions", failed as u64),
            ("follower_bytes_in", self.context.bytes()),
            ("follower_threads", state.fetchers.len() as u64),
        ])
    }

    /// Which thread follows the partition.
    fn place(&self, slot: &Slot) -> (i32, usize) {
        let (topic_id, partition) = slot.key;
        let (_, low) = topic_id.as_u64_pair();
        let hash = low.wrapping_add(u64::from(partition.unsigned_abs()));
        let threads = self.context.settings.fetchers.max(1) as u64;
        (slot.leader, usize::try_from(hash % threads).unwrap_or(0))
    }

    /// Gives the partition to its thread, which starts when it is the first; without a leader's address it waits.
    fn start_following(&self, state: &mut ManagerState, slot: Arc<Slot>) {
        let place = self.place(&slot);
        if let Some(fetcher) = state.fetchers.get(&place) {
            return fetcher.add(slot);
        }
        let Some(address) = state.addresses.get(&slot.leader).filter(|_| state.registered) else { return };
        match Fetcher::start(Arc::clone(&self.context), place.0, place.1, address.clone()) {
            Ok(fetcher) => {
                fetcher.add(slot);
                state.fetchers.insert(place, fetcher);
            }
            Err(error) => {
                let (peer, _number) = place;
                warn!(target: REPLICATION, peer, "cannot follow broker {peer}: {error}; trying again later");
            }
        }
    }
}

impl Drop for ReplicaManager {
    fn drop(&mut self) {
        self.close();
    }
}
