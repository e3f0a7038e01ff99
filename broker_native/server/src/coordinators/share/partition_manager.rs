//! The shell around [`ShareLeader`]: the share partitions of the partitions that this broker leads.
//!
//! Under the lock of a share partition's shard the machine takes the request; without it, states are read and written by the
//! [`ShareStateStore`], whose outcome goes back the same way. What is kept by this broker itself and acknowledged at once is done at once.
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::state_store::{Begun, ShareStateStore};
use crate::cluster::view::Cluster;
use crate::coordinators::Waiting;
use crate::coordinators::alarm::{Alarm, NEVER_MS};
use crate::coordinators::waiting::Sender;
use crate::share_groups::group_watchers::GroupWatchers;
use crate::state::topics::{MetadataImage, Topics};
use crate::upkeep::background::kept_running;
use pylog_coordinator::share::leader::{LeaderEffects, failed};
use pylog_coordinator::share::state_requests::Written;
use pylog_coordinator::share::{
    GroupSettings, LeaderAction, ShareEvent, ShareKey, ShareLeader, ShareReply, ShareRequest,
};
use pylog_coordinator::{Now, Ticket};
use pylog_log::loggers::COORDINATOR;
use pylog_log::{BUG, warn};
use pylog_storage::Clock;
use pylog_wire::ErrorCode;

/// How many locks the share partitions are divided among.
const SHARDS: usize = 16;
/// The longest sleep before the deadlines are checked again.
const NAP_MAX: Duration = Duration::from_secs(30);

/// See the module.
pub struct SharePartitionManager {
    me: Weak<Self>,
    node_id: i32,
    topics: Arc<Topics>,
    cluster: Arc<Cluster>,
    clock: Arc<dyn Clock>,
    store: Arc<ShareStateStore>,
    group_watchers: Arc<GroupWatchers>,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    alarm: Alarm,
    runtime: OnceLock<Handle>,
}

struct Shard {
    leader: ShareLeader,
    next_ticket: u64,
    waiting: HashMap<Ticket, Sender<ShareReply>>,
}

impl Shard {
    /// Takes a step. After a panic in it all share partitions of this lock are dropped, because the machine's state may be half changed;
    /// it is read again for the next request. The error holds the answers to the requests that wait: they have to ask again.
    fn try_step(
        &mut self,
        step: impl FnOnce(&mut ShareLeader) -> LeaderEffects,
    ) -> Result<LeaderEffects, LeaderEffects> {
        let stepped = catch_unwind(AssertUnwindSafe(|| step(&mut self.leader)));
        stepped.map_err(|_panic| {
            warn!(target: COORDINATOR, "the state of the share partitions that this broker leads is read again, after {BUG}");
            let left = catch_unwind(AssertUnwindSafe(|| self.leader.keep(|_key| None)));
            left.unwrap_or_default()
        })
    }

    /// Takes a step that nobody asked for.
    fn step(&mut self, step: impl FnOnce(&mut ShareLeader) -> LeaderEffects) -> LeaderEffects {
        self.try_step(step).unwrap_or_else(|left| left)
    }

    /// Hands a request to the machine. A request that makes it panic is answered like those that wait: it has to ask again.
    fn ask(
        &mut self,
        event: ShareEvent,
        step: impl FnOnce(&mut ShareLeader, ShareEvent) -> LeaderEffects,
    ) -> LeaderEffects {
        let asker_reply = (event.ticket, failed(&event.request, ErrorCode::NotLeaderOrFollower));
        self.try_step(|leader| step(leader, event)).unwrap_or_else(|mut left| {
            left.replies.push(asker_reply);
            left
        })
    }

    /// Sends the answers but that to `mine`; gives that, and what is to be done.
    fn send_replies(
        &mut self,
        effects: LeaderEffects,
        mine: Option<Ticket>,
    ) -> (Option<ShareReply>, Vec<LeaderAction>) {
        let mut own = None;
        for (ticket, reply) in effects.replies {
            match self.waiting.remove(&ticket) {
                _ if Some(ticket) == mine => own = Some(reply),
                // The receiver may have gone away: nobody waits for the answer then.
                Some(sender) => drop(sender.send(Ok(reply))),
                None => {}
            }
        }
        (own, effects.actions)
    }
}

impl SharePartitionManager {
    /// Holds no share partition until one is asked for. `make` makes an empty machine.
    pub fn new(
        node_id: i32,
        topics: Arc<Topics>,
        cluster: Arc<Cluster>,
        clock: Arc<dyn Clock>,
        store: Arc<ShareStateStore>,
        group_watchers: Arc<GroupWatchers>,
        make: impl Fn() -> ShareLeader,
    ) -> Arc<Self> {
        let shard = || Mutex::new(Shard { leader: make(), next_ticket: 0, waiting: HashMap::new() });
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            node_id,
            topics,
            cluster,
            clock,
            store,
            group_watchers,
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            alarm: Alarm::default(),
            runtime: OnceLock::new(),
        })
    }

    /// Begins to watch deadlines, in the runtime of the caller.
    pub fn start(&self) {
        if let (Ok(()), Some(me)) = (self.runtime.set(Handle::current()), self.me.upgrade()) {
            tokio::spawn(kept_running("the clock of share groups", move || {
                Arc::clone(&me).watch_deadlines()
            }));
        }
    }

    /// Asks the share partition. It has taken the request when this returns.
    pub fn ask(&self, key: ShareKey, settings: GroupSettings, request: ShareRequest) -> Waiting<ShareReply> {
        let epoch = self.epoch_of(&self.topics.now(), &key);
        let (Some(leader_epoch), Some(shard)) = (epoch, self.shard(&key)) else {
            return Waiting::now(Ok(failed(&request, ErrorCode::NotLeaderOrFollower)));
        };
        let (own, receiver, actions) = {
            let mut shard = shard.lock();
            let ticket = Ticket(shard.next_ticket);
            shard.next_ticket += 1;
            let event = ShareEvent { ticket, key, settings, request };
            let now = self.now();
            let effects = shard.ask(event, |leader, event| leader.ask(event, leader_epoch, now));
            let (own, actions) = shard.send_replies(effects, Some(ticket));
            let receiver = own.is_none().then(|| {
                let (sender, receiver) = oneshot::channel();
                shard.waiting.insert(ticket, sender);
                receiver
            });
            self.note_deadline(&shard);
            (own, receiver, actions)
        };
        self.act(actions);
        match (own, receiver) {
            (None, Some(receiver)) => Waiting::Later(receiver),
            (own, _) => Waiting::now(own.ok_or(ErrorCode::NotLeaderOrFollower)),
        }
    }

    /// Lets go of what this broker does not lead any more.
    pub fn apply(&self, image: &MetadataImage) {
        self.step_all(|leader| leader.keep(|key| self.led_in(image, key)));
    }

    /// A topic is no more.
    pub fn forget_topic(&self, topic_id: &Uuid) {
        self.step_all(|leader| leader.forget_topic(topic_id));
    }

    /// The stored state of a share partition was changed, and not by this leader: it is read again.
    pub fn forget(&self, key: &ShareKey) {
        self.step(key, |leader, _now| leader.forget(key));
    }

    /// Drops everything; requests that wait are answered NOT_LEADER_OR_FOLLOWER.
    pub fn stop(&self) {
        self.step_all(|leader| leader.keep(|_key| None));
    }

    fn led_in(&self, image: &MetadataImage, key: &ShareKey) -> Option<i32> {
        let spec = &image.with_id(&key.topic_id)?.partition(key.partition)?.spec;
        (spec.leader == self.node_id).then_some(spec.leader_epoch)
    }

    fn epoch_of(&self, image: &MetadataImage, key: &ShareKey) -> Option<i32> {
        self.led_in(image, key).filter(|_| self.cluster.may_lead())
    }

    fn shard(&self, key: &ShareKey) -> Option<&Mutex<Shard>> {
        let number = self.hasher.hash_one(key) % SHARDS as u64;
        self.shards.get(usize::try_from(number).unwrap_or(0))
    }

    fn now(&self) -> Now {
        Now { wall_ms: self.clock.now_ms(), steady_ms: self.clock.steady_ms() }
    }

    fn note_deadline(&self, shard: &Shard) {
        self.alarm.note(shard.leader.next_deadline_ms().unwrap_or(NEVER_MS));
    }

    fn step(&self, key: &ShareKey, step: impl FnOnce(&mut ShareLeader, Now) -> LeaderEffects) {
        let actions = self.stepped(self.shard(key), |leader| step(leader, self.now()));
        self.act(actions);
    }

    fn step_all(&self, step: impl Fn(&mut ShareLeader) -> LeaderEffects) {
        for shard in &self.shards {
            let actions = self.stepped(Some(shard), &step);
            self.act(actions);
        }
    }

    fn stepped(
        &self,
        shard: Option<&Mutex<Shard>>,
        step: impl FnOnce(&mut ShareLeader) -> LeaderEffects,
    ) -> Vec<LeaderAction> {
        let Some(shard) = shard else { return Vec::new() };
        let mut shard = shard.lock();
        let effects = shard.step(step);
        let (_none, actions) = shard.send_replies(effects, None);
        self.note_deadline(&shard);
        actions
    }

    /// Does what is to be done, at once where that is possible.
    fn act(&self, actions: Vec<LeaderAction>) {
        let mut left = VecDeque::from(actions);
        while let Some(action) = left.pop_front() {
            let more = match action {
                LeaderAction::Wake(group_id) => {
                    self.group_watchers.wake(&group_id);
                    continue;
                }
                LeaderAction::Load { key, leader_epoch, life, makes } => {
                    self.load(key, leader_epoch, life, makes)
                }
                LeaderAction::Save { key, version, written } => self.save(key, version, written),
            };
            left.extend(more);
        }
    }

    fn load(&self, key: ShareKey, leader_epoch: i32, life: u64, makes: bool) -> Vec<LeaderAction> {
        let begun = self.store.read(&key, leader_epoch, makes);
        let taken = move |me: &Self, outcome| {
            let step = |leader: &mut ShareLeader| leader.loaded(&key, life, makes, outcome, me.now());
            me.stepped(me.shard(&key), step)
        };
        self.when_done(begun, taken)
    }

    fn save(&self, key: ShareKey, version: u64, written: Written) -> Vec<LeaderAction> {
        let begun = self.store.write(&key, written);
        let taken = move |me: &Self, outcome| {
            me.stepped(me.shard(&key), |leader| leader.saved(&key, version, outcome))
        };
        self.when_done(begun, taken)
    }

    /// Hands the outcome over: now when it is there, and gives what is to be done then; later else.
    fn when_done<T: Send + 'static>(
        &self,
        begun: Begun<T>,
        taken: impl FnOnce(&Self, Result<T, ErrorCode>) -> Vec<LeaderAction> + Send + 'static,
    ) -> Vec<LeaderAction> {
        let work = match begun {
            Begun::Done(outcome) => return taken(self, outcome),
            Begun::Later(work) => work,
        };
        let (Some(runtime), Some(me)) = (self.runtime.get(), self.me.upgrade()) else {
            return Vec::new();
        };
        runtime.spawn(async move {
            let outcome = work.await;
            let actions = taken(&me, outcome);
            me.act(actions);
        });
        Vec::new()
    }

    async fn watch_deadlines(self: Arc<Self>) {
        loop {
            self.alarm.reset();
            for shard in &self.shards {
                self.alarm.found(shard.lock().leader.next_deadline_ms().unwrap_or(NEVER_MS));
            }
            let left_ms = self.alarm.at_ms().saturating_sub(self.clock.steady_ms());
            let nap = u64::try_from(left_ms).map_or(Duration::ZERO, Duration::from_millis).min(NAP_MAX);
            tokio::select! {
                () = tokio::time::sleep(nap) => self.tick(),
                () = self.alarm.earlier() => {}
            }
        }
    }

    fn tick(&self) {
        let now = self.now();
        self.step_all(|leader| match leader.next_deadline_ms() {
            Some(due_ms) if due_ms <= now.steady_ms => leader.tick(now),
            _ => LeaderEffects::default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_coordinator::Room;
    use pylog_coordinator::share::requests::LogRange;
    use pylog_coordinator::share::{Settings, ShareMachine};

    const NOW: Now = Now { wall_ms: 1, steady_ms: 1 };

    fn settings() -> GroupSettings {
        GroupSettings::from(&Settings::default())
    }

    fn shard() -> Shard {
        let machine = ShareMachine::new(settings(), Room::new(1 << 20, || ()), Arc::new(|_topic| false));
        Shard { leader: ShareLeader::new(machine), next_ticket: 0, waiting: HashMap::new() }
    }

    fn next(group: &str, ticket: u64) -> ShareEvent {
        let log = LogRange { start: 0, end: 10 };
        let key = ShareKey { group_id: group.into(), topic_id: Uuid::from_u128(9), partition: 0 };
        let request = ShareRequest::Next { log, begin: Some(0) };
        ShareEvent { ticket: Ticket(ticket), key, settings: settings(), request }
    }

    fn loads(effects: &LeaderEffects) -> bool {
        matches!(effects.actions.as_slice(), [LeaderAction::Load { .. }])
    }

    #[test]
    fn after_a_panic_all_requests_that_wait_have_to_ask_again_and_the_next_reads_the_state_anew() {
        let mut shard = shard();
        let begun = shard.ask(next("g", 1), |leader, event| leader.ask(event, 0, NOW));
        assert!(loads(&begun));
        let (sender, mut receiver) = oneshot::channel();
        shard.waiting.insert(Ticket(1), sender);
        let effects = shard.ask(next("other", 2), |_leader, _event| panic!("a planted mistake"));
        let (own, actions) = shard.send_replies(effects, Some(Ticket(2)));
        let again = ShareReply::Next(Err(ErrorCode::NotLeaderOrFollower));
        assert_eq!((own, shard.waiting.len()), (Some(again.clone()), 0));
        assert!(
            matches!(actions.as_slice(), [LeaderAction::Wake(group)] if group == "g"),
            "long polls ask again"
        );
        assert_eq!(receiver.try_recv().unwrap(), Ok(again));
        assert!(loads(&shard.ask(next("g", 3), |leader, event| leader.ask(event, 0, NOW))));
    }

    #[test]
    fn a_panic_of_a_step_without_a_request_drops_the_state() {
        let mut shard = shard();
        shard.ask(next("g", 1), |leader, event| leader.ask(event, 0, NOW));
        let effects = shard.step(|_leader| panic!("a planted mistake"));
        assert_eq!(effects.replies.len(), 1, "the request that waits is answered");
        assert!(loads(&shard.ask(next("g", 2), |leader, event| leader.ask(event, 0, NOW))));
    }
}
