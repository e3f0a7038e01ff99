//! A leader and its keeper together: what is written, when it wakes, what it gives back.
use std::sync::atomic::Ordering;

use super::scene::{Scene, key, next, settings};
use crate::Machine;
use crate::share::state_requests::StateRequest;
use crate::share::{LogBatch, ShareReply, ShareRequest};
use pylog_wire::ErrorCode;

#[test]
fn a_share_partition_is_made_for_who_may_and_found_again() {
    let mut scene = Scene::new(1 << 20);
    assert_eq!(scene.next(None), Err(ErrorCode::UnknownTopicOrPartition));
    assert!(scene.keeper.log.is_empty());
    assert_eq!(scene.next(Some(4)), Ok(Some(4)));
    assert_eq!(scene.keeper.summary(&key("g")).map(|kept| kept.start_offset), Some(4), "it is written down");
    let records = scene.keeper.log.len();
    assert_eq!(scene.next(None), Ok(Some(4)));
    assert_eq!(scene.keeper.log.len(), records);
    scene.restart();
    assert_eq!(scene.next(Some(7)), Ok(Some(4)));
}

#[test]
fn who_looked_at_the_log_before_others_appended_takes_nothing_from_them() {
    let mut scene = Scene::new(1 << 20);
    scene.next_of(0, Some(0)).unwrap();
    assert_eq!(scene.acquire("a", 0), [(0, 9, 1)]);
    assert_eq!(scene.next_of(/* before the ten records */ 0, None), Ok(Some(10)));
    assert_eq!(scene.acknowledge("a", 0, 9, 1), ErrorCode::None);
    assert_eq!(scene.next_of(0, None), Ok(Some(10)));
}

#[test]
fn what_a_crash_took_from_the_end_of_the_log_is_delivered_when_it_is_written_anew() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    scene.acquire("a", 0);
    assert_eq!(scene.acknowledge("a", 0, 9, 1), ErrorCode::None);
    scene.restart();
    assert_eq!(scene.next_of(4, None), Ok(Some(4)));
    assert_eq!(scene.acquire("a", 4), [(4, 9, 1)]);
}

#[test]
fn what_was_acknowledged_is_written_and_who_waits_is_woken_when_something_comes_back() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    assert_eq!(scene.acquire("a", 0), [(0, 9, 1)]);
    let (records, woken) = (scene.keeper.log.len(), scene.leader.woken);
    assert_eq!(scene.acknowledge("a", 0, 3, 1), ErrorCode::None);
    assert_eq!((scene.keeper.log.len(), scene.leader.woken), (records + 1, woken));
    assert_eq!(scene.acknowledge("b", 4, 4, 1), ErrorCode::InvalidRecordState);
    assert_eq!(scene.keeper.log.len(), records + 1);
    assert_eq!(scene.acknowledge("a", 5, 5, 2), ErrorCode::None);
    assert_eq!((scene.keeper.log.len(), scene.leader.woken), (records + 2, woken + 1));
    scene.restart();
    assert_eq!(scene.next(None), Ok(Some(4)));
    assert_eq!(scene.leader.woken, 1, "who asked before it was loaded asks again");
    assert_eq!(scene.acquire("b", 4), [(4, 4, 1), (5, 5, 2), (6, 9, 1)]);
}

#[test]
fn locks_are_over_when_their_time_is() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    scene.acquire("a", 0);
    let until_ms = scene.now_ms + settings().record_lock_ms;
    assert_eq!(scene.leader.machine.next_deadline_ms(), Some(until_ms));
    scene.now_ms = until_ms - 1;
    assert_eq!(scene.acknowledge("a", 0, 4, /* renew */ 4), ErrorCode::None);
    scene.now_ms = until_ms;
    let woken = scene.leader.woken;
    scene.tick();
    assert_eq!(scene.leader.woken, woken + 1);
    assert_eq!(scene.acquire("b", 5), [(5, 9, 2)]);
    assert_eq!(scene.acknowledge("a", 5, 5, 1), ErrorCode::InvalidRecordState);
    assert_eq!(scene.leader.machine.next_deadline_ms(), Some(until_ms - 1 + settings().record_lock_ms));
}

#[test]
fn a_member_that_is_gone_gives_all_back_at_once() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    scene.acquire("a", 0);
    let woken = scene.leader.woken;
    assert_eq!(
        scene.ask("g", ShareRequest::Release { member_id: "a".into() }),
        ShareReply::Done(ErrorCode::None)
    );
    assert_eq!(scene.leader.woken, woken + 1);
    assert_eq!(scene.leader.machine.next_deadline_ms(), None);
    assert_eq!(scene.acquire("b", 0), [(0, 9, 2)]);
}

#[test]
fn there_is_no_share_partition_more_than_there_is_room_and_deleted_ones_make_room() {
    let mut scene = Scene::new(2_000);
    assert_eq!(scene.next(Some(0)), Ok(Some(0)));
    let used = scene.room.used();
    assert!(used > 0);
    let mut refused = 0;
    for number in 0..10 {
        let asked = scene.ask(&format!("other-{number}"), next(100, Some(0)));
        refused += usize::from(asked == ShareReply::Next(Err(ErrorCode::GroupMaxSizeReached)));
    }
    assert!(refused > 0 && scene.room.used() <= 2_000);
    assert_eq!(scene.keeper.done(&key("g"), StateRequest::Delete), Ok(()));
    scene.restart();
    assert_eq!(scene.next(None), Err(ErrorCode::UnknownTopicOrPartition));
    drop((scene.leader, scene.keeper));
    assert_eq!(scene.room.used(), 0);
}

#[test]
fn an_administrator_moves_it_and_who_joins_then_reads_it_anew() {
    let mut scene = Scene::new(1 << 20);
    scene.keeper.reset(&key("g"), 3);
    assert_eq!(scene.next(None), Ok(Some(3)));
    scene.acquire("a", 3);
    scene.acknowledge("a", 5, 6, 1);
    scene.restart();
    let described = scene.keeper.summary(&key("g")).unwrap();
    assert_eq!((described.start_offset, described.complete_count), (3, 2));
    scene.next(None).unwrap();
    scene.keeper.reset(&key("g"), 0);
    assert_eq!(scene.ask("g", ShareRequest::Refresh), ShareReply::Done(ErrorCode::None));
    assert_eq!(scene.next(None), Ok(Some(0)));
    assert_eq!(scene.acquire("a", 0), [(0, 9, 1)]);
}

#[test]
fn what_was_done_with_a_deleted_topic_is_forgotten_and_does_not_come_back() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    scene.acquire("a", 0);
    scene.delete_topic();
    assert_eq!((scene.room.used(), scene.leader.machine.next_deadline_ms()), (0, None));
    assert_eq!(
        scene.next(Some(0)),
        Err(ErrorCode::UnknownTopicId),
        "who read it at that moment makes it anew"
    );
    assert_eq!(scene.acknowledge("a", 0, 9, 1), ErrorCode::InvalidRecordState);
    scene.restart();
    assert_eq!(scene.keeper.machine.keys_of("g").count(), 0);
}

#[test]
fn a_machine_that_was_not_loaded_forgets_a_deleted_topic_when_it_is() {
    let mut scene = Scene::new(1 << 20);
    scene.next(Some(0)).unwrap();
    scene.gone.store(true, Ordering::Relaxed);
    scene.restart();
    assert_eq!((scene.keeper.machine.keys_of("g").count(), scene.room.used()), (0, 0));
    scene.gone.store(false, Ordering::Relaxed);
    scene.restart();
    assert_eq!(scene.keeper.machine.keys_of("g").count(), 0, "that was written down");
}

#[test]
fn many_share_partitions_are_forgotten_in_batches_that_the_log_takes() {
    let mut scene = Scene::new(64 << 20);
    let name = "g".repeat(1_000);
    for number in 0..1_000 {
        let begins = StateRequest::Initialize { state_epoch: 0, start_offset: 0 };
        assert_eq!(scene.keeper.done(&key(&format!("{name}{number}")), begins), Ok(()));
    }
    let mut batches = 0;
    let mut effects = scene.keeper.machine.forget_topic(&key("g").topic_id);
    while !effects.records.is_empty() {
        assert!(effects.records.iter().map(|record| record.key.len()).sum::<usize>() < 300 << 10);
        batches += 1;
        effects = scene.keeper.machine.tick(scene.now());
    }
    let left = (scene.room.used(), scene.keeper.machine.next_deadline_ms());
    assert_eq!((batches > 1, left), (true, (0, None)));
}

#[test]
fn the_share_partitions_of_a_group_are_found_without_those_of_others() {
    let mut scene = Scene::new(1 << 20);
    for group in ["f", "g", "g ", "ga", "h"] {
        scene.ask(group, next(0, Some(0)));
    }
    assert_eq!(scene.keeper.machine.keys_of("g").collect::<Vec<_>>(), [&key("g")]);
    assert_eq!(scene.keeper.machine.keys_of("i").count(), 0);
}

#[test]
fn where_memory_is_used_up_nothing_new_is_delivered_and_what_takes_more_is_refused() {
    let mut scene = Scene::new(2_000);
    assert_eq!(scene.next(Some(0)), Ok(Some(0)));
    assert_eq!(scene.acquire("a", 0), [(0, 9, 1)]);
    assert_eq!(scene.acknowledge("a", 5, 9, 2), ErrorCode::None);
    scene.room.changed(0, 2_000);
    let batches = vec![LogBatch { first_offset: 10, last_offset: 19, is_void: false }];
    let member_id = "b".to_owned();
    let new = ShareRequest::Acquire { member_id, from: 10, batches, max_records: 500, exact: false };
    assert_eq!(scene.ask("g", new.clone()), ShareReply::Acquired(Vec::new()));
    assert_eq!(scene.acquire("b", 5), [(5, 9, 2)], "what is in flight goes on");
    assert_eq!(scene.acknowledge("a", 2, 2, 1), ErrorCode::None, "there is a reserve for who is known");
    scene.room.changed(0, 2_000);
    let used = scene.room.used();
    assert_eq!(scene.acknowledge("b", 7, 7, 1), ErrorCode::CoordinatorNotAvailable, "two runs more");
    assert_eq!(scene.room.used(), used);
    assert_eq!(scene.acknowledge("b", 5, 9, 1), ErrorCode::None, "no run more");
    assert_eq!(scene.acknowledge("a", 0, 1, 1), ErrorCode::None);
    assert!(scene.room.used() < used);
    scene.room.changed(4_000, 0);
    assert!(matches!(scene.ask("g", new), ShareReply::Acquired(runs) if runs.len() == 1));
}
