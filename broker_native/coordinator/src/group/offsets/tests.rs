//! Promises of offsets, without a log: the records are kept in a list and replayed from it.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use crate::group::machine::GroupEffects;
use crate::group::{GroupEvent, GroupMachine, GroupReply, GroupRequest, Settings, TopicsView};
use crate::{Caller, LogEntry, Machine, Now, Room, Ticket};
use pylog_record::TopicPartition;
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use pylog_wire::messages::offset_delete::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use pylog_wire::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
};
use pylog_wire::messages::txn_offset_commit::{TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic};
use pylog_wire::messages::{OffsetCommitRequest, OffsetDeleteRequest, TxnOffsetCommitRequest};
use pylog_wire::stored::offsets::OffsetCommitValue;
use pylog_wire::stored::{Stored, type_and_name};

const T_ID: Uuid = Uuid::from_u128(7);
const DAY_MS: i64 = 86_400_000;

/// Topics `t` and `u` with four partitions each.
struct Topics;

impl TopicsView for Topics {
    fn version(&self) -> u64 {
        1
    }
    fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        match name {
            "t" => Some((T_ID, 4)),
            "u" => Some((Uuid::from_u128(2), 4)),
            _ => None,
        }
    }
    fn topic_with_id(&self, id: &Uuid) -> Option<(String, i32)> {
        (*id == T_ID).then(|| ("t".into(), 4))
    }
    fn names(&self) -> Vec<String> {
        vec!["t".into(), "u".into()]
    }
}

/// A machine and what stands in its log.
struct World {
    machine: GroupMachine,
    log: Vec<LogEntry>,
    now_ms: i64,
    ticket: u64,
}

fn machine() -> GroupMachine {
    GroupMachine::new(Arc::new(Settings::default()), Arc::new(Topics), Room::new(usize::MAX, || {}))
}

impl World {
    fn new() -> Self {
        let mut machine = machine();
        let now_ms = 1_700_000_000_000;
        assert_eq!(machine.loaded(Now::same(now_ms)), GroupEffects::default());
        Self { machine, log: Vec::new(), now_ms, ticket: 0 }
    }

    /// What the shell does.
    fn write(&mut self, effects: GroupEffects) -> Vec<(Ticket, GroupReply)> {
        for record in effects.records {
            let offset = self.log.len() as i64;
            let transaction = effects.transaction;
            let entry = LogEntry::Record { offset, timestamp_ms: self.now_ms, transaction, record };
            if transaction.is_some() {
                self.machine.replay(&entry).unwrap();
            }
            self.log.push(entry);
        }
        effects.replies
    }

    fn ask(&mut self, version: i16, request: GroupRequest) -> GroupReply {
        self.ticket += 1;
        let ticket = Ticket(self.ticket);
        let caller = Caller { version, ..Caller::default() };
        let effects = self.machine.handle(GroupEvent { ticket, caller, request }, Now::same(self.now_ms));
        let mut replies = self.write(effects);
        assert_eq!(replies.len(), 1);
        let (answered, reply) = replies.remove(0);
        assert_eq!(answered, ticket);
        reply
    }

    fn commit(&mut self, group: &str, topic: &str, partition: i32, offset: i64) -> i16 {
        self.commit_as(9, commit_request(group, topic, partition, offset))
    }

    fn commit_as(&mut self, version: i16, request: OffsetCommitRequest) -> i16 {
        match self.ask(version, GroupRequest::OffsetCommit(request)) {
            GroupReply::OffsetCommit(response) => response.topics[0].partitions[0].error_code,
            other => panic!("{other:?}"),
        }
    }

    fn commit_in(&mut self, producer_id: i64, group: &str, partition: i32, offset: i64) -> i16 {
        let topic = TxnOffsetCommitRequestTopic { name: "t".into(), ..Default::default() };
        self.commit_in_as(3, topic, producer_id, group, partition, offset)
    }

    fn commit_in_as(
        &mut self,
        version: i16,
        topic: TxnOffsetCommitRequestTopic,
        producer_id: i64,
        group: &str,
        partition: i32,
        offset: i64,
    ) -> i16 {
        let partitions = vec![TxnOffsetCommitRequestPartition {
            partition_index: partition,
            committed_offset: offset,
            ..Default::default()
        }];
        let topics = vec![TxnOffsetCommitRequestTopic { partitions, ..topic }];
        let request = TxnOffsetCommitRequest {
            transactional_id: "tx".into(),
            group_id: group.into(),
            producer_id,
            topics,
            ..Default::default()
        };
        match self.ask(version, GroupRequest::TxnOffsetCommit(request)) {
            GroupReply::TxnOffsetCommit(response) => response.topics[0].partitions[0].error_code,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, producer_id: i64, marker: Marker) {
        let entry = LogEntry::Marker { producer_id, producer_epoch: 0, marker };
        self.machine.replay(&entry).unwrap();
        self.log.push(entry);
    }

    fn fetch(&mut self, group: &str, partition: i32, require_stable: bool) -> (i64, i16) {
        let topics = Some(vec![OffsetFetchRequestTopics {
            name: "t".into(),
            partition_indexes: vec![partition],
            ..Default::default()
        }]);
        let found = self.fetch_group(group, topics, require_stable);
        let one = &found.topics[0].partitions[0];
        (one.committed_offset, one.error_code)
    }

    fn fetch_group(
        &mut self,
        group: &str,
        topics: Option<Vec<OffsetFetchRequestTopics>>,
        require_stable: bool,
    ) -> OffsetFetchResponseGroup {
        let group = OffsetFetchRequestGroup { group_id: group.into(), topics, ..Default::default() };
        match self.ask(9, GroupRequest::OffsetFetch { group, require_stable }) {
            GroupReply::OffsetFetch(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, group: &str, topic: &str, partition: i32) -> (i16, Option<i16>) {
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: partition }];
        let topics = vec![OffsetDeleteRequestTopic { name: topic.into(), partitions }];
        let request = OffsetDeleteRequest { group_id: group.into(), topics };
        match self.ask(0, GroupRequest::OffsetDelete(request)) {
            GroupReply::OffsetDelete(response) => {
                let one = response.topics.first().and_then(|topic| topic.partitions.first());
                (response.error_code, one.map(|one| one.error_code))
            }
            other => panic!("{other:?}"),
        }
    }

    fn delete_group(&mut self, group: &str) -> i16 {
        match self.ask(2, GroupRequest::DeleteGroup(group.into())) {
            GroupReply::DeleteGroup(error_code) => error_code,
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass, and the machine do what is due.
    fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        while self.machine.next_deadline_ms().is_some_and(|due| due <= self.now_ms) {
            let effects = self.machine.tick(Now::same(self.now_ms));
            self.write(effects);
        }
    }

    fn reloaded(&self) -> GroupMachine {
        let mut machine = machine();
        for entry in &self.log {
            machine.replay(entry).unwrap();
        }
        machine
    }
}

fn commit_request(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partitions = vec![OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_leader_epoch: 2,
        committed_metadata: Some("why".into()),
    }];
    let topics = vec![OffsetCommitRequestTopic { name: topic.into(), partitions, ..Default::default() }];
    OffsetCommitRequest { group_id: group.into(), topics, ..Default::default() }
}

/// What can be known of a machine's offsets from outside: by group, each partition with an offset or a pending one.
type Known = BTreeMap<String, BTreeMap<TopicPartition, (Option<(i64, i32, String, i64)>, bool)>>;

fn known(machine: &GroupMachine) -> Known {
    let groups = machine.groups().map(|(group_id, group)| {
        let partitions = group.offsets.partitions().into_iter().map(|at| {
            let found = group.offsets.get(&at.topic, at.partition);
            let found = found.map(|offset| {
                (offset.offset, offset.leader_epoch, offset.metadata.clone(), offset.commit_timestamp_ms)
            });
            let pending = group.offsets.is_pending(&at.topic, at.partition);
            (at, (found, pending))
        });
        (group_id.to_owned(), partitions.collect())
    });
    groups.collect()
}

const OK: i16 = 0;

#[test]
fn a_commit_is_fetched_with_its_epoch_and_text_and_survives_a_restart() {
    let mut world = World::new();
    assert_eq!(world.commit("g", "t", 1, 42), OK);
    let all = world.fetch_group("g", None, false);
    assert_eq!(all.topics.len(), 1);
    let one = &all.topics[0].partitions[0];
    assert_eq!((one.partition_index, one.committed_offset, one.committed_leader_epoch), (1, 42, 2));
    assert_eq!(one.metadata.as_deref(), Some("why"));
    assert_eq!(world.fetch("g", 0, false), (-1, OK));
    assert_eq!(world.fetch("other", 1, false), (-1, OK));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

#[test]
fn records_are_kafkas() {
    let mut world = World::new();
    world.commit("g", "t", 1, 42);
    let LogEntry::Record { record, .. } = &world.log[0] else { panic!() };
    assert_eq!(type_and_name(&record.key).unwrap(), (1, "g".into()));
    assert_eq!(&record.key[..], b"\0\x01\0\x01g\0\x01t\0\0\0\x01");
    let value = record.value.as_ref().unwrap();
    assert_eq!(&value[..2], &[0, 3], "version 3");
    let value = OffsetCommitValue::from_bytes(value).unwrap();
    assert_eq!((value.offset, value.leader_epoch, value.commit_timestamp), (42, 2, world.now_ms));
    // A retention of its own, as clients of old could ask for.
    let request = OffsetCommitRequest { retention_time_ms: 5, ..commit_request("g", "t", 2, 1) };
    assert_eq!(world.commit_as(4, request), OK);
    let LogEntry::Record { record, .. } = &world.log[1] else { panic!() };
    let value = OffsetCommitValue::from_bytes(record.value.as_ref().unwrap()).unwrap();
    assert_eq!(value.expire_timestamp, world.now_ms + 5);
}

#[test]
fn from_version_10_on_topics_are_named_by_id() {
    let mut world = World::new();
    let mut request = commit_request("g", "", 1, 42);
    request.topics[0].topic_id = T_ID;
    assert_eq!(world.commit_as(10, request.clone()), OK);
    request.topics[0].topic_id = Uuid::from_u128(99);
    assert_eq!(world.commit_as(10, request), ErrorCode::UnknownTopicId.code());
    assert_eq!(world.fetch("g", 1, false), (42, OK));
    let asked =
        |topic_id| OffsetFetchRequestTopics { topic_id, partition_indexes: vec![1], ..Default::default() };
    let topics = Some(vec![asked(T_ID), asked(Uuid::from_u128(99))]);
    let mut fetch = |topics| {
        let group = OffsetFetchRequestGroup { group_id: "g".into(), topics, ..Default::default() };
        match world.ask(10, GroupRequest::OffsetFetch { group, require_stable: false }) {
            GroupReply::OffsetFetch(found) => found.topics,
            other => panic!("{other:?}"),
        }
    };
    let found = fetch(topics);
    assert_eq!((found[0].topic_id, found[0].partitions[0].committed_offset), (T_ID, 42));
    assert_eq!(found[1].partitions[0].error_code, ErrorCode::UnknownTopicId.code());
    let all = fetch(None);
    assert_eq!((all.len(), all[0].topic_id), (1, T_ID));
}

#[test]
fn a_member_of_a_group_that_is_not_there_is_told_so_in_the_words_of_its_version() {
    let mut world = World::new();
    let request = OffsetCommitRequest {
        generation_id_or_member_epoch: 3,
        member_id: "m".into(),
        ..commit_request("g", "t", 0, 1)
    };
    assert_eq!(world.commit_as(9, request.clone()), ErrorCode::GroupIdNotFound.code());
    assert_eq!(world.commit_as(8, request.clone()), ErrorCode::IllegalGeneration.code());
    world.commit("g", "t", 0, 1);
    assert_eq!(world.commit_as(9, request), ErrorCode::UnknownMemberId.code());
    assert_eq!(world.log.len(), 1, "nothing refused is written");
}

#[test]
fn partitions_that_are_not_there_and_long_texts_are_refused_one_by_one() {
    let mut world = World::new();
    assert_eq!(world.commit("g", "t", 4, 1), ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!(world.commit("g", "t", -1, 1), ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!(world.commit("g", "nope", 0, 1), ErrorCode::UnknownTopicOrPartition.code());
    let mut request = commit_request("g", "t", 0, 1);
    request.topics[0].partitions[0].committed_metadata = Some("x".repeat(4097));
    assert_eq!(world.commit_as(9, request.clone()), ErrorCode::OffsetMetadataTooLarge.code());
    // As Java counts: 4096 characters of two bytes each.
    request.topics[0].partitions[0].committed_metadata = Some("ä".repeat(4096));
    assert_eq!(world.commit_as(9, request), OK);
    assert_eq!(world.log.len(), 1);
}

#[test]
fn an_offset_in_a_transaction_counts_when_the_transaction_commits() {
    let mut world = World::new();
    world.commit("g", "t", 0, 1);
    assert_eq!(world.commit_in(7, "g", 0, 5), OK);
    assert_eq!(world.fetch("g", 0, false), (1, OK));
    assert_eq!(world.fetch("g", 0, true), (-1, ErrorCode::UnstableOffsetCommit.code()));
    assert_eq!(world.fetch("g", 1, true), (-1, OK), "only that partition");
    world.end(7, Marker::Commit);
    assert_eq!(world.fetch("g", 0, true), (5, OK));
    assert_eq!(world.commit_in(7, "g", 0, 9), OK);
    world.end(7, Marker::Abort);
    assert_eq!(world.fetch("g", 0, true), (5, OK));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

#[test]
fn from_version_6_on_topics_of_a_commit_in_a_transaction_are_named_by_id() {
    let mut world = World::new();
    let by_id = |topic_id| TxnOffsetCommitRequestTopic { topic_id, ..Default::default() };
    assert_eq!(world.commit_in_as(6, by_id(T_ID), 7, "g", 0, 5), OK);
    let unknown = world.commit_in_as(6, by_id(Uuid::from_u128(99)), 7, "g", 0, 6);
    assert_eq!(unknown, ErrorCode::UnknownTopicId.code());
    world.end(7, Marker::Commit);
    assert_eq!(world.fetch("g", 0, true), (5, OK));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

#[test]
fn of_a_commit_and_a_transactional_one_the_later_in_the_log_counts() {
    let mut world = World::new();
    world.commit_in(7, "g", 0, 5);
    world.commit("g", "t", 0, 3);
    world.end(7, Marker::Commit);
    assert_eq!(world.fetch("g", 0, true), (3, OK));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

#[test]
fn a_group_whose_only_offset_is_pending_is_there_and_gone_after_the_abort() {
    let mut world = World::new();
    world.commit_in(7, "g", 0, 5);
    assert!(world.machine.group("g").is_some());
    assert!(world.fetch_group("g", None, true).topics.is_empty());
    world.end(7, Marker::Abort);
    assert!(world.machine.group("g").is_none());
}

#[test]
fn a_deleted_offset_is_gone_with_what_a_transaction_would_make_of_it() {
    let mut world = World::new();
    world.commit("g", "t", 0, 1);
    world.commit("g", "t", 1, 1);
    world.commit_in(7, "g", 0, 5);
    assert_eq!(world.delete("g", "t", 0), (OK, Some(OK)));
    world.end(7, Marker::Commit);
    assert_eq!(world.fetch("g", 0, true), (-1, OK));
    assert_eq!(world.fetch("g", 1, true), (1, OK));
    assert_eq!(world.delete("g", "nope", 0), (OK, Some(ErrorCode::UnknownTopicOrPartition.code())));
    assert_eq!(world.delete("nope", "t", 0), (ErrorCode::GroupIdNotFound.code(), None));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

#[test]
fn a_deleted_group_is_gone_with_its_offsets() {
    let mut world = World::new();
    world.commit("g", "t", 0, 1);
    world.commit("g", "u", 3, 1);
    assert_eq!(world.delete_group("g"), OK);
    assert_eq!(world.delete_group("g"), ErrorCode::GroupIdNotFound.code());
    assert_eq!(known(&world.machine), Known::new());
    assert_eq!(known(&world.reloaded()), Known::new());
}

#[test]
fn an_offset_expires_by_the_time_of_its_commit_and_only_once() {
    let mut world = World::new();
    world.commit("g", "t", 0, 1);
    world.pass(4 * DAY_MS);
    world.commit("g", "t", 1, 1);
    world.pass(3 * DAY_MS - 1);
    assert_eq!(world.fetch("g", 0, false), (1, OK));
    world.pass(600_000);
    assert_eq!(world.fetch("g", 0, false), (-1, OK));
    assert_eq!(world.fetch("g", 1, false), (1, OK));
    let records = world.log.len();
    world.pass(DAY_MS);
    assert_eq!(world.log.len(), records);
    world.pass(4 * DAY_MS);
    assert!(world.machine.group("g").is_none());
    assert_eq!(known(&world.reloaded()), Known::new());
}

#[test]
fn an_offset_that_a_transaction_may_change_does_not_expire() {
    let mut world = World::new();
    world.commit("g", "t", 0, 1);
    world.commit_in(7, "g", 0, 5);
    world.pass(8 * DAY_MS);
    assert_eq!(world.fetch("g", 0, false), (1, OK));
    world.end(7, Marker::Abort);
    world.pass(DAY_MS);
    assert!(world.machine.group("g").is_none());
}

#[test]
fn many_old_offsets_go_in_many_batches_of_bounded_size() {
    let mut world = World::new();
    let long = "g".repeat(30_000);
    for number in 0..40 {
        world.commit(&format!("{long}{number}"), "t", 0, 1);
    }
    world.now_ms += 8 * DAY_MS;
    let mut batches = 0;
    while world.machine.groups().next().is_some() {
        assert!(world.machine.next_deadline_ms().unwrap() <= world.now_ms);
        let effects = world.machine.tick(Now::same(world.now_ms));
        let bytes: usize = effects.records.iter().map(|record| record.key.len()).sum();
        assert!((1..400_000).contains(&bytes), "{bytes}");
        world.write(effects);
        batches += 1;
    }
    assert!(batches > 2, "{batches}");
    assert_eq!(known(&world.reloaded()), Known::new());
}

#[test]
fn the_offsets_of_a_deleted_topic_go_in_all_groups() {
    let mut world = World::new();
    world.commit("a", "t", 0, 1);
    world.commit("a", "u", 0, 1);
    world.commit("b", "t", 1, 1);
    world.commit_in(7, "c", 2, 1);
    let effects = world.machine.forget_topic("t", Now::same(world.now_ms));
    world.write(effects);
    let left: BTreeSet<_> = known(&world.machine).into_keys().collect();
    assert_eq!(left, BTreeSet::from(["a".to_owned()]));
    assert_eq!(known(&world.reloaded()), known(&world.machine));
}

proptest! {
    #[test]
    fn a_reloaded_machine_knows_what_the_live_one_did(steps in prop::collection::vec(any::<(u8, u8, u8)>(), 0..80)) {
        let mut world = World::new();
        for (kind, who, what) in steps {
            let (group, partition) = (["a", "b", "c"][who as usize % 3], i32::from(what % 4));
            let (producer_id, offset) = (i64::from(who % 2), i64::from(what));
            match kind % 9 {
                0..=2 => drop(world.commit(group, "t", partition, offset)),
                3 | 4 => drop(world.commit_in(producer_id, group, partition, offset)),
                5 => world.end(producer_id, if what % 2 == 0 { Marker::Commit } else { Marker::Abort }),
                6 => drop(world.delete(group, "t", partition)),
                7 => drop(world.delete_group(group)),
                _ => world.pass(i64::from(what) * DAY_MS / 64),
            }
            prop_assert_eq!(known(&world.reloaded()), known(&world.machine));
        }
    }
}
