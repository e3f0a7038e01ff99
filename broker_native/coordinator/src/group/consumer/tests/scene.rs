//! A group on a stage: its log, the clock, the topics, and clients that do what Kafka's do.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::group::consumer::{self, AssignedPartitions, ConsumerChange, ConsumerGroup};
use crate::group::context::{GroupContext, Settings, TimerKey, TopicsView};
use crate::group::requests::{GroupReply, GroupRequest};
use crate::group::{Group, GroupKind};
use crate::{Caller, Effects, Record, Room, Ticket, Timers};
use pylog_wire::ErrorCode;
use pylog_wire::messages::consumer_group_heartbeat::TopicPartitions;
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use pylog_wire::stored::type_and_name;

pub const GROUP: &str = "group";

/// Topics that a test makes, grows and deletes.
#[derive(Default)]
pub struct FakeTopics {
    by_name: Mutex<BTreeMap<String, (Uuid, i32)>>,
    version: AtomicU64,
    made: AtomicU64,
}

impl FakeTopics {
    /// Makes a topic, or grows it.
    pub fn set(&self, name: &str, partitions: i32) -> Uuid {
        self.version.fetch_add(1, Ordering::Relaxed);
        let mut by_name = self.by_name.lock();
        let fresh = || Uuid::from_u128(u128::from(self.made.fetch_add(1, Ordering::Relaxed)) + 1);
        let topic = by_name.entry(name.to_owned()).or_insert_with(|| (fresh(), 0));
        topic.1 = partitions;
        topic.0
    }

    pub fn delete(&self, name: &str) {
        self.version.fetch_add(1, Ordering::Relaxed);
        self.by_name.lock().remove(name);
    }
}

impl TopicsView for FakeTopics {
    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
    fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        self.by_name.lock().get(name).copied()
    }
    fn topic_with_id(&self, id: &Uuid) -> Option<(String, i32)> {
        self.by_name
            .lock()
            .iter()
            .find(|(_, (other, _))| other == id)
            .map(|(name, (_, n))| (name.clone(), *n))
    }
    fn names(&self) -> Vec<String> {
        self.by_name.lock().keys().cloned().collect()
    }
}

pub struct Scene {
    pub group: Group,
    pub topics: Arc<FakeTopics>,
    pub settings: Settings,
    pub now_ms: i64,
    pub log: Vec<Record>,
    timers: Timers<TimerKey>,
    fresh: u64,
}

impl Scene {
    pub fn new() -> Self {
        Self {
            group: Group::default(),
            topics: Arc::default(),
            settings: Settings::default(),
            now_ms: 1_000_000,
            log: Vec::new(),
            timers: Timers::default(),
            fresh: 0,
        }
    }

    /// With one topic, `foo`.
    pub fn with_topic(partitions: i32) -> Self {
        let scene = Self::new();
        scene.topics.set("foo", partitions);
        scene
    }

    pub fn id(&self, topic: &str) -> Uuid {
        self.topics.topic(topic).expect("the topic exists").0
    }

    fn step(
        &mut self,
        step: impl FnOnce(&mut Group, &mut GroupContext<'_>),
    ) -> (Vec<GroupReply>, Vec<Record>) {
        let mut effects = Effects::default();
        let topics: Arc<dyn TopicsView> = Arc::clone(&self.topics) as _;
        let mut cx = GroupContext {
            group_id: GROUP,
            now_ms: self.now_ms,
            steady_ms: self.now_ms,
            settings: &self.settings,
            room: &Room::new(usize::MAX, || {}),
            topics: &topics,
            timers: &mut self.timers,
            effects: &mut effects,
        };
        step(&mut self.group, &mut cx);
        self.log.extend(effects.records.iter().cloned());
        self.check();
        (effects.replies.into_iter().map(|(_, reply)| reply).collect(), effects.records)
    }

    /// What must hold after every step.
    fn check(&self) {
        let mut owners: BTreeMap<(Uuid, i32), &str> = BTreeMap::new();
        if let GroupKind::Consumer(group) = &self.group.kind {
            for member in group.members.values() {
                for partition in member.owned() {
                    let other = owners.insert(partition, &member.member_id);
                    assert_eq!(other, None, "{partition:?} is owned by two, {} too", member.member_id);
                }
            }
            for target in group.targets.keys() {
                assert!(group.members.contains_key(target), "a target of nobody: {target}");
            }
        }
        let replayed = self.replayed();
        match (&self.group.kind, &replayed.kind) {
            (GroupKind::Consumer(live), GroupKind::Consumer(replayed)) => {
                assert_eq!(live.durable(), replayed.durable())
            }
            (GroupKind::Simple, GroupKind::Simple) => {}
            (live, replayed) => panic!("{live:?} is replayed as {replayed:?}"),
        }
    }

    /// The group as its log gives it.
    pub fn replayed(&self) -> Group {
        let mut group = Group::default();
        for record in &self.log {
            let (key_type, group_id) = type_and_name(&record.key).expect("a key");
            assert_eq!(group_id, GROUP);
            consumer::replay(&mut group, key_type, record).expect("it can be replayed");
        }
        group
    }

    /// The coordinator dies and another loads the log.
    pub fn restart(&mut self) {
        self.group = self.replayed();
        self.timers = Timers::default();
        self.step(consumer::loaded);
    }

    pub fn ask(&mut self, request: GroupRequest, version: i16) -> (GroupReply, Vec<Record>) {
        let who = Caller { client_id: "client".into(), host: "/127.0.0.1".into(), version };
        let (mut replies, records) =
            self.step(|group, cx| consumer::handle(group, Ticket(1), &who, request, cx));
        assert_eq!(replies.len(), 1);
        (replies.remove(0), records)
    }

    pub fn beat(&mut self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        self.beat_writing(request, 1).0
    }

    /// The answer, and what was written.
    pub fn beat_writing(
        &mut self,
        request: ConsumerGroupHeartbeatRequest,
        version: i16,
    ) -> (ConsumerGroupHeartbeatResponse, Vec<ConsumerChange>) {
        self.fresh += 1;
        let fresh_member_id = format!("fresh-{}", self.fresh);
        let (reply, records) =
            self.ask(GroupRequest::ConsumerHeartbeat { request, fresh_member_id }, version);
        let GroupReply::ConsumerHeartbeat(answer) = reply else { panic!("{reply:?}") };
        let changes = records.iter().map(|record| {
            let (key_type, _) = type_and_name(&record.key).expect("a key");
            ConsumerChange::read(key_type, record).expect("a record").expect("of use")
        });
        let changes = changes.collect();
        (answer, changes)
    }

    /// The error of a heartbeat that must not change anything.
    pub fn refused(&mut self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode {
        let (answer, changes) = self.beat_writing(request, 1);
        assert_eq!(changes, [], "a refused heartbeat writes nothing");
        let error = ErrorCode::from_code(answer.error_code).expect("known");
        assert_ne!(error, ErrorCode::None, "{answer:?}");
        assert!(
            answer.error_message.is_some_and(|message| message.ends_with('.')),
            "{error:?} with a sentence"
        );
        error
    }

    /// Time passes; what is due happens.
    pub fn pass(&mut self, ms: i64) {
        let end = self.now_ms + ms;
        while let Some(due) = self.timers.next_ms().filter(|due| *due <= end) {
            self.now_ms = self.now_ms.max(due);
            let Some(key) = self.timers.pop_due(due) else { continue };
            self.step(|group, cx| consumer::timer(group, &key.member_id, key.purpose, cx));
        }
        self.now_ms = end;
    }

    pub fn members(&self) -> &ConsumerGroup {
        match &self.group.kind {
            GroupKind::Consumer(group) => group,
            other => panic!("{other:?}"),
        }
    }

    pub fn state(&self) -> &'static str {
        self.group.kind.state_name()
    }
}

/// A join of `member_id`.
pub fn join(member_id: &str, topics: &[&str]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: GROUP.into(),
        member_id: member_id.into(),
        rebalance_timeout_ms: 5_000,
        subscribed_topic_names: Some(topics.iter().map(|name| (*name).to_owned()).collect()),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    }
}

/// A heartbeat that says nothing new.
pub fn stay(member_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: GROUP.into(),
        member_id: member_id.into(),
        member_epoch,
        ..Default::default()
    }
}

/// The same, saying what the member owns.
pub fn owning(member_id: &str, member_epoch: i32, owned: &[(Uuid, &[i32])]) -> ConsumerGroupHeartbeatRequest {
    let topics = owned.iter().map(|(topic_id, partitions)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.to_vec(),
    });
    ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(topics.collect()),
        ..stay(member_id, member_epoch)
    }
}

/// What an answer assigns.
pub fn assigned(answer: &ConsumerGroupHeartbeatResponse) -> Option<AssignedPartitions> {
    assert_eq!(answer.error_code, 0, "{answer:?}");
    let topics = &answer.assignment.as_ref()?.topic_partitions;
    Some(topics.iter().map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect())).collect())
}

/// Partitions of one topic.
pub fn of(topic_id: Uuid, partitions: &[i32]) -> AssignedPartitions {
    if partitions.is_empty() {
        AssignedPartitions::new()
    } else {
        [(topic_id, partitions.iter().copied().collect())].into()
    }
}

/// A consumer as Kafka's clients are: gives back at once what it is not assigned, rejoins when it is fenced.
#[derive(Debug, Clone)]
pub struct Client {
    pub join: ConsumerGroupHeartbeatRequest,
    pub epoch: i32,
    pub owned: AssignedPartitions,
    /// What it said last that it owns; `None`: it does not know what was heard, and says all.
    said: Option<AssignedPartitions>,
}

impl Client {
    pub fn new(join: ConsumerGroupHeartbeatRequest) -> Self {
        Self { join, epoch: 0, owned: AssignedPartitions::new(), said: None }
    }

    pub fn beat(&mut self, scene: &mut Scene) {
        let request = if self.epoch == 0 {
            self.said = Some(AssignedPartitions::new());
            self.join.clone()
        } else {
            let mut request = stay(&self.join.member_id, self.epoch);
            request.instance_id.clone_from(&self.join.instance_id);
            if self.said.is_none() {
                request = ConsumerGroupHeartbeatRequest { member_epoch: self.epoch, ..self.join.clone() };
            }
            if self.said.as_ref() != Some(&self.owned) {
                self.said = Some(self.owned.clone());
                let topics = self.owned.iter().map(|(topic_id, partitions)| TopicPartitions {
                    topic_id: *topic_id,
                    partitions: partitions.iter().copied().collect(),
                });
                request.topic_partitions = Some(topics.collect());
            }
            request
        };
        let answer = scene.beat(request);
        match ErrorCode::from_code(answer.error_code).expect("known") {
            ErrorCode::None => {
                self.epoch = answer.member_epoch;
                if let Some(assigned) = assigned(&answer) {
                    self.owned = assigned;
                }
            }
            ErrorCode::FencedMemberEpoch
            | ErrorCode::UnknownMemberId
            | ErrorCode::FencedInstanceId
            | ErrorCode::UnreleasedInstanceId => {
                self.epoch = 0;
                self.owned.clear();
            }
            other => panic!("{other:?}: {answer:?}"),
        }
    }

    /// It heartbeats and hears nothing: it says everything the next time, as Kafka's clients do after a time-out.
    pub fn beat_unheard(&mut self, scene: &mut Scene) {
        self.clone().beat(scene);
        self.said = None;
    }

    pub fn count(&self) -> usize {
        self.owned.values().map(BTreeSet::len).sum()
    }
}

/// All clients heartbeat until nothing moves.
pub fn reconcile_all(scene: &mut Scene, clients: &mut [Client]) {
    for _ in 0..50 {
        let before = scene.log.len();
        for client in clients.iter_mut() {
            client.beat(scene);
        }
        if scene.log.len() == before {
            return;
        }
    }
    panic!("it never becomes stable: {:?}", scene.members());
}
