//! Promises of share groups. Whatever happens, the log gives the live state (checked by the stage after every step).
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use crate::group::consumer::tests::scene::FakeTopics;
use crate::group::share::Membership;
use crate::group::{
    Group, GroupContext, GroupKind, GroupReply, GroupRequest, Settings, TimerKey, TopicsView, share,
};
use crate::{Caller, Effects, Record, Room, Ticket, Timers};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_group_describe::DescribedGroup;
use pylog_wire::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
use pylog_wire::stored::type_and_name;

const GROUP: &str = "group";

struct Stage {
    group: Group,
    topics: Arc<FakeTopics>,
    settings: Settings,
    membership: Membership,
    now_ms: i64,
    log: Vec<Record>,
    timers: Timers<TimerKey>,
}

impl Stage {
    fn new() -> Self {
        Self {
            group: Group::default(),
            topics: Arc::default(),
            settings: Settings::default(),
            membership: Membership::from(&Settings::default()),
            now_ms: 1_000,
            log: Vec::new(),
            timers: Timers::default(),
        }
    }

    fn step(&mut self, step: impl FnOnce(&mut Group, &mut GroupContext<'_>)) -> Vec<GroupReply> {
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
        self.log.extend(effects.records);
        match (&self.group.kind, &self.replayed().kind) {
            (GroupKind::Share(live), GroupKind::Share(replayed)) => {
                assert_eq!(live.durable(), replayed.durable())
            }
            (GroupKind::Simple, GroupKind::Simple) => {}
            (live, replayed) => panic!("{live:?} is replayed as {replayed:?}"),
        }
        effects.replies.into_iter().map(|(_, reply)| reply).collect()
    }

    fn replayed(&self) -> Group {
        let mut group = Group::default();
        for record in &self.log {
            let (key_type, _) = type_and_name(&record.key).unwrap();
            share::replay(&mut group, key_type, record).unwrap();
        }
        group
    }

    fn restart(&mut self) {
        self.group = self.replayed();
        self.timers = Timers::default();
        self.step(share::loaded);
    }

    fn ask(&mut self, request: GroupRequest) -> GroupReply {
        let who = Caller { client_id: "client".into(), host: "/127.0.0.1".into(), version: 1 };
        self.step(|group, cx| share::handle(group, Ticket(1), &who, request, cx)).remove(0)
    }

    fn beat(
        &mut self,
        member: &str,
        member_epoch: i32,
        topics: Option<&[&str]>,
    ) -> ShareGroupHeartbeatResponse {
        let request = ShareGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: member.into(),
            member_epoch,
            rack_id: None,
            subscribed_topic_names: topics.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        };
        let membership = self.membership;
        match self.ask(GroupRequest::ShareHeartbeat { request, membership }) {
            GroupReply::ShareHeartbeat(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn join(&mut self, member: &str, topics: &[&str]) -> ShareGroupHeartbeatResponse {
        let answer = self.beat(member, 0, Some(topics));
        assert_eq!(answer.error_code, 0, "{answer:?}");
        answer
    }

    fn describe(&mut self) -> DescribedGroup {
        match self.ask(GroupRequest::ShareDescribe(GROUP.into())) {
            GroupReply::ShareDescribe(group) => group,
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        while let Some(key) = self.timers.pop_due(self.now_ms) {
            self.step(|group, cx| share::timer(group, &key.member_id, key.purpose, cx));
        }
    }
}

fn partitions(answer: &ShareGroupHeartbeatResponse) -> Vec<i32> {
    let topics = answer.assignment.iter().flat_map(|assignment| &assignment.topic_partitions);
    topics.flat_map(|topic| topic.partitions.clone()).collect()
}

fn error(answer: &ShareGroupHeartbeatResponse) -> ErrorCode {
    ErrorCode::from_code(answer.error_code).unwrap()
}

#[test]
fn members_share_the_partitions_and_a_partition_has_several_readers_when_there_are_more_members() {
    let mut stage = Stage::new();
    stage.topics.set("foo", 2);
    let first = stage.join("a", &["foo"]);
    assert_eq!((partitions(&first), first.member_epoch), (vec![0, 1], 2));
    assert_eq!(first.heartbeat_interval_ms, 5_000);
    let second = stage.join("b", &["foo"]);
    assert_eq!(partitions(&second), [1]);
    let next = stage.beat("a", first.member_epoch, None);
    assert_eq!((partitions(&next), next.member_epoch), (vec![0], second.member_epoch));
    assert_eq!(stage.beat("a", next.member_epoch, None).assignment, None, "nothing changed");
    let third = stage.join("c", &["foo"]);
    assert_eq!(partitions(&third), [0]);
    let described = stage.describe();
    assert_eq!((described.group_state.as_str(), described.assignor_name.as_str()), ("Stable", "simple"));
    assert_eq!(described.members.len(), 3);
}

#[test]
fn who_leaves_or_is_silent_for_too_long_is_no_member_any_more() {
    let mut stage = Stage::new();
    stage.topics.set("foo", 2);
    let first = stage.join("a", &["foo"]);
    stage.join("b", &["foo"]);
    assert_eq!(stage.beat("b", -1, None).member_epoch, -1);
    assert_eq!(error(&stage.beat("b", 3, None)), ErrorCode::UnknownMemberId);
    assert_eq!(partitions(&stage.beat("a", first.member_epoch, Some(&["foo"]))), [0, 1]);
    stage.pass(44_999);
    assert_eq!(stage.describe().members.len(), 1);
    stage.restart();
    stage.pass(45_000);
    let described = stage.describe();
    assert_eq!((described.members.len(), described.group_state.as_str()), (0, "Empty"));
    assert_eq!(described.assignment_epoch, described.group_epoch);
    assert_eq!(error(&stage.beat("a", -1, None)), ErrorCode::UnknownMemberId);
}

#[test]
fn a_group_may_have_a_session_timeout_and_an_interval_of_its_own() {
    let mut stage = Stage::new();
    stage.topics.set("foo", 1);
    stage.membership = Membership { session_timeout_ms: 60_000, heartbeat_interval_ms: 15_000 };
    assert_eq!(stage.join("a", &["foo"]).heartbeat_interval_ms, 15_000);
    stage.pass(59_999);
    assert_eq!(stage.describe().members.len(), 1);
    stage.pass(1);
    assert_eq!(stage.describe().members.len(), 0);
}

#[test]
fn a_group_with_members_is_not_moved_and_one_that_is_not_there_is_made_when_something_moves() {
    let mut stage = Stage::new();
    stage.topics.set("foo", 1);
    let ask = |stage: &mut Stage, moves| match stage
        .ask(GroupRequest::ShareMove { group_id: GROUP.into(), moves })
    {
        GroupReply::ShareMove(answer) => answer.map_err(|refusal| refusal.error),
        other => panic!("{other:?}"),
    };
    assert_eq!(ask(&mut stage, false), Ok(()));
    assert_eq!(stage.describe().error_code, ErrorCode::GroupIdNotFound.code());
    assert_eq!(ask(&mut stage, true), Ok(()));
    let made = stage.describe();
    assert_eq!((made.error_code, made.group_state.as_str()), (0, "Empty"));
    assert_eq!(made.assignment_epoch, made.group_epoch);
    let first = stage.join("a", &["foo"]);
    assert_eq!((partitions(&first), first.member_epoch), (vec![0], made.group_epoch + 1));
    assert_eq!(ask(&mut stage, true), Err(ErrorCode::NonEmptyGroup));
    stage.beat("a", -1, None);
    let before = stage.describe().group_epoch;
    assert_eq!(ask(&mut stage, true), Ok(()));
    assert_eq!(stage.describe().group_epoch, before + 1);
}

#[test]
fn a_member_is_at_the_epoch_that_it_was_told_or_the_one_before() {
    let mut stage = Stage::new();
    stage.topics.set("foo", 1);
    let first = stage.join("a", &["foo"]).member_epoch;
    stage.topics.set("foo", 2);
    let next = stage.beat("a", first, None);
    assert_eq!((next.member_epoch, partitions(&next)), (first + 1, vec![0, 1]));
    assert_eq!(error(&stage.beat("a", first, None)), ErrorCode::None, "the answer may have been lost");
    assert_eq!(error(&stage.beat("a", first + 2, None)), ErrorCode::FencedMemberEpoch);
    let again = stage.beat("a", 0, Some(&["foo"]));
    assert_eq!((again.member_epoch, partitions(&again)), (first + 1, vec![0, 1]), "nothing changed");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut stage = Stage::new();
    stage.settings.group_share_max_size = 1;
    for (member, epoch, topics) in
        [("", 0, Some(&["foo"][..])), ("a", 0, None), ("a", 0, Some(&[][..])), ("a", -2, None)]
    {
        assert_eq!(error(&stage.beat(member, epoch, topics)), ErrorCode::InvalidRequest);
    }
    assert_eq!(error(&stage.beat("a", 1, None)), ErrorCode::GroupIdNotFound);
    assert_eq!(stage.describe().error_code, ErrorCode::GroupIdNotFound.code());
    assert!(stage.log.is_empty());
    stage.join("a", &["foo"]);
    assert_eq!(error(&stage.beat("b", 0, Some(&["foo"]))), ErrorCode::GroupMaxSizeReached);
}

#[derive(Debug, Clone)]
enum Happening {
    Beat(usize),
    Leave(usize),
    Grow(i32),
    Pass(i64),
    Restart,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let happening = prop_oneof![
        8 => (0..4usize).prop_map(Happening::Beat),
        1 => (0..4usize).prop_map(Happening::Leave),
        1 => (1..9i32).prop_map(Happening::Grow),
        1 => (1..30_000i64).prop_map(Happening::Pass),
        1 => Just(Happening::Restart),
    ];
    prop::collection::vec(happening, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn when_things_calm_down_every_partition_is_read(happenings in happenings()) {
        let mut stage = Stage::new();
        let names = ["a", "b", "c", "d"];
        let mut epochs = [0; 4];
        let mut count = 1;
        stage.topics.set("foo", count);
        let beat = |stage: &mut Stage, epochs: &mut [i32; 4], one: usize| {
            let topics = (epochs[one] == 0).then_some(&["foo"][..]);
            let answer = stage.beat(names[one], epochs[one], topics);
            epochs[one] = if answer.error_code == 0 { answer.member_epoch } else { 0 };
        };
        for happening in happenings {
            match happening {
                Happening::Beat(one) => beat(&mut stage, &mut epochs, one),
                Happening::Leave(one) => {
                    stage.beat(names[one], -1, None);
                    epochs[one] = 0;
                }
                Happening::Grow(more) => {
                    count = count.max(more);
                    stage.topics.set("foo", count);
                }
                Happening::Pass(ms) => stage.pass(ms),
                Happening::Restart => stage.restart(),
            }
        }
        for _ in 0..3 {
            (0..names.len()).for_each(|one| beat(&mut stage, &mut epochs, one));
        }
        let members = stage.describe().members;
        prop_assert_eq!(members.len(), names.len());
        let read = |member: &pylog_wire::messages::share_group_describe::Member| {
            member.assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect::<Vec<_>>()
        };
        prop_assert!(members.iter().all(|member| !read(member).is_empty()));
        let all: BTreeSet<i32> = members.iter().flat_map(read).collect();
        prop_assert_eq!(all, (0..count).collect::<BTreeSet<_>>());
    }
}
