//! A test bed for replication: brokers in this process, and a control plane that keeps topics, stores the in-sync sets that
//! leaders propose by compare-and-set on the partition epoch, and tells every broker.
//!
//! `Bed::start(&[1], &[1, 2, 3])` runs broker 1 for real; 2 and 3 are only registered, so that the test speaks for them: as
//! [`Follower`], or not at all. `Bed::start(&[1, 2, 3], &[1, 2, 3])` runs all three. `bed.serve(spec(...))` makes a topic,
//! `bed.change` and `bed.elect` write its document, `bed.announce` says who lives. Broker `id` is registered with epoch
//! `id + 100` and stands in rack `rack-id`. `Bed::all(3)` runs brokers 1, 2, 3, and `led_by` makes topics without copies.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use pylog_server::Server;
use pylog_server::cluster::spec::{PartitionSpec, TopicSpec};
use pylog_server::cluster::view::{Broker as Live, ClusterView, Endpoint, Level};
use pylog_server::decide::{Decider, Question};
use pylog_server::settings::Settings;
use pylog_server::state::topics::Partition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic, PartitionData, ReplicaState};
use pylog_wire::messages::{FetchRequest, FetchResponse};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::support::{Broker, Client, TIMEOUT, only, topic};

/// What becomes of proposals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are stored, or refused for their epochs.
    Stores,
    /// Refused.
    Refuses(ErrorCode),
    /// Stored, but never answered.
    Forgets,
}

/// The documents, and the brokers that get them.
pub struct Control {
    topics: Mutex<BTreeMap<String, TopicSpec>>,
    servers: Mutex<BTreeMap<i32, Weak<Server>>>,
    mode: Mutex<Mode>,
    /// Questions so far.
    pub asked: Mutex<Vec<Value>>,
}

/// What a leader asks through its broker.
struct AskedBy(Arc<Control>);

impl Decider for AskedBy {
    fn ask(&self, question: Question) {
        let control = Arc::clone(&self.0);
        // The asker must not block, and applying topics takes time.
        std::thread::spawn(move || control.answer(question));
    }
}

impl Control {
    fn answer(&self, question: Question) {
        let asked: Value = serde_json::from_str(&question.json).unwrap();
        self.asked.lock().unwrap().push(asked.clone());
        let mode = *self.mode.lock().unwrap();
        let mut answers = Vec::new();
        for proposal in asked["partitions"].as_array().unwrap() {
            let error = match mode {
                Mode::Refuses(error) => error,
                Mode::Stores | Mode::Forgets => self.store(proposal),
            };
            let (topic, partition) = (&proposal["topic"], &proposal["partition"]);
            answers.push(json!({"topic": topic, "partition": partition, "error_code": error.code()}));
        }
        if mode != Mode::Forgets {
            let _ = question.reply.send(json!({ "partitions": answers }).to_string());
        }
    }

    fn store(&self, proposal: &Value) -> ErrorCode {
        let ids =
            |value: &Value| value.as_array().unwrap().iter().map(|id| id.as_i64().unwrap() as i32).collect();
        let (name, number) =
            (proposal["topic"].as_str().unwrap(), proposal["partition"].as_u64().unwrap() as usize);
        let mut topics = self.topics.lock().unwrap();
        let Some(spec) = topics.get_mut(name) else { return ErrorCode::UnknownTopicOrPartition };
        let partition = &mut spec.partitions[number];
        if proposal["leader_epoch"] != partition.leader_epoch {
            return ErrorCode::FencedLeaderEpoch;
        }
        if proposal["partition_epoch"] != partition.partition_epoch {
            return ErrorCode::InvalidUpdateVersion;
        }
        partition.isr = ids(&proposal["new_isr"]);
        partition.partition_epoch += 1;
        let spec = spec.clone();
        drop(topics);
        self.apply(&spec);
        ErrorCode::None
    }

    fn apply(&self, spec: &TopicSpec) {
        let servers: Vec<_> = self.servers.lock().unwrap().values().filter_map(Weak::upgrade).collect();
        for server in servers {
            server.apply_topics(vec![spec.clone()]).unwrap();
        }
    }
}

/// The endpoints of a broker that listens at `port`.
pub fn at(port: u16) -> BTreeMap<String, Endpoint> {
    BTreeMap::from([("PLAINTEXT".to_owned(), Endpoint("127.0.0.1".into(), port))])
}

/// See the file.
pub struct Bed {
    pub brokers: BTreeMap<i32, Broker>,
    pub control: Arc<Control>,
    /// Ports by which others reach a broker, where it is not its own.
    reached: Mutex<BTreeMap<i32, u16>>,
    /// The cluster's, when it has one.
    level: Mutex<Option<Level>>,
}

impl Bed {
    /// Runs brokers 1 to `count`.
    pub fn all(count: i32) -> Self {
        Self::all_with(count, |_| {})
    }

    /// As [`Bed::all`], with settings changed by `change`.
    pub fn all_with(count: i32, change: impl Fn(&mut Settings)) -> Self {
        let ids: Vec<_> = (1..=count).collect();
        Self::with(&ids, &ids, change)
    }

    /// Runs the brokers `real`; all of `registered` are announced as alive.
    pub fn start(real: &[i32], registered: &[i32]) -> Self {
        Self::with(real, registered, |_| {})
    }

    /// As [`Bed::start`], with settings changed by `change`.
    pub fn with(real: &[i32], registered: &[i32], change: impl Fn(&mut Settings)) -> Self {
        let control = Arc::new(Control {
            topics: Mutex::default(),
            servers: Mutex::default(),
            mode: Mutex::new(Mode::Stores),
            asked: Mutex::default(),
        });
        let start = |&node_id: &i32| {
            let rack = Some(format!("rack-{node_id}"));
            let mut settings = Settings { node_id, rack, clustered: true, ..Settings::default() };
            change(&mut settings);
            let broker = Broker::with(settings);
            *broker.decisions.control.lock().unwrap() = Some(Arc::new(AskedBy(Arc::clone(&control))));
            control.servers.lock().unwrap().insert(node_id, Arc::downgrade(&broker.server));
            (node_id, broker)
        };
        let bed = Self {
            brokers: real.iter().map(start).collect(),
            control,
            reached: Mutex::default(),
            level: Mutex::default(),
        };
        bed.announce(registered);
        bed
    }

    /// Announces to all who lives, that broker 1 controls, and that they may lead for an hour.
    pub fn announce(&self, registered: &[i32]) {
        self.announce_with_controller(registered, 1);
    }

    /// As [`Bed::announce`], with another controller.
    pub fn announce_with_controller(&self, registered: &[i32], controller_id: i32) {
        let reached = self.reached.lock().unwrap().clone();
        let live = |&id: &i32| Live {
            id,
            // Nobody listens for a broker that does not run.
            endpoints: at(reached
                .get(&id)
                .copied()
                .unwrap_or_else(|| self.brokers.get(&id).map_or(1, |broker| broker.port))),
            rack: Some(format!("rack-{id}")),
            epoch: i64::from(id) + 100,
        };
        let view = ClusterView {
            controller_id,
            brokers: registered.iter().map(live).collect(),
            level: *self.level.lock().unwrap(),
            ..Default::default()
        };
        for broker in self.brokers.values() {
            broker.server.apply_cluster(view.clone());
            broker.server.lease_until(Duration::from_secs(3600));
        }
    }

    /// The brokers are of this level from the next announcement on.
    pub fn raise(&self, now: i16) {
        *self.level.lock().unwrap() = Some(Level { now, min: 1, max: now });
    }

    /// From the next announcement on others reach broker `id` at `port`.
    pub fn reach(&self, id: i32, port: u16) {
        self.reached.lock().unwrap().insert(id, port);
    }

    /// Stops broker `id` and starts it anew on its data, at another port, with all topics. It may lead for an hour.
    pub fn restart(&mut self, id: i32, registered: &[i32]) {
        let broker = self.brokers.get_mut(&id).unwrap();
        broker.restart();
        self.control.servers.lock().unwrap().insert(id, Arc::downgrade(&broker.server));
        let topics = self.control.topics.lock().unwrap().values().cloned().collect();
        broker.server.apply_topics(topics).unwrap();
        self.announce(registered);
    }

    /// The broker with this number.
    pub fn broker(&self, id: i32) -> &Broker {
        &self.brokers[&id]
    }

    /// From now on proposals are treated so.
    pub fn mode(&self, mode: Mode) {
        *self.control.mode.lock().unwrap() = mode;
    }

    /// Makes a topic.
    pub fn serve(&self, spec: TopicSpec) -> Uuid {
        self.control.topics.lock().unwrap().insert(spec.name.clone(), spec.clone());
        self.control.apply(&spec);
        spec.topic_id
    }

    /// Writes partition 0 of the topic.
    pub fn change(&self, name: &str, change: impl Fn(&mut PartitionSpec)) {
        self.change_one(name, 0, change);
    }

    /// Writes partition `number` of the topic.
    pub fn change_one(&self, name: &str, number: usize, change: impl Fn(&mut PartitionSpec)) {
        let mut topics = self.control.topics.lock().unwrap();
        let spec = topics.get_mut(name).unwrap();
        change(&mut spec.partitions[number]);
        spec.partitions[number].partition_epoch += 1;
        let spec = spec.clone();
        drop(topics);
        self.control.apply(&spec);
    }

    /// Another leader for partition 0.
    pub fn elect(&self, name: &str, leader: i32) {
        self.change(name, |partition| {
            partition.leader = leader;
            partition.leader_epoch += 1;
        });
    }

    /// The stored ISR of partition 0.
    pub fn isr(&self, name: &str) -> Vec<i32> {
        self.control.topics.lock().unwrap()[name].partitions[0].isr.clone()
    }

    /// Partition 0 as broker `id` has it.
    pub fn partition(&self, id: i32, name: &str) -> Arc<Partition> {
        let topics = self.brokers[&id].server.shared().topics.now();
        Arc::clone(topics.named(name).unwrap().partition(0).unwrap())
    }
}

/// Waits until `holds`.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// A topic with one partition, led by broker 1 in epoch 3, with these replicas in sync among `replicas`.
pub fn spec(name: &str, replicas: &[i32], isr: &[i32], min_isr: usize) -> TopicSpec {
    let partition = PartitionSpec {
        partition: 0,
        leader: 1,
        leader_epoch: 3,
        replicas: replicas.to_vec(),
        isr: isr.to_vec(),
        ..Default::default()
    };
    let mut spec = TopicSpec { partitions: vec![partition], ..topic(name, 0) };
    spec.config.min_insync_replicas = min_isr;
    spec
}

/// A topic without copies: partition i is led by `leaders[i]`.
pub fn led_by(name: &str, leaders: &[i32]) -> TopicSpec {
    let partitions = leaders.iter().enumerate().map(|(number, &leader)| PartitionSpec {
        partition: i32::try_from(number).unwrap(),
        leader,
        leader_epoch: 3,
        replicas: vec![leader],
        isr: vec![leader],
        ..Default::default()
    });
    let internal = name.starts_with("__");
    TopicSpec { internal, partitions: partitions.collect(), ..topic(name, 0) }
}

/// A broker that is not there: the test fetches in its name.
pub struct Follower {
    pub client: Client,
    pub id: i32,
    pub epoch: i64,
    pub leader_epoch: i32,
    pub topic_id: Uuid,
}

impl Follower {
    pub fn of(bed: &Bed, leader: i32, id: i32, topic_id: Uuid) -> Self {
        let client = bed.brokers[&leader].client();
        Self { client, id, epoch: i64::from(id) + 100, leader_epoch: 3, topic_id }
    }

    /// A request from `offset` on; the last record it has is of epoch `last_epoch`.
    pub fn request(&self, offset: i64, last_epoch: i32, max_wait_ms: i32) -> FetchRequest {
        let partitions = vec![FetchPartition {
            current_leader_epoch: self.leader_epoch,
            fetch_offset: offset,
            last_fetched_epoch: last_epoch,
            log_start_offset: 0,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        }];
        FetchRequest {
            replica_state: ReplicaState { replica_id: self.id, replica_epoch: self.epoch },
            max_wait_ms,
            min_bytes: 1,
            topics: vec![FetchTopic { topic_id: self.topic_id, partitions, ..Default::default() }],
            ..Default::default()
        }
    }

    /// Fetches from `offset`, waiting for nothing.
    pub fn fetch(&mut self, offset: i64) -> PartitionData {
        let last_epoch = if offset == 0 { -1 } else { self.leader_epoch };
        let request = self.request(offset, last_epoch, 0);
        only(self.client.call(&request, 17))
    }

    /// As [`Follower::fetch`], having records of epoch `last_epoch`.
    pub fn fetch_from(&mut self, offset: i64, last_epoch: i32) -> PartitionData {
        let request = self.request(offset, last_epoch, 0);
        only(self.client.call(&request, 17))
    }

    /// The whole answer to a fetch from `offset`.
    pub fn answer(&mut self, offset: i64) -> FetchResponse {
        let request = self.request(offset, -1, 0);
        self.client.call(&request, 17)
    }
}
