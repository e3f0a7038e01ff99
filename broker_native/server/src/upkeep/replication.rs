//! What runs beside the connections for partitions that are led here and copied elsewhere.
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::alter_partition::ProposalSender;
use super::background::kept_running;
use super::storage_failure::FailureReport;
use crate::cluster::view::Cluster;
use crate::shutdown::Shutdown;
use crate::state::replication::Replication;
use crate::state::topics::Topics;

/// Starts it all; inside the runtime.
pub fn start(sender: ProposalSender, report: FailureReport, laggards: Laggards) {
    sender.replication.start();
    let (sender, report, laggards) = (Arc::new(sender), Arc::new(report), Arc::new(laggards));
    tokio::spawn(kept_running("changes of in-sync replicas", move || {
        let sender = Arc::clone(&sender);
        async move { sender.run().await }
    }));
    tokio::spawn(kept_running("the report of a failed disk", move || {
        let report = Arc::clone(&report);
        async move { report.run().await }
    }));
    tokio::spawn(kept_running("the look for slow followers", move || {
        let laggards = Arc::clone(&laggards);
        async move { laggards.run().await }
    }));
}

/// Looks for followers that do not keep up.
pub struct Laggards {
    /// How long a follower may be behind.
    pub replication: Arc<Replication>,
    /// What is led here.
    pub topics: Arc<Topics>,
    /// Whether this broker may lead.
    pub cluster: Arc<Cluster>,
    /// Ends it.
    pub shutdown: Arc<Shutdown>,
}

impl Laggards {
    /// Twice per `replica.lag.time.max.ms` looks for followers that do not keep up.
    async fn run(&self) {
        let lag_max_ms = u64::try_from(self.replication.lag_max_ms).unwrap_or(0);
        let every = Duration::from_millis((lag_max_ms / 2).max(1));
        loop {
            let slept = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.shutdown.wait() => return,
            }
            // This process itself did not run (SIGSTOP): requests that its followers sent meanwhile are still unread.
            let overslept = slept.elapsed() > 2 * every;
            if !overslept && self.cluster.may_lead() {
                self.topics.led().iter().for_each(|leader_state| leader_state.lagging());
            }
        }
    }
}
