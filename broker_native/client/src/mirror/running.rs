//! A mirror that runs: a thread for each broker of the source that leads something.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::lane::Lane;
use super::progress::{Progress, Shared};
use crate::config::Settings;
use crate::error::{ClientError, Owner, Result};
use crate::metadata::cluster::Cluster;
use crate::metadata::topic_partition::TopicPartition;

/// See the module. Belongs to the process that made it.
#[derive(Debug)]
pub struct Mirror {
    from: Settings,
    to: Settings,
    shared: Arc<Shared>,
    lanes: BTreeMap<i32, JoinHandle<()>>,
    owner: Owner,
}

impl Mirror {
    /// Copies nothing yet. `source_id` is the id of the cluster that `from` leads to.
    pub fn new(from: Settings, to: Settings, source_id: String, bytes_per_second: Option<u64>) -> Self {
        let shared = Arc::new(Shared::new(source_id, bytes_per_second));
        Self { from, to, shared, lanes: BTreeMap::new(), owner: Owner::current() }
    }

    /// Copies these partitions from now on, each with the broker that leads it (-1: none now), and no others.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for servers that are none; `FORKED`.
    pub fn assign(&mut self, wanted: Vec<(TopicPartition, i32)>) -> Result<()> {
        self.owner.check("mirror")?;
        let leaders: Vec<i32> =
            wanted.iter().map(|(_, leader)| *leader).filter(|leader| *leader >= 0).collect();
        self.shared.assign(wanted);
        for leader in leaders {
            if self.lanes.get(&leader).is_some_and(|lane| !lane.is_finished()) {
                continue;
            }
            let cluster = |settings: &Settings| Cluster::new(settings.clone(), self.shared.stop.clone());
            let (source, target) = (cluster(&self.from)?, cluster(&self.to)?);
            let lane = Lane { leader, source, target, shared: Arc::clone(&self.shared) };
            let named = std::thread::Builder::new().name(format!("pylog-mirror-{leader}"));
            let started = named.spawn(move || lane.run()).map_err(|_| ClientError::internal("mirror"))?;
            self.lanes.insert(leader, started);
        }
        Ok(())
    }

    /// How far each partition is.
    pub fn progress(&self) -> Vec<(TopicPartition, Progress)> {
        self.shared.all()
    }

    /// What keeps lanes from going on.
    pub fn failures(&self) -> Vec<ClientError> {
        self.shared.failures()
    }

    /// Whether leaders of the source are to be looked for.
    pub fn take_stale(&self) -> bool {
        self.shared.take_stale()
    }

    /// Ends all lanes, wherever they are, and waits for them.
    pub fn stop(&mut self) {
        if self.owner.check("mirror").is_err() {
            // The threads are the parent's.
            std::mem::take(&mut self.lanes).into_values().for_each(std::mem::forget);
            return;
        }
        self.shared.stop.stop();
        for lane in std::mem::take(&mut self.lanes).into_values() {
            // A lane that panicked has ended, too.
            let _ = lane.join();
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.stop();
    }
}
