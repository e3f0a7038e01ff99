//! A machine, a clock that stands still until it is moved, and the answers that came.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::group::classic::ClassicGroup;
use crate::group::{GroupEvent, GroupKind, GroupMachine, GroupReply, GroupRequest, Settings, TopicsView};
use crate::{Caller, LogEntry, Machine, Now, Record, Room, Ticket};
use pylog_wire::messages::describe_groups::DescribedGroup;
use pylog_wire::messages::join_group::JoinGroupRequestProtocol;
use pylog_wire::messages::leave_group::MemberIdentity;
use pylog_wire::messages::sync_group::SyncGroupRequestAssignment;
use pylog_wire::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    SyncGroupRequest, SyncGroupResponse,
};

/// The group of all tests.
pub const GROUP: &str = "readers";
/// Session time-out of members, unless a test says otherwise.
pub const SESSION_MS: i32 = 10_000;
/// Rebalance time-out of members, unless a test says otherwise.
pub const REBALANCE_MS: i32 = 20_000;
/// Kafka's delay of a group's first rebalance.
pub const INITIAL_DELAY_MS: i64 = 3_000;
/// Newest version of JoinGroup and SyncGroup in use here; each is mapped to the request's own.
const NEWEST: i16 = 9;

struct NoTopics;

impl TopicsView for NoTopics {
    fn version(&self) -> u64 {
        0
    }
    fn topic(&self, _: &str) -> Option<(Uuid, i32)> {
        None
    }
    fn topic_with_id(&self, _: &Uuid) -> Option<(String, i32)> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A JoinGroup to be.
#[derive(Debug, Clone)]
pub struct Join {
    pub version: i16,
    pub request: JoinGroupRequest,
}

/// A new member's JoinGroup under the newest version.
pub fn join() -> Join {
    let request = JoinGroupRequest {
        group_id: GROUP.into(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range"]),
        ..Default::default()
    };
    Join { version: NEWEST, request }
}

impl Join {
    pub fn version(mut self, version: i16) -> Self {
        self.version = version;
        self
    }
    pub fn id(mut self, member_id: &str) -> Self {
        self.request.member_id = member_id.into();
        self
    }
    pub fn instance(mut self, instance_id: &str) -> Self {
        self.request.group_instance_id = Some(instance_id.into());
        self
    }
    pub fn protocols(mut self, names: &[&str]) -> Self {
        self.request.protocols = protocols(names);
        self
    }
    pub fn metadata(mut self, metadata: &[u8]) -> Self {
        for protocol in &mut self.request.protocols {
            protocol.metadata = Bytes::copy_from_slice(metadata);
        }
        self
    }
    pub fn times(mut self, session_ms: i32, rebalance_ms: i32) -> Self {
        self.request.session_timeout_ms = session_ms;
        self.request.rebalance_timeout_ms = rebalance_ms;
        self
    }
}

fn protocols(names: &[&str]) -> Vec<JoinGroupRequestProtocol> {
    let protocol =
        |name: &&str| JoinGroupRequestProtocol { name: (*name).into(), metadata: consumer_metadata(&["t"]) };
    names.iter().map(protocol).collect()
}

/// A consumer's metadata: version 0, topics, no user data.
pub fn consumer_metadata(topics: &[&str]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(topics.len() as i32);
    for topic in topics {
        bytes.put_i16(topic.len() as i16);
        bytes.put_slice(topic.as_bytes());
    }
    bytes.put_i32(-1);
    bytes.freeze()
}

/// A member as its client knows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub id: String,
    pub generation: i32,
}

pub struct Bench {
    pub machine: GroupMachine,
    pub now_ms: i64,
    /// By how much the wall clock was set.
    pub set_ms: i64,
    settings: Arc<Settings>,
    next: u64,
    /// All records, in the order of the log.
    pub log: Vec<Record>,
    pub answers: BTreeMap<Ticket, GroupReply>,
    /// All tickets that were ever answered.
    pub answered: BTreeSet<Ticket>,
}

fn room(settings: &Settings) -> Room {
    Room::new(settings.group_coordinator_max_bytes, || {})
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Settings {
            group_initial_rebalance_delay_ms: INITIAL_DELAY_MS as i32,
            ..Settings::default()
        })
    }

    /// Groups do not wait before their first rebalance.
    pub fn prompt() -> Self {
        Self::with(Settings { group_initial_rebalance_delay_ms: 0, ..Settings::default() })
    }

    pub fn with(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let mut machine = GroupMachine::new(Arc::clone(&settings), Arc::new(NoTopics), room(&settings));
        machine.loaded(Now::same(1_000_000));
        Self {
            machine,
            now_ms: 1_000_000,
            set_ms: 0,
            settings,
            next: 0,
            log: Vec::new(),
            answers: BTreeMap::new(),
            answered: BTreeSet::new(),
        }
    }

    /// Another broker, or the same after a restart: all that is in the log, nothing else.
    pub fn restarted(&self) -> Self {
        self.restarted_with(Settings::clone(&self.settings))
    }

    pub fn restarted_with(&self, settings: Settings) -> Self {
        let mut other = Self::with(settings);
        let room = room(&other.settings);
        other.machine = GroupMachine::new(Arc::clone(&other.settings), Arc::new(NoTopics), room);
        for (offset, record) in self.log.iter().enumerate() {
            let entry = LogEntry::Record {
                offset: offset as i64,
                timestamp_ms: self.now_ms,
                transaction: None,
                record: record.clone(),
            };
            other.machine.replay(&entry).expect("what was written can be read");
        }
        other.log = self.log.clone();
        other.now_ms = self.now_ms;
        other.next = self.next;
        let effects = other.machine.loaded(Now::same(other.now_ms));
        other.take(effects);
        other
    }

    fn take(&mut self, effects: crate::Effects<GroupReply, std::convert::Infallible>) {
        self.log.extend(effects.records);
        for (ticket, reply) in effects.replies {
            assert!(self.answered.insert(ticket), "{ticket:?} is answered twice");
            self.answers.insert(ticket, reply);
        }
    }

    fn now(&self) -> Now {
        Now { wall_ms: self.now_ms + self.set_ms, steady_ms: self.now_ms }
    }

    /// Moves the clock, doing whatever is due on the way.
    pub fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while let Some(due_ms) = self.machine.next_deadline_ms().filter(|due_ms| *due_ms <= end_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            let effects = self.machine.tick(self.now());
            self.take(effects);
        }
        self.now_ms = end_ms;
    }

    /// No deadline of a group is left; the machine's own are farther away.
    pub fn waits_for_nothing(&self) -> bool {
        self.machine.next_deadline_ms().is_none_or(|due_ms| due_ms > self.now_ms + 300_000)
    }

    pub fn ask(&mut self, version: i16, request: GroupRequest) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        let caller = Caller { client_id: "client".into(), host: "/127.0.0.1".into(), version };
        let effects = self.machine.handle(GroupEvent { ticket, caller, request }, self.now());
        self.take(effects);
        ticket
    }

    pub fn group(&self) -> &ClassicGroup {
        match self.machine.group(GROUP).map(|group| &group.kind) {
            Some(GroupKind::Classic(group)) => group,
            other => panic!("there is no classic group but {other:?}"),
        }
    }

    pub fn state(&self) -> &'static str {
        self.machine.group(GROUP).map_or("Dead", |group| group.kind.state_name())
    }

    pub fn member_ids(&self) -> Vec<String> {
        self.group().roster().ids()
    }

    pub fn join(&mut self, join: Join) -> Ticket {
        let uuid = Uuid::from_u128(u128::from(self.next) + 1);
        self.ask(join.version, GroupRequest::JoinGroup { request: join.request, uuid })
    }

    /// Joins and comes back with the id when that is required, as clients do.
    pub fn enter(&mut self, join: Join) -> Ticket {
        let ticket = self.join(join.clone());
        match self.answers.get(&ticket) {
            Some(GroupReply::JoinGroup(answer)) if answer.error_code == 79 => {
                let member_id = answer.member_id.clone();
                self.join(join.id(&member_id))
            }
            _ => ticket,
        }
    }

    pub fn waits(&self, ticket: Ticket) -> bool {
        !self.answered.contains(&ticket)
    }

    pub fn joined(&mut self, ticket: Ticket) -> JoinGroupResponse {
        match self.answers.remove(&ticket) {
            Some(GroupReply::JoinGroup(answer)) => answer,
            other => panic!("not the answer to a JoinGroup: {other:?}"),
        }
    }

    /// The member that the JoinGroup made.
    pub fn known(&mut self, ticket: Ticket) -> Known {
        let answer = self.joined(ticket);
        assert_eq!(answer.error_code, 0);
        Known { id: answer.member_id, generation: answer.generation_id }
    }

    pub fn sync_with(&mut self, request: SyncGroupRequest) -> Ticket {
        self.ask(4, GroupRequest::SyncGroup(request))
    }

    pub fn sync(&mut self, member: &Known, assignments: &[(&str, &str)]) -> Ticket {
        self.sync_with(sync_request(member, assignments))
    }

    pub fn synced(&mut self, ticket: Ticket) -> SyncGroupResponse {
        match self.answers.remove(&ticket) {
            Some(GroupReply::SyncGroup(answer)) => answer,
            other => panic!("not the answer to a SyncGroup: {other:?}"),
        }
    }

    /// The error code of a heartbeat.
    pub fn heartbeat(&mut self, member: &Known) -> i16 {
        self.heartbeat_as(member, None)
    }

    pub fn heartbeat_as(&mut self, member: &Known, instance_id: Option<&str>) -> i16 {
        let ticket = self.ask(
            4,
            GroupRequest::Heartbeat(HeartbeatRequest {
                group_id: GROUP.into(),
                generation_id: member.generation,
                member_id: member.id.clone(),
                group_instance_id: instance_id.map(str::to_owned),
            }),
        );
        match self.answers.remove(&ticket) {
            Some(GroupReply::Heartbeat(answer)) => answer.error_code,
            other => panic!("not the answer to a Heartbeat: {other:?}"),
        }
    }

    pub fn leave(&mut self, members: &[(&str, Option<&str>)]) -> LeaveGroupResponse {
        let identity = |(member_id, instance_id): &(&str, Option<&str>)| MemberIdentity {
            member_id: (*member_id).into(),
            group_instance_id: instance_id.map(str::to_owned),
            reason: None,
        };
        let request = LeaveGroupRequest {
            group_id: GROUP.into(),
            members: members.iter().map(identity).collect(),
            ..Default::default()
        };
        let ticket = self.ask(5, GroupRequest::LeaveGroup(request));
        match self.answers.remove(&ticket) {
            Some(GroupReply::LeaveGroup(answer)) => answer,
            other => panic!("not the answer to a LeaveGroup: {other:?}"),
        }
    }

    pub fn left_with(&mut self, members: &[(&str, Option<&str>)]) -> Vec<i16> {
        self.leave(members).members.iter().map(|member| member.error_code).collect()
    }

    pub fn describe(&mut self, version: i16) -> DescribedGroup {
        let ticket = self.ask(version, GroupRequest::DescribeGroup(GROUP.into()));
        match self.answers.remove(&ticket) {
            Some(GroupReply::DescribeGroup(answer)) => answer,
            other => panic!("not the answer to a DescribeGroups: {other:?}"),
        }
    }

    /// Members that joined together, the leader first; the assignments are awaited.
    pub fn generation(&mut self, joins: Vec<Join>) -> Vec<Known> {
        let tickets: Vec<Ticket> = joins.into_iter().map(|join| self.enter(join)).collect();
        while tickets.iter().any(|ticket| self.waits(*ticket)) {
            let due_ms = self.machine.next_deadline_ms().expect("the rebalance ends");
            self.pass((due_ms - self.now_ms).max(0));
        }
        let answers: Vec<JoinGroupResponse> = tickets.into_iter().map(|ticket| self.joined(ticket)).collect();
        let mut members = Vec::new();
        for answer in answers {
            assert_eq!(answer.error_code, 0);
            let known = Known { id: answer.member_id.clone(), generation: answer.generation_id };
            if answer.leader == answer.member_id {
                members.insert(0, known);
            } else {
                members.push(known);
            }
        }
        members
    }

    /// As [`Bench::generation`], and every member got its own id as its assignment.
    pub fn stable(&mut self, joins: Vec<Join>) -> Vec<Known> {
        let members = self.generation(joins);
        self.sync_all(&members);
        members
    }

    /// All sync, the leader last.
    pub fn sync_all(&mut self, members: &[Known]) {
        let assignments: Vec<(&str, &str)> = members.iter().map(|m| (m.id.as_str(), m.id.as_str())).collect();
        let tickets: Vec<Ticket> =
            members.iter().rev().map(|member| self.sync(member, &assignments)).collect();
        for (ticket, member) in tickets.into_iter().zip(members.iter().rev()) {
            let answer = self.synced(ticket);
            assert_eq!((answer.error_code, &answer.assignment[..]), (0, member.id.as_bytes()));
        }
        assert_eq!(self.state(), "Stable");
    }
}

pub fn sync_request(member: &Known, assignments: &[(&str, &str)]) -> SyncGroupRequest {
    let assignment = |(member_id, assignment): &(&str, &str)| SyncGroupRequestAssignment {
        member_id: (*member_id).into(),
        assignment: Bytes::copy_from_slice(assignment.as_bytes()),
    };
    SyncGroupRequest {
        group_id: GROUP.into(),
        generation_id: member.generation,
        member_id: member.id.clone(),
        assignments: assignments.iter().map(assignment).collect(),
        ..Default::default()
    }
}

/// Codes by their names.
pub mod code {
    use pylog_wire::ErrorCode as E;
    pub const NONE: i16 = E::None as i16;
    pub const UNKNOWN_SERVER_ERROR: i16 = E::UnknownServerError as i16;
    pub const ILLEGAL_GENERATION: i16 = E::IllegalGeneration as i16;
    pub const INCONSISTENT_GROUP_PROTOCOL: i16 = E::InconsistentGroupProtocol as i16;
    pub const INVALID_GROUP_ID: i16 = E::InvalidGroupId as i16;
    pub const INVALID_REQUEST: i16 = E::InvalidRequest as i16;
    pub const UNKNOWN_MEMBER_ID: i16 = E::UnknownMemberId as i16;
    pub const INVALID_SESSION_TIMEOUT: i16 = E::InvalidSessionTimeout as i16;
    pub const REBALANCE_IN_PROGRESS: i16 = E::RebalanceInProgress as i16;
    pub const GROUP_ID_NOT_FOUND: i16 = E::GroupIdNotFound as i16;
    pub const MEMBER_ID_REQUIRED: i16 = E::MemberIdRequired as i16;
    pub const GROUP_MAX_SIZE_REACHED: i16 = E::GroupMaxSizeReached as i16;
    pub const FENCED_INSTANCE_ID: i16 = E::FencedInstanceId as i16;
}
