//! A leader and what keeps its states: what the leader wants read and written is done when the test says so.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uuid::Uuid;

use crate::share::requests::LogRange;
use crate::share::state::StateEffects;
use crate::share::state_requests::{StateEvent, StateReply, StateRequest, StoredState, Summary, UNKNOWN};
use crate::share::{
    GroupSettings, LeaderAction, LogBatch, Settings, ShareEvent, ShareKey, ShareLeader, ShareMachine,
    ShareReply, ShareRequest, StateMachine, leader,
};
use crate::{LogEntry, Machine, Now, Record, Room, Ticket};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

pub fn key(group: &str) -> ShareKey {
    ShareKey { group_id: group.into(), topic_id: Uuid::from_u128(9), partition: 0 }
}

pub fn settings() -> GroupSettings {
    GroupSettings::from(&Settings::default())
}

/// A broker that leads the partition.
pub struct Leader {
    pub machine: ShareLeader,
    pub epoch: i32,
    tickets: u64,
    /// Answers that came.
    pub answers: VecDeque<(Ticket, ShareReply)>,
    /// What it wants read or written.
    pub wanted: VecDeque<LeaderAction>,
    pub woken: usize,
}

/// The broker that keeps the states, and its log.
pub struct Keeper {
    pub machine: StateMachine,
    pub log: Vec<Record>,
}

pub struct Scene {
    pub leader: Leader,
    pub keeper: Keeper,
    pub room: Room,
    /// Whether the topic was deleted a short while ago.
    pub gone: Arc<AtomicBool>,
    pub now_ms: i64,
    pub settings: GroupSettings,
}

impl Leader {
    pub fn take(&mut self, effects: leader::LeaderEffects) {
        self.answers.extend(effects.replies);
        for action in effects.actions {
            match action {
                LeaderAction::Wake(_) => self.woken += 1,
                action => self.wanted.push_back(action),
            }
        }
    }

    /// Asks; the answer may come later.
    pub fn begin(&mut self, group: &str, settings: GroupSettings, request: ShareRequest, now: Now) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let event = ShareEvent { ticket, key: key(group), settings, request };
        let effects = self.machine.ask(event, self.epoch, now);
        self.take(effects);
        ticket
    }

    /// The answer that came for `ticket`.
    pub fn answer(&mut self, ticket: Ticket) -> Option<ShareReply> {
        let at = self.answers.iter().position(|(one, _)| *one == ticket)?;
        self.answers.remove(at).map(|(_, reply)| reply)
    }
}

impl Keeper {
    pub fn take(&mut self, effects: StateEffects) -> Option<StateReply> {
        self.log.extend(effects.records);
        effects.replies.into_iter().next().map(|(_, reply)| reply)
    }

    pub fn ask(&mut self, key: &ShareKey, request: StateRequest) -> StateReply {
        let event = StateEvent { ticket: Ticket(0), key: key.clone(), request };
        let effects = self.machine.handle(event, Now::same(7));
        self.take(effects).expect("an answer")
    }

    pub fn done(&mut self, key: &ShareKey, request: StateRequest) -> Result<(), ErrorCode> {
        match self.ask(key, request) {
            StateReply::Done(ErrorCode::None) => Ok(()),
            StateReply::Done(code) => Err(code),
            other => panic!("{other:?}"),
        }
    }

    pub fn read(&mut self, key: &ShareKey, leader_epoch: i32) -> Result<StoredState, ErrorCode> {
        match self.ask(key, StateRequest::Read { leader_epoch }) {
            StateReply::Read(kept) => kept,
            other => panic!("{other:?}"),
        }
    }

    pub fn summary(&mut self, key: &ShareKey) -> Option<Summary> {
        match self.ask(key, StateRequest::Summary) {
            StateReply::Summary(summary) => summary,
            other => panic!("{other:?}"),
        }
    }

    /// An administrator moves the group.
    pub fn reset(&mut self, key: &ShareKey, start_offset: i64) {
        let state_epoch = self.summary(key).map_or(0, |summary| summary.state_epoch + 1);
        assert_eq!(self.done(key, StateRequest::Initialize { state_epoch, start_offset }), Ok(()));
    }
}

impl Scene {
    pub fn new(room: usize) -> Self {
        let room = Room::new(room, || {});
        let gone = Arc::new(AtomicBool::new(false));
        let keeper = Keeper { machine: states(&room, &gone), log: Vec::new() };
        let leader = led(&room, &gone, 1);
        Self { leader, keeper, room, gone, now_ms: 1_000, settings: settings() }
    }

    /// Another leader, which knows nothing yet.
    pub fn next_leader(&mut self) -> Leader {
        let next = led(&self.room, &self.gone, self.leader.epoch + 1);
        std::mem::replace(&mut self.leader, next)
    }

    /// Both lose what they have in memory; the leader leads anew.
    pub fn restart(&mut self) {
        drop(self.next_leader());
        self.keeper.machine = states(&self.room, &self.gone);
        for (offset, record) in (0..).zip(&self.keeper.log) {
            let entry =
                LogEntry::Record { offset, timestamp_ms: 0, transaction: None, record: record.clone() };
            self.keeper.machine.replay(&entry).unwrap();
        }
        let effects = self.keeper.machine.loaded(Now::same(self.now_ms));
        self.keeper.take(effects);
    }

    pub fn now(&self) -> Now {
        Now::same(self.now_ms)
    }

    /// Reads and writes all that the leader wants.
    pub fn carry_out_actions(&mut self) {
        while let Some(action) = self.leader.wanted.pop_front() {
            self.perform(action);
        }
    }

    /// Reads or writes.
    pub fn perform(&mut self, action: LeaderAction) {
        let now = self.now();
        let effects = match action {
            LeaderAction::Load { key, leader_epoch, life, makes } => {
                if makes {
                    let request = StateRequest::Initialize { state_epoch: 0, start_offset: UNKNOWN };
                    let made = self.keeper.done(&key, request);
                    if let Err(code) = made.or_else(|code| match code {
                        ErrorCode::FencedStateEpoch => Ok(()),
                        code => Err(code),
                    }) {
                        let effects = self.leader.machine.loaded(&key, life, makes, Err(code), now);
                        return self.leader.take(effects);
                    }
                }
                let read = self.keeper.read(&key, leader_epoch);
                self.leader.machine.loaded(&key, life, makes, read, now)
            }
            LeaderAction::Save { key, version, written } => {
                let outcome = self.keeper.done(&key, StateRequest::Write(written));
                self.leader.machine.saved(&key, version, outcome)
            }
            LeaderAction::Wake(_) => return,
        };
        self.leader.take(effects);
    }

    pub fn begin(&mut self, request: ShareRequest) -> Ticket {
        let now = self.now();
        self.leader.begin("g", self.settings, request, now)
    }

    pub fn ask(&mut self, group: &str, request: ShareRequest) -> ShareReply {
        let now = self.now();
        let ticket = self.leader.begin(group, self.settings, request, now);
        self.carry_out_actions();
        self.leader.answer(ticket).expect("an answer")
    }

    pub fn next(&mut self, begin: Option<i64>) -> Result<Option<i64>, ErrorCode> {
        self.next_of(100, begin)
    }

    pub fn next_of(&mut self, end: i64, begin: Option<i64>) -> Result<Option<i64>, ErrorCode> {
        match self.ask("g", next(end, begin)) {
            ShareReply::Next(next) => next,
            other => panic!("{other:?}"),
        }
    }

    pub fn acquire(&mut self, member: &str, from: i64) -> Vec<(i64, i64, i16)> {
        match self.ask("g", acquire(member, from)) {
            ShareReply::Acquired(runs) => {
                runs.iter().map(|run| (run.first_offset, run.last_offset, run.delivery_count)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn acknowledge(&mut self, member: &str, first: i64, last: i64, fate: i8) -> ErrorCode {
        match self.ask("g", acknowledge(member, first, last, fate)) {
            ShareReply::Done(error) => error,
            other => panic!("{other:?}"),
        }
    }

    pub fn tick(&mut self) {
        let effects = self.leader.machine.tick(self.now());
        self.leader.take(effects);
        self.carry_out_actions();
    }

    /// The topic is deleted.
    pub fn delete_topic(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let effects = self.keeper.machine.forget_topic(&key("g").topic_id);
        self.keeper.take(effects);
        let effects = self.leader.machine.forget_topic(&key("g").topic_id);
        self.leader.take(effects);
    }
}

pub fn next(end: i64, begin: Option<i64>) -> ShareRequest {
    ShareRequest::Next { log: LogRange { start: 0, end }, begin }
}

pub fn acquire(member: &str, from: i64) -> ShareRequest {
    let batches = vec![LogBatch { first_offset: 0, last_offset: 9, is_void: false }];
    ShareRequest::Acquire { member_id: member.to_owned(), from, batches, max_records: 500, exact: false }
}

pub fn acknowledge(member: &str, first_offset: i64, last_offset: i64, fate: i8) -> ShareRequest {
    let batches = vec![AcknowledgementBatch { first_offset, last_offset, acknowledge_types: vec![fate] }];
    ShareRequest::Acknowledge { member_id: member.to_owned(), batches }
}

fn is_gone(gone: &Arc<AtomicBool>) -> crate::share::IsGone {
    let gone = Arc::clone(gone);
    Arc::new(move |topic_id: &Uuid| *topic_id == key("g").topic_id && gone.load(Ordering::Relaxed))
}

fn states(room: &Room, gone: &Arc<AtomicBool>) -> StateMachine {
    StateMachine::new(room.clone(), is_gone(gone))
}

fn led(room: &Room, gone: &Arc<AtomicBool>, epoch: i32) -> Leader {
    let machine = ShareMachine::new(settings(), room.clone(), is_gone(gone));
    Leader {
        machine: ShareLeader::new(machine),
        epoch,
        tickets: 0,
        answers: VecDeque::new(),
        wanted: VecDeque::new(),
        woken: 0,
    }
}
