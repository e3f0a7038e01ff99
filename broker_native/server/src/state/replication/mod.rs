//! The leader's side of replication: what `replica/progress` decides, tied to logs, requests and questions to Python.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Replication`]: what all led partitions share; [`Seat`]; the timer of lagging followers |
//! | [`failure`] | a disk that does not take what a leader writes |
//! | [`leading`] | one partition that this broker leads and others copy, in one epoch |
//! | [`proposals`] | ISRs on their way to the store, many partitions in one question |
//! | [`nearest`] | which replica a consumer had better read from |
//!
//! A partition with one replica has none of this: one look at [`Partition::leading`] tells.
//!
//! [`Partition::leading`]: super::topics::Partition::leading
pub mod failure;
pub mod leading;
pub mod nearest;
pub mod proposals;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::runtime::Handle;

use self::failure::Failure;
use self::leading::Leading;
use self::proposals::Proposals;
use super::watch::Watchers;
use crate::cluster::view::Cluster;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::upkeep::background::kept_running;
use pylog_replica::throttle::Throttle;
use pylog_storage::FailureListener;

/// What all partitions share that this broker leads and others copy.
pub struct Replication {
    /// This broker.
    pub node_id: i32,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
    /// ISRs to be stored.
    pub proposals: Proposals,
    /// Why this broker had better not lead.
    pub failure: Failure,
    /// How fast throttled replicas may be copied from here.
    pub throttle: Throttle,
    cluster: Arc<Cluster>,
    began: Instant,
    runtime: OnceLock<Handle>,
}

impl Replication {
    /// Nothing is led yet.
    pub fn new(settings: &Settings, cluster: &Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self {
            node_id: settings.node_id,
            lag_max_ms: settings.replica_lag_time_max_ms,
            proposals: Proposals::default(),
            failure: Failure::default(),
            throttle: Throttle::new(settings.leader_replication_throttled_rate),
            cluster: Arc::clone(cluster),
            began: Instant::now(),
            runtime: OnceLock::new(),
        })
    }

    /// Milliseconds by a clock that is never set back.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Does `work` on another thread; here before the server listens, when nobody waits for anything.
    fn apart(&self, work: impl FnOnce() + Send + 'static) {
        match self.runtime.get() {
            Some(runtime) => drop(runtime.spawn(async move { work() })),
            None => work(),
        }
    }

    /// Whether this broker may act as a leader now.
    pub fn may_lead(&self) -> bool {
        self.cluster.may_lead()
    }

    /// The epoch of a live broker's registration.
    pub fn registered(&self, id: i32) -> Option<i64> {
        self.cluster.now().broker(id).map(|broker| broker.epoch)
    }
}

/// Who leads a log here, for the listeners of the log, which outlive many leaders.
#[derive(Default)]
pub struct Seat(RwLock<Option<Arc<Leading>>>);

impl Seat {
    /// Who leads now.
    pub fn now(&self) -> Option<Arc<Leading>> {
        self.0.read().clone()
    }

    /// From now on.
    pub fn take(&self, leading: Option<Arc<Leading>>) {
        *self.0.write() = leading;
    }
}

/// What a log with other replicas calls after each append.
pub fn on_append(seat: &Arc<Seat>, appended: &Arc<Watchers>) -> Arc<dyn Fn(i64) + Send + Sync> {
    // The partition holds the seat; the log must not, for it is held by who sits there.
    let (seat, appended) = (Arc::downgrade(seat), Arc::clone(appended));
    Arc::new(move |replicated_end| {
        appended.wake();
        if let Some(leading) = seat.upgrade().and_then(|seat| seat.now()) {
            leading.appended(replicated_end);
        }
    })
}

/// What a log with other replicas calls when it cannot write.
pub fn on_failure(seat: &Arc<Seat>) -> FailureListener {
    let seat = Arc::downgrade(seat);
    Arc::new(move |why| {
        if let Some(leading) = seat.upgrade().and_then(|seat| seat.now()) {
            leading.cannot_write(why);
        }
    })
}

/// Starts what runs beside the connections; inside the runtime.
pub fn start(shared: &Arc<Shared>) {
    if !shared.cluster.is_clustered() {
        return;
    }
    // A server listens once.
    let _ = shared.replication.runtime.set(Handle::current());
    watch(shared, "changes of in-sync replicas", proposals::send_all);
    watch(shared, "the report of a failed disk", failure::report);
    watch(shared, "the look for slow followers", look_for_laggards);
}

fn watch<F>(shared: &Arc<Shared>, what: &'static str, work: fn(Arc<Shared>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let shared = Arc::clone(shared);
    tokio::spawn(kept_running(what, move || work(Arc::clone(&shared))));
}

/// Twice per `replica.lag.time.max.ms` asks who does not keep up.
async fn look_for_laggards(shared: Arc<Shared>) {
    let lag_max_ms = u64::try_from(shared.replication.lag_max_ms).unwrap_or(0);
    let every = Duration::from_millis((lag_max_ms / 2).max(1));
    loop {
        let slept = Instant::now();
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = shared.shutdown.wait() => return,
        }
        // This broker was stopped itself: what its followers sent meanwhile is still to be read.
        let overslept = slept.elapsed() > 2 * every;
        if !overslept && shared.cluster.may_lead() {
            led(&shared).iter().for_each(|leading| leading.lagging());
        }
    }
}

/// Tells every led partition who lives.
pub fn meet(shared: &Shared) {
    led(shared).iter().for_each(|leading| leading.meet());
}

/// Whether this broker is still served as the leader in that epoch.
pub fn is_current(shared: &Shared, leading: &Arc<Leading>) -> bool {
    let topics = shared.topics.now();
    let partition = topics.named(leading.topic()).and_then(|topic| topic.partition(leading.partition()));
    let now = partition.and_then(|partition| partition.leading.as_ref());
    now.is_some_and(|now| Arc::ptr_eq(now, leading))
}

fn led(shared: &Shared) -> Vec<Arc<Leading>> {
    let topics = shared.topics.now();
    let partitions = topics.all().flat_map(|topic| topic.partitions.iter());
    partitions.filter_map(|partition| partition.leading.clone()).collect()
}
