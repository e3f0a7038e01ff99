//! Leaders that follow each other, writes that fail, come late or twice.
use super::scene::{Scene, acknowledge, acquire, key, next};
use crate::share::state_requests::{StateRequest, Written};
use crate::share::{LeaderAction, ShareReply};
use pylog_wire::ErrorCode;

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;

/// A scene in which `a` holds the records 0 to 9.
fn held() -> Scene {
    let mut scene = Scene::new(1 << 20);
    assert_eq!(scene.next(Some(0)), Ok(Some(0)));
    assert_eq!(scene.acquire("a", 0), [(0, 9, 1)]);
    scene
}

#[test]
fn a_late_write_of_the_leader_before_is_refused_and_it_lets_go() {
    let mut scene = held();
    let ticket = scene.begin(acknowledge("a", 0, 4, ACCEPT));
    let mut old = scene.next_leader();
    // The new one reads what is kept before it delivers: nothing was accepted.
    assert_eq!(scene.next(None), Ok(Some(0)));
    assert_eq!(scene.acquire("b", 0), [(0, 9, 1)], "the delivery that was under way is not known");
    std::mem::swap(&mut scene.leader, &mut old);
    scene.carry_out_actions();
    assert_eq!(scene.leader.answer(ticket), Some(ShareReply::Done(ErrorCode::NotLeaderOrFollower)));
    assert!(scene.leader.machine.windows().partition(&key("g")).is_none());
    std::mem::swap(&mut scene.leader, &mut old);
    assert_eq!(scene.acknowledge("b", 0, 9, ACCEPT), ErrorCode::None);
    assert_eq!(scene.keeper.summary(&key("g")).unwrap().start_offset, 10);
    // Nor does the old one read it any more.
    std::mem::swap(&mut scene.leader, &mut old);
    assert_eq!(scene.next(None), Err(ErrorCode::NotLeaderOrFollower));
}

#[test]
fn what_was_answered_before_a_leader_moved_is_not_delivered_by_the_next() {
    let mut scene = held();
    assert_eq!(scene.acknowledge("a", 2, 4, ACCEPT), ErrorCode::None);
    assert_eq!(scene.acknowledge("a", 5, 5, RELEASE), ErrorCode::None);
    scene.next_leader();
    assert_eq!(scene.next(None), Ok(Some(0)));
    assert_eq!(scene.acquire("b", 0), [(0, 1, 1), (5, 5, 2), (6, 9, 1)]);
}

#[test]
fn nothing_is_answered_before_it_is_written() {
    let mut scene = held();
    let first = scene.begin(acknowledge("a", 0, 1, ACCEPT));
    let second = scene.begin(acknowledge("a", 2, 3, ACCEPT));
    assert_eq!(scene.leader.wanted.len(), 1, "one write at a time");
    assert_eq!((scene.leader.answer(first), scene.leader.answer(second)), (None, None));
    let write = scene.leader.wanted.pop_front().unwrap();
    scene.perform(write);
    let done = Some(ShareReply::Done(ErrorCode::None));
    assert_eq!((scene.leader.answer(first), scene.leader.answer(second)), (done.clone(), None));
    scene.carry_out_actions();
    assert_eq!(scene.leader.answer(second), done);
}

#[test]
fn nothing_is_delivered_before_where_it_begins_is_written() {
    let mut scene = Scene::new(1 << 20);
    let ticket = scene.begin(next(100, Some(7)));
    let load = scene.leader.wanted.pop_front().unwrap();
    scene.perform(load);
    assert_eq!(scene.leader.answer(ticket), None);
    scene.carry_out_actions();
    assert_eq!(scene.leader.answer(ticket), Some(ShareReply::Next(Ok(Some(7)))));
}

#[test]
fn a_write_that_fails_is_tried_again_and_who_says_it_again_is_heard() {
    let mut scene = held();
    let ticket = scene.begin(acknowledge("a", 3, 4, ACCEPT));
    let Some(LeaderAction::Save { key: of, version, .. }) = scene.leader.wanted.pop_front() else { panic!() };
    let effects = scene.leader.machine.saved(&of, version, Err(ErrorCode::NotCoordinator));
    scene.leader.take(effects);
    let failed = Some(ShareReply::Done(ErrorCode::CoordinatorNotAvailable));
    assert_eq!(scene.leader.answer(ticket), failed);
    assert_eq!(scene.begin(acknowledge("b", 3, 4, ACCEPT)), crate::Ticket(ticket.0 + 1));
    let again = scene.begin(acknowledge("a", 3, 4, ACCEPT));
    assert_eq!(scene.leader.answer(again), None, "it is not written yet");
    scene.carry_out_actions();
    assert_eq!(scene.leader.answer(again), Some(ShareReply::Done(ErrorCode::None)));
    scene.next_leader();
    scene.next(None).unwrap();
    assert_eq!(scene.acquire("b", 0), [(0, 2, 1), (5, 9, 1)]);
}

#[test]
fn a_write_that_comes_late_takes_nothing_back() {
    let mut scene = held();
    scene.begin(acknowledge("a", 0, 1, ACCEPT));
    let Some(LeaderAction::Save { written, .. }) = scene.leader.wanted.front().cloned() else { panic!() };
    scene.carry_out_actions();
    assert_eq!(scene.acknowledge("a", 2, 9, ACCEPT), ErrorCode::None);
    // The first one once more, from a connection that was slow.
    assert_eq!(scene.keeper.done(&key("g"), StateRequest::Write(written)), Ok(()));
    assert_eq!(scene.keeper.summary(&key("g")).unwrap().start_offset, 10);
}

#[test]
fn who_does_not_know_that_an_administrator_moved_the_group_writes_nothing() {
    let mut scene = held();
    scene.keeper.reset(&key("g"), 0);
    assert_eq!(scene.acknowledge("a", 0, 9, ACCEPT), ErrorCode::NotLeaderOrFollower);
    assert_eq!(scene.next(None), Ok(Some(0)), "it is read anew");
    assert_eq!(scene.acquire("b", 0), [(0, 9, 1)]);
    assert_eq!(scene.acknowledge("b", 0, 9, ACCEPT), ErrorCode::None);
}

#[test]
fn a_group_that_was_deleted_is_not_written_by_who_had_it() {
    let mut scene = held();
    assert_eq!(scene.keeper.done(&key("g"), StateRequest::Delete), Ok(()));
    assert_eq!(scene.acknowledge("a", 0, 9, ACCEPT), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(scene.keeper.summary(&key("g")), None);
    assert_eq!(scene.next(None), Err(ErrorCode::UnknownTopicOrPartition));
}

#[test]
fn who_asks_while_it_is_read_gets_the_answer_of_one_reading_and_one_that_was_let_go_of_counts_no_more() {
    let mut scene = held();
    scene.next_leader();
    let first = scene.begin(next(100, None));
    let second = scene.begin(next(100, Some(50)));
    assert_eq!(scene.leader.wanted.len(), 1);
    let nothing = scene.begin(acquire("a", 0));
    assert_eq!(scene.leader.answer(nothing), Some(ShareReply::Acquired(vec![])));
    let stale = scene.leader.wanted.pop_front().unwrap();
    let effects = scene.leader.machine.forget(&key("g"));
    scene.leader.take(effects);
    let lost = Some(ShareReply::Next(Err(ErrorCode::CoordinatorNotAvailable)));
    assert_eq!((scene.leader.answer(first), scene.leader.answer(second)), (lost.clone(), lost));
    let third = scene.begin(next(100, None));
    scene.perform(stale);
    assert_eq!(scene.leader.answer(third), None);
    scene.carry_out_actions();
    assert_eq!(scene.leader.answer(third), Some(ShareReply::Next(Ok(Some(0)))));
}

#[test]
fn a_state_of_an_older_epoch_is_neither_read_nor_written() {
    let mut scene = held();
    let kept = scene.keeper.summary(&key("g")).unwrap();
    assert_eq!((kept.leader_epoch, kept.state_epoch), (1, 0));
    assert_eq!(scene.keeper.read(&key("g"), 0), Err(ErrorCode::FencedLeaderEpoch));
    assert!(scene.keeper.read(&key("g"), 2).is_ok());
    scene.restart();
    let written = Written { state_epoch: 0, leader_epoch: 1, start_offset: 5, batches: vec![] };
    let write = |written| StateRequest::Write(written);
    assert_eq!(
        scene.keeper.done(&key("g"), write(written.clone())),
        Err(ErrorCode::FencedLeaderEpoch),
        "the epoch is written down"
    );
    let same = Written { leader_epoch: 2, ..written };
    assert_eq!(scene.keeper.done(&key("g"), write(same.clone())), Ok(()));
    let lower = StateRequest::Initialize { state_epoch: -1, start_offset: 0 };
    assert_eq!(scene.keeper.done(&key("g"), lower), Err(ErrorCode::FencedStateEpoch));
    assert_eq!(scene.keeper.done(&key("none"), write(same)), Err(ErrorCode::InvalidRequest));
}
