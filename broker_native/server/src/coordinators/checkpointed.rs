//! How far the groups of `retention.until.checkpointed` are in the partitions that are led here: what retention may remove.
//!
//! Each group's coordinator is asked, here or at the broker that has it, for the committed offsets of all partitions at once. While one does
//! not answer, what was known stays: offsets hardly ever go back, and retention removes too little at worst.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::cluster::peers::Peers;
use crate::cluster::view::Cluster;
use crate::coordinators::Coordinator;
use crate::shutdown::Shutdown;
use crate::state::topics::Topics;
use crate::upkeep::background::kept_running;
use pylog_coordinator::group::{GroupEvent, GroupMachine, GroupReply, GroupRequest};
use pylog_coordinator::machine::Caller;
use pylog_log::loggers::STORAGE;
use pylog_log::warn;
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::OffsetFetchRequest;
use pylog_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
};

/// The longest pause between two looks.
const EVERY_MAX: Duration = Duration::from_secs(30);
/// Most partitions that one request asks about.
const ASKED_MAX: usize = 10_000;
/// Of the request to a machine of this broker; topics have their names in it.
const VERSION: i16 = 9;

/// See the module.
pub struct Checkpointed {
    /// This broker.
    pub node_id: i32,
    /// What is led here.
    pub topics: Arc<Topics>,
    /// The groups that are kept here.
    pub groups: Arc<Coordinator<GroupMachine>>,
    /// The way to those of other brokers.
    pub peers: Arc<Peers>,
    /// Whether this broker may lead.
    pub cluster: Arc<Cluster>,
    /// How often retention is applied.
    pub every: Duration,
    /// Ends it.
    pub shutdown: Arc<Shutdown>,
}

/// A partition that is led here, and which groups it is kept for.
struct Kept {
    topic: String,
    topic_id: Uuid,
    partition: i32,
    groups: Vec<String>,
    log: Arc<PartitionLog>,
}

type Committed = HashMap<(Uuid, i32), i64>;

impl Checkpointed {
    /// Starts it; inside the runtime.
    pub fn start(self) {
        let me = Arc::new(self);
        tokio::spawn(kept_running("the look for what groups need", move || {
            let me = Arc::clone(&me);
            async move { me.run().await }
        }));
    }

    async fn run(&self) {
        let every = self.every.min(EVERY_MAX);
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.shutdown.wait() => return,
            }
            let kept = self.kept();
            if !kept.is_empty() {
                self.look(&kept).await;
            }
        }
    }

    /// The partitions that are led here, of topics that are kept for groups. Of others nothing is known any more.
    fn kept(&self) -> Vec<Kept> {
        let topics = self.topics.now();
        let mut found = Vec::new();
        for topic in topics.all() {
            for partition in &topic.partitions {
                let Ok(log) = &partition.log else { continue };
                let config = log.config();
                if !config.keeps_for_groups() {
                    continue;
                }
                if partition.spec.leader != self.node_id || !self.cluster.may_lead() {
                    log.set_needed_from(0);
                    continue;
                }
                found.push(Kept {
                    topic: topic.name.clone(),
                    topic_id: topic.id,
                    partition: partition.spec.partition,
                    groups: config.retention_until_checkpointed.0.clone(),
                    log: Arc::clone(log),
                });
            }
        }
        found
    }

    async fn look(&self, kept: &[Kept]) {
        let mut wanted: BTreeMap<&str, Vec<&Kept>> = BTreeMap::new();
        for each in kept {
            each.groups.iter().for_each(|group| wanted.entry(group).or_default().push(each));
        }
        let mut found: HashMap<&str, Committed> = HashMap::new();
        for (group, of_group) in wanted {
            match self.committed(group, &of_group).await {
                Ok(committed) => {
                    found.insert(group, committed);
                }
                Err(code) => warn!(
                    target: STORAGE, group = %group,
                    "how far the group {group} is cannot be found out ({}): what retention.until.checkpointed keeps for it stays as it is",
                    code.name()
                ),
            }
        }
        for each in kept {
            let offsets: Option<Vec<i64>> = each
                .groups
                .iter()
                .map(|group| {
                    let committed = found.get(group.as_str())?.get(&(each.topic_id, each.partition));
                    Some(committed.copied().unwrap_or(0).max(0))
                })
                .collect();
            if let Some(needed) = offsets.and_then(|offsets| offsets.into_iter().min()) {
                each.log.set_needed_from(needed);
            }
        }
    }

    /// The offsets that a group has committed, of those partitions of which it has.
    async fn committed(&self, group: &str, of_group: &[&Kept]) -> Result<Committed, ErrorCode> {
        let mut found = Committed::new();
        for some in of_group.chunks(ASKED_MAX) {
            let mut topics: BTreeMap<(&str, Uuid), Vec<i32>> = BTreeMap::new();
            for each in some {
                topics.entry((&each.topic, each.topic_id)).or_default().push(each.partition);
            }
            let ids: HashMap<&str, Uuid> = topics.keys().copied().collect();
            let topics = topics.iter().map(|((name, topic_id), partitions)| OffsetFetchRequestTopics {
                name: (*name).to_owned(),
                topic_id: *topic_id,
                partition_indexes: partitions.clone(),
            });
            let asked = OffsetFetchRequestGroup {
                group_id: group.to_owned(),
                topics: Some(topics.collect()),
                ..Default::default()
            };
            let answer = self.ask(group, asked).await?;
            if answer.error_code != ErrorCode::None.code() {
                return Err(code(answer.error_code));
            }
            for topic in answer.topics {
                let id = if topic.topic_id.is_nil() {
                    ids.get(topic.name.as_str())
                } else {
                    Some(&topic.topic_id)
                };
                for partition in topic.partitions {
                    if partition.error_code != ErrorCode::None.code() {
                        return Err(code(partition.error_code));
                    }
                    if let Some(id) = id {
                        found.insert((*id, partition.partition_index), partition.committed_offset);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Asks the group's coordinator. Errors: those of the coordinator; COORDINATOR_NOT_AVAILABLE when there is none, or it does not answer.
    async fn ask(
        &self,
        group: &str,
        asked: OffsetFetchRequestGroup,
    ) -> Result<OffsetFetchResponseGroup, ErrorCode> {
        // Without the topic nobody has committed anything.
        let Some(number) = self.groups.partition_of(group) else { return Ok(Default::default()) };
        let image = self.topics.now();
        let keeper = image.named(self.groups.topic()).and_then(|topic| topic.partition(number));
        let keeper = keeper.map_or(-1, |partition| partition.spec.leader);
        if keeper == self.node_id {
            let caller = Caller { version: VERSION, ..Caller::default() };
            let request = GroupRequest::OffsetFetch { group: asked, require_stable: false };
            return match self.groups.call(group, |ticket| GroupEvent { ticket, caller, request }).await? {
                GroupReply::OffsetFetch(answer) => Ok(answer),
                _ => Err(ErrorCode::UnknownServerError),
            };
        }
        let request = OffsetFetchRequest { groups: vec![asked], ..Default::default() };
        let answer = self.peers.call(keeper, &request).await.map_err(|error| error.of_coordinator())?;
        answer.groups.into_iter().next().ok_or(ErrorCode::UnknownServerError)
    }
}

fn code(number: i16) -> ErrorCode {
    ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError)
}
