//! The machine: what it writes, when it wakes, what it gives back.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

use crate::coordinator::share::requests::LogRange;
use crate::coordinator::share::{
    Batch, GroupSettings, Settings, ShareAction, ShareEvent, ShareKey, ShareMachine, ShareReply, ShareRequest,
};
use crate::coordinator::{Entry, Machine, Now, Record, Room, Ticket};
use crate::wire::ErrorCode;
use crate::wire::messages::share_fetch::AcknowledgementBatch;

struct Stage {
    machine: ShareMachine,
    room: Room,
    /// Whether the topic was deleted a short while ago.
    gone: Arc<AtomicBool>,
    log: Vec<Record>,
    now_ms: i64,
    woken: usize,
}

fn key(group: &str) -> ShareKey {
    ShareKey { group_id: group.into(), topic_id: Uuid::from_u128(9), partition: 0 }
}

fn settings() -> GroupSettings {
    GroupSettings::from(&Settings::default())
}

fn made(room: &Room, gone: &Arc<AtomicBool>) -> ShareMachine {
    let gone = Arc::clone(gone);
    let is_gone = move |topic_id: &Uuid| *topic_id == key("g").topic_id && gone.load(Ordering::Relaxed);
    ShareMachine::new(settings(), room.clone(), Arc::new(is_gone))
}

impl Stage {
    fn new(room: usize) -> Self {
        let room = Room::new(room, || {});
        let gone = Arc::new(AtomicBool::new(false));
        let machine = made(&room, &gone);
        Self { machine, room, gone, log: Vec::new(), now_ms: 1_000, woken: 0 }
    }

    fn ask(&mut self, group: &str, request: ShareRequest) -> ShareReply {
        let event = ShareEvent { ticket: Ticket(1), key: key(group), settings: settings(), request };
        let effects = self.machine.handle(event, Now::same(self.now_ms));
        self.log.extend(effects.records);
        self.woken += effects.actions.len();
        let [(Ticket(1), reply)] = &effects.replies[..] else { panic!("one answer") };
        reply.clone()
    }

    fn next(&mut self, begin: Option<i64>) -> Result<Option<i64>, ErrorCode> {
        self.next_of(100, begin)
    }

    fn next_of(&mut self, end: i64, begin: Option<i64>) -> Result<Option<i64>, ErrorCode> {
        let log = LogRange { start: 0, end };
        match self.ask("g", ShareRequest::Next { log, begin }) {
            ShareReply::Next(next) => next,
            other => panic!("{other:?}"),
        }
    }

    fn acquire(&mut self, member: &str, from: i64) -> Vec<(i64, i64, i16)> {
        let batches = vec![Batch { first_offset: 0, last_offset: 9, is_void: false }];
        let member_id = member.to_owned();
        let request = ShareRequest::Acquire { member_id, from, batches, max_records: 500, exact: false };
        match self.ask("g", request) {
            ShareReply::Acquired(runs) => {
                runs.iter().map(|run| (run.first_offset, run.last_offset, run.delivery_count)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn acknowledge(&mut self, member: &str, first_offset: i64, last_offset: i64, fate: i8) -> ErrorCode {
        let batches = vec![AcknowledgementBatch { first_offset, last_offset, acknowledge_types: vec![fate] }];
        match self.ask("g", ShareRequest::Acknowledge { member_id: member.to_owned(), batches }) {
            ShareReply::Done(error) => error,
            other => panic!("{other:?}"),
        }
    }

    fn tick(&mut self) {
        let effects = self.machine.tick(Now::same(self.now_ms));
        self.log.extend(effects.records);
        assert!(effects.actions.iter().all(|action| *action == ShareAction::Wake("g".into())));
        self.woken += effects.actions.len();
    }

    fn restart(&mut self) {
        self.machine = made(&self.room, &self.gone);
        for (offset, record) in (0..).zip(&self.log) {
            let record = record.clone();
            self.machine
                .replay(&Entry::Record { offset, timestamp_ms: 0, transaction: None, record })
                .unwrap();
        }
        let effects = self.machine.loaded(Now::same(self.now_ms));
        self.log.extend(effects.records);
        self.woken += effects.actions.len();
    }
}

#[test]
fn a_share_partition_is_made_for_who_may_and_found_again() {
    let mut stage = Stage::new(1 << 20);
    assert_eq!(stage.next(None), Err(ErrorCode::UnknownTopicOrPartition));
    assert!(stage.log.is_empty());
    assert_eq!(stage.next(Some(4)), Ok(Some(4)));
    assert_eq!(stage.log.len(), 1, "where it began is written down");
    assert_eq!(stage.next(None), Ok(Some(4)));
    assert_eq!(stage.log.len(), 1);
    stage.restart();
    assert_eq!(stage.next(Some(7)), Ok(Some(4)));
}

#[test]
fn who_looked_at_the_log_before_others_appended_takes_nothing_from_them() {
    let mut stage = Stage::new(1 << 20);
    stage.next_of(0, Some(0)).unwrap();
    assert_eq!(stage.acquire("a", 0), [(0, 9, 1)]);
    assert_eq!(stage.next_of(/* before the ten records */ 0, None), Ok(Some(10)));
    assert_eq!(stage.acknowledge("a", 0, 9, 1), ErrorCode::None);
    assert_eq!(stage.next_of(0, None), Ok(Some(10)));
}

#[test]
fn what_a_crash_took_from_the_end_of_the_log_is_delivered_when_it_is_written_anew() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    stage.acquire("a", 0);
    assert_eq!(stage.acknowledge("a", 0, 9, 1), ErrorCode::None);
    stage.restart();
    assert_eq!(stage.next_of(4, None), Ok(Some(4)));
    assert_eq!(stage.acquire("a", 4), [(4, 9, 1)]);
}

#[test]
fn what_was_acknowledged_is_written_and_who_waits_is_woken_when_something_comes_back() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    assert_eq!(stage.acquire("a", 0), [(0, 9, 1)]);
    let (records, woken) = (stage.log.len(), stage.woken);
    assert_eq!(stage.acknowledge("a", 0, 3, 1), ErrorCode::None);
    assert_eq!((stage.log.len(), stage.woken), (records + 1, woken));
    assert_eq!(stage.acknowledge("b", 4, 4, 1), ErrorCode::InvalidRecordState);
    assert_eq!(stage.log.len(), records + 1);
    assert_eq!(stage.acknowledge("a", 5, 5, 2), ErrorCode::None);
    assert_eq!((stage.log.len(), stage.woken), (records + 2, woken + 1));
    stage.restart();
    assert_eq!(stage.woken, woken + 2, "who asked before it was loaded asks again");
    assert_eq!(stage.next(None), Ok(Some(4)));
    assert_eq!(stage.acquire("b", 4), [(4, 4, 1), (5, 5, 2), (6, 9, 1)]);
}

#[test]
fn locks_are_over_when_their_time_is() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    stage.acquire("a", 0);
    let until_ms = stage.now_ms + settings().record_lock_ms;
    assert_eq!(stage.machine.next_deadline_ms(), Some(until_ms));
    stage.now_ms = until_ms - 1;
    assert_eq!(stage.acknowledge("a", 0, 4, /* renew */ 4), ErrorCode::None);
    stage.now_ms = until_ms;
    let woken = stage.woken;
    stage.tick();
    assert_eq!(stage.woken, woken + 1);
    assert_eq!(stage.acquire("b", 5), [(5, 9, 2)]);
    assert_eq!(stage.acknowledge("a", 5, 5, 1), ErrorCode::InvalidRecordState);
    assert_eq!(stage.machine.next_deadline_ms(), Some(until_ms - 1 + settings().record_lock_ms));
}

#[test]
fn a_member_that_is_gone_gives_all_back_at_once() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    stage.acquire("a", 0);
    let woken = stage.woken;
    assert_eq!(
        stage.ask("g", ShareRequest::Release { member_id: "a".into() }),
        ShareReply::Done(ErrorCode::None)
    );
    assert_eq!(stage.woken, woken + 1);
    assert_eq!(stage.machine.next_deadline_ms(), None);
    assert_eq!(stage.acquire("b", 0), [(0, 9, 2)]);
}

#[test]
fn there_is_no_share_partition_more_than_there_is_room_and_deleted_ones_make_room() {
    let mut stage = Stage::new(1_000);
    assert_eq!(stage.next(Some(0)), Ok(Some(0)));
    let used = stage.room.used();
    assert!(used > 0);
    let log = LogRange { start: 0, end: 100 };
    let mut refused = 0;
    for number in 0..10 {
        let asked = stage.ask(&format!("other-{number}"), ShareRequest::Next { log, begin: Some(0) });
        refused += usize::from(asked == ShareReply::Next(Err(ErrorCode::GroupMaxSizeReached)));
    }
    assert!(refused > 0 && stage.room.used() <= 1_000);
    assert_eq!(stage.ask("g", ShareRequest::Delete), ShareReply::Done(ErrorCode::None));
    stage.restart();
    assert_eq!(stage.next(None), Err(ErrorCode::UnknownTopicOrPartition));
    drop(stage.machine);
    assert_eq!(stage.room.used(), 0);
}

#[test]
fn an_administrator_moves_it_and_sees_where_it_is() {
    let mut stage = Stage::new(1 << 20);
    assert_eq!(stage.ask("g", ShareRequest::Describe), ShareReply::Described(None));
    assert_eq!(stage.ask("g", ShareRequest::Reset { start_offset: 3 }), ShareReply::Done(ErrorCode::None));
    assert_eq!(stage.next(None), Ok(Some(3)));
    stage.acquire("a", 3);
    stage.acknowledge("a", 5, 6, 1);
    stage.restart();
    let ShareReply::Described(Some(described)) = stage.ask("g", ShareRequest::Describe) else { panic!() };
    assert_eq!((described.start_offset, described.complete_count), (3, 2));
    stage.ask("g", ShareRequest::Reset { start_offset: 0 });
    assert_eq!(stage.acquire("a", 0), [(0, 9, 1)]);
}

#[test]
fn what_was_done_with_a_deleted_topic_is_forgotten_and_does_not_come_back() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    stage.acquire("a", 0);
    stage.gone.store(true, Ordering::Relaxed);
    let effects = stage.machine.forget_topic(&key("g").topic_id, Now::same(stage.now_ms));
    stage.log.extend(effects.records);
    assert_eq!((stage.room.used(), stage.machine.next_deadline_ms()), (0, None));
    assert_eq!(
        stage.next(Some(0)),
        Err(ErrorCode::UnknownTopicId),
        "who read it at that moment makes it anew"
    );
    assert_eq!(stage.acknowledge("a", 0, 9, 1), ErrorCode::UnknownTopicOrPartition);
    stage.restart();
    assert_eq!(stage.machine.keys_of("g").count(), 0);
}

#[test]
fn a_machine_that_was_not_loaded_forgets_a_deleted_topic_when_it_is() {
    let mut stage = Stage::new(1 << 20);
    stage.next(Some(0)).unwrap();
    stage.gone.store(true, Ordering::Relaxed);
    stage.restart();
    assert_eq!((stage.machine.keys_of("g").count(), stage.room.used()), (0, 0));
    stage.gone.store(false, Ordering::Relaxed);
    stage.restart();
    assert_eq!(stage.machine.keys_of("g").count(), 0, "that was written down");
}

#[test]
fn many_share_partitions_are_forgotten_in_batches_that_the_log_takes() {
    let mut stage = Stage::new(64 << 20);
    let (log, name) = (LogRange { start: 0, end: 0 }, "g".repeat(1_000));
    for number in 0..1_000 {
        stage.ask(&format!("{name}{number}"), ShareRequest::Next { log, begin: Some(0) });
    }
    let mut batches = 0;
    let mut effects = stage.machine.forget_topic(&key("g").topic_id, Now::same(stage.now_ms));
    while !effects.records.is_empty() {
        assert!(effects.records.iter().map(|record| record.key.len()).sum::<usize>() < 300 << 10);
        batches += 1;
        effects = stage.machine.tick(Now::same(stage.now_ms));
    }
    assert_eq!((batches > 1, stage.room.used(), stage.machine.next_deadline_ms()), (true, 0, None));
}

#[test]
fn the_share_partitions_of_a_group_are_found_without_those_of_others() {
    let mut stage = Stage::new(1 << 20);
    let log = LogRange { start: 0, end: 0 };
    for group in ["f", "g", "g ", "ga", "h"] {
        stage.ask(group, ShareRequest::Next { log, begin: Some(0) });
    }
    assert_eq!(stage.machine.keys_of("g").collect::<Vec<_>>(), [&key("g")]);
    assert_eq!(stage.machine.keys_of("i").count(), 0);
}

#[test]
fn where_memory_is_used_up_nothing_new_is_delivered_and_what_takes_more_is_refused() {
    let mut stage = Stage::new(1_000);
    assert_eq!(stage.next(Some(0)), Ok(Some(0)));
    assert_eq!(stage.acquire("a", 0), [(0, 9, 1)]);
    assert_eq!(stage.acknowledge("a", 5, 9, 2), ErrorCode::None);
    stage.room.changed(0, 1_000);
    let batches = vec![Batch { first_offset: 10, last_offset: 19, is_void: false }];
    let member_id = "b".to_owned();
    let new = ShareRequest::Acquire { member_id, from: 10, batches, max_records: 500, exact: false };
    assert_eq!(stage.ask("g", new.clone()), ShareReply::Acquired(Vec::new()));
    assert_eq!(stage.acquire("b", 5), [(5, 9, 2)], "what is in flight goes on");
    assert_eq!(stage.acknowledge("a", 2, 2, 1), ErrorCode::None, "there is a reserve for who is known");
    stage.room.changed(0, 1_000);
    let used = stage.room.used();
    assert_eq!(stage.acknowledge("b", 7, 7, 1), ErrorCode::CoordinatorNotAvailable, "two runs more");
    assert_eq!(stage.room.used(), used);
    assert_eq!(stage.acknowledge("b", 5, 9, 1), ErrorCode::None, "no run more");
    assert_eq!(stage.acknowledge("a", 0, 1, 1), ErrorCode::None);
    assert!(stage.room.used() < used);
    stage.room.changed(2_000, 0);
    assert!(matches!(stage.ask("g", new), ShareReply::Acquired(runs) if runs.len() == 1));
}
