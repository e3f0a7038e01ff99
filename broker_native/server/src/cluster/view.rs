//! The other brokers, as Python reports them: which ones are alive and where, which one is the controller, and until when this
//! broker may lead.
//!
//! A broker without a cluster (the file store) is alone: it is its own controller and its lease never ends. In a cluster the
//! lease is given by Python for as long as the session with ZooKeeper surely lives; it runs out by the monotonic clock, so that
//! a broker that was stopped (SIGSTOP) or cut off leads nothing any more before anybody else can be elected.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use serde::Deserialize;

/// How often the lease is checked: it may be taken away before it runs out.
const LEASE_LOOK: Duration = Duration::from_millis(250);

/// Where a listener of a broker is reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Endpoint(
    /// Name or number.
    pub String,
    /// Port.
    pub u16,
);

/// A broker that belongs to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// Its number.
    pub id: i32,
    /// Where clients and other brokers reach it, by the name of its listener.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Its rack, when it has one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub rack: Option<String>,
    /// Of its registration; a restarted broker has a larger one.
    pub epoch: i64,
}

/// The brokers at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterView {
    /// The controller, -1 when there is none.
    pub controller_id: i32,
    /// Grows with each election of a controller.
    pub controller_epoch: i32,
    /// All live brokers by number, this one included.
    pub brokers: Vec<Broker>,
    /// Those that belong to the cluster and do not live; their epochs mean nothing.
    pub dead: Vec<Broker>,
    /// The cluster's level.
    #[serde(deserialize_with = "Option::deserialize")]
    pub level: Option<Level>,
}

/// What all brokers of the cluster understand, and what this one could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The cluster's.
    pub now: i16,
    /// The lowest that this broker understands.
    pub min: i16,
    /// And the highest.
    pub max: i16,
}

impl ClusterView {
    /// The live broker with this number.
    pub fn broker(&self, id: i32) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.id == id)
    }
}

/// See the module.
pub struct Cluster {
    view: RwLock<Arc<ClusterView>>,
    clustered: bool,
    began: Instant,
    /// Milliseconds after `began`.
    lease_ends_ms: AtomicU64,
}

impl Cluster {
    /// `clustered`: there may be others, and the lease is over until Python extends it.
    pub fn new(clustered: bool) -> Self {
        let ends = if clustered { 0 } else { u64::MAX };
        Self {
            view: RwLock::default(),
            clustered,
            began: Instant::now(),
            lease_ends_ms: AtomicU64::new(ends),
        }
    }

    /// Whether there may be other brokers.
    pub fn is_clustered(&self) -> bool {
        self.clustered
    }

    /// The live brokers now.
    pub fn now(&self) -> Arc<ClusterView> {
        Arc::clone(&self.view.read())
    }

    /// Replaces the view.
    pub fn apply(&self, view: ClusterView) {
        *self.view.write() = Arc::new(view);
    }

    /// The clock of the lease.
    pub fn lease_clock(&self) -> Duration {
        self.began.elapsed()
    }

    /// This broker may lead until the lease's clock shows `until`; zero ends it at once.
    pub fn lease_until(&self, until: Duration) {
        if self.clustered {
            self.lease_ends_ms.store(millis(until), Ordering::Release);
        }
    }

    /// Returns when this broker may no longer act as a leader; that a lease was taken away is noticed within [`LEASE_LOOK`].
    pub async fn lease_over(&self) {
        if !self.clustered {
            return std::future::pending().await;
        }
        while self.may_lead() {
            let ends = Duration::from_millis(self.lease_ends_ms.load(Ordering::Acquire));
            // It ends with a whole millisecond.
            let left = ends.saturating_sub(self.began.elapsed()).max(Duration::from_millis(1));
            tokio::time::sleep(left.min(LEASE_LOOK)).await;
        }
    }

    /// Whether this broker may act as a leader now.
    pub fn may_lead(&self) -> bool {
        !self.clustered || millis(self.began.elapsed()) < self.lease_ends_ms.load(Ordering::Acquire)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_is_alone_always_leads() {
        let cluster = Cluster::new(false);
        cluster.lease_until(Duration::ZERO);
        assert!(cluster.may_lead());
    }

    #[test]
    fn in_a_cluster_a_broker_leads_only_while_its_lease_lasts() {
        let cluster = Cluster::new(true);
        assert!(!cluster.may_lead());
        cluster.lease_until(cluster.lease_clock() + Duration::from_secs(3600));
        assert!(cluster.may_lead());
        cluster.lease_until(Duration::ZERO);
        assert!(!cluster.may_lead());
    }

    #[test]
    fn a_lease_that_is_set_late_ends_when_it_was_measured_to_end() {
        let cluster = Cluster::new(true);
        let measured = cluster.lease_clock();
        std::thread::sleep(Duration::from_millis(2));
        cluster.lease_until(measured + Duration::from_millis(1));
        assert!(!cluster.may_lead());
    }
}
