//! The leader's side of replication: what `replica/progress` decides, tied to logs and requests. What runs beside them is in
//! `upkeep/replication`.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Replication`]: what all led partitions share |
//! | [`failure`] | that a leader's log cannot be written |
//! | [`leader_state`] | one partition that this broker leads and others copy, in one epoch |
//! | [`leader_slot`] | the leader of a log now, for the log's listeners |
//! | [`proposals`] | which partitions have an ISR to be stored |
//! | [`nearest`] | which replica a consumer should read from |
//!
//! A partition with one replica has none of this: its [`Partition::leader_state`] is `None`.
//!
//! [`Partition::leader_state`]: super::topics::Partition::leading
pub mod failure;
pub mod leader_slot;
pub mod leader_state;
pub mod nearest;
pub mod proposals;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::runtime::Handle;

use self::failure::Failure;
use self::proposals::Proposals;
use crate::cluster::view::Cluster;
use crate::settings::Settings;
use pylog_replica::throttle::Throttle;

/// What all partitions share that this broker leads and others copy.
pub struct Replication {
    /// This broker.
    pub node_id: i32,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
    /// ISRs to be stored.
    pub proposals: Proposals,
    /// Why this broker should not lead.
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

    /// Leaders' work that must not be done under locks is done in the caller's runtime from now on.
    pub fn start(&self) {
        // A server listens once.
        let _ = self.runtime.set(Handle::current());
    }

    /// Runs `work` on another thread; in the caller's own before the server listens, when no request can wait for it.
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
