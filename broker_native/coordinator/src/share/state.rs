//! The machine of one partition of `__share_group_state`: the states of share partitions, as the leaders of the partitions say them.
//!
//! It knows no member and no lock. Leaders of earlier epochs are fenced: a leader reads the state before it delivers, its epoch is
//! written down with that, and a write of an older epoch is refused from then on. So is the write of a leader that does not know
//! yet that an administrator moved the group (the state epoch).
//!
//! What is written is laid over what was there, offset by offset, and the later in a record's life stays: a write that comes twice, or
//! late, takes nothing back. Only a write of a higher state epoch takes the place of what was there.
use std::collections::BTreeMap;

use uuid::Uuid;

use super::machine::IsGone;
use super::merge::{complete_count, laid_over};
use super::requests::ShareKey;
use super::state_requests::{StateEvent, StateReply, StateRequest, StoredState, Summary, UNKNOWN, Written};
use super::stored;
use crate::{Effects, LogEntry, Machine, Now, Room};
use pylog_wire::ErrorCode;
use pylog_wire::stored::shares::ShareSnapshotValue;

/// What a share partition costs besides its runs and its group's name, about.
const PARTITION_BYTES: usize = 400;
/// What a run costs, about.
const RUN_BYTES: usize = 30;
/// Topics that are gone are forgotten in batches of about this size.
const TICK_BYTES: usize = /* 256 KiB */ 256 << 10;
/// Most runs of a share partition: twice the most records that a group may have in flight.
const RUNS_MAX: usize = 20_000;
/// Stands for a leader that has not read it yet.
const NO_LEADER: i32 = -1;

/// What a step gives. There is nothing for the shell to do.
pub type StateEffects = Effects<StateReply, ()>;

/// The states of one partition of the topic.
pub struct StateMachine {
    /// In the order of the groups.
    kept: BTreeMap<ShareKey, ShareSnapshotValue>,
    room: Room,
    is_gone: IsGone,
    /// Of topics that are gone; they leave as soon as the machine is asked to tick.
    to_forget: Vec<ShareKey>,
}

impl Drop for StateMachine {
    fn drop(&mut self) {
        self.room.changed(self.kept.iter().map(|(key, value)| cost(key, value)).sum(), 0);
    }
}

impl StateMachine {
    /// Without any; `room` is for those of all machines. A state of a topic that `is_gone` is not made.
    pub fn new(room: Room, is_gone: IsGone) -> Self {
        Self { kept: BTreeMap::new(), room, is_gone, to_forget: Vec::new() }
    }

    /// Which share partitions of a group are kept here.
    pub fn keys_of<'a>(&'a self, group_id: &'a str) -> impl Iterator<Item = &'a ShareKey> {
        let first = ShareKey { group_id: group_id.to_owned(), topic_id: Uuid::nil(), partition: i32::MIN };
        self.kept.range(first..).map(|(key, _)| key).take_while(move |key| key.group_id == group_id)
    }

    /// A topic is no more: nor is what share groups did with it.
    pub fn forget_topic(&mut self, topic_id: &Uuid) -> StateEffects {
        self.to_forget.extend(self.kept.keys().filter(|key| key.topic_id == *topic_id).cloned());
        self.forget_some()
    }

    /// What does not fit into one batch waits for the next, which follows at once.
    fn forget_some(&mut self) -> StateEffects {
        let mut effects = Effects::default();
        let mut bytes = 0;
        while bytes < TICK_BYTES {
            let Some(key) = self.to_forget.pop() else { break };
            self.delete(&key, &mut effects);
            bytes += RUN_BYTES + key.group_id.len();
        }
        effects
    }

    fn delete(&mut self, key: &ShareKey, effects: &mut StateEffects) {
        if self.drop_kept(key) {
            // A name that was in the log can be written again.
            effects.records.extend(stored::record(key, None));
        }
    }

    fn drop_kept(&mut self, key: &ShareKey) -> bool {
        let Some(value) = self.kept.remove(key) else { return false };
        self.room.changed(cost(key, &value), 0);
        true
    }

    fn put(&mut self, key: ShareKey, value: ShareSnapshotValue) {
        let before = self.kept.get(&key).map_or(0, |before| cost(&key, before));
        self.room.changed(before, cost(&key, &value));
        self.kept.insert(key, value);
    }

    /// The next state of a share partition: kept, and written down.
    ///
    /// # Errors
    /// GROUP_MAX_SIZE_REACHED: its name is too long for a record.
    fn change(
        &mut self,
        key: &ShareKey,
        mut value: ShareSnapshotValue,
        now: Now,
        effects: &mut StateEffects,
    ) -> Result<(), ErrorCode> {
        value.snapshot_epoch = value.snapshot_epoch.wrapping_add(1).max(0);
        value.write_timestamp = now.wall_ms;
        value.delivery_complete_count = complete_count(&value.state_batches);
        let record = stored::record(key, Some(&value));
        effects.records.push(record.map_err(|_too_long| ErrorCode::GroupMaxSizeReached)?);
        self.put(key.clone(), value);
        Ok(())
    }

    fn initialize(
        &mut self,
        key: &ShareKey,
        state_epoch: i32,
        start_offset: i64,
        now: Now,
        effects: &mut StateEffects,
    ) -> Result<(), ErrorCode> {
        let (leader_epoch, create_timestamp) = match self.kept.get(key) {
            Some(before) if before.state_epoch > state_epoch => return Err(ErrorCode::FencedStateEpoch),
            Some(before) if before.state_epoch == state_epoch => return as_it_is(before, start_offset),
            Some(before) => (before.leader_epoch, before.create_timestamp),
            None if (self.is_gone)(&key.topic_id) => return Err(ErrorCode::UnknownTopicId),
            None if !self.room.has(PARTITION_BYTES + 3 * key.group_id.len()) => {
                return Err(ErrorCode::GroupMaxSizeReached);
            }
            None => (NO_LEADER, now.wall_ms),
        };
        let value = ShareSnapshotValue {
            snapshot_epoch: -1,
            state_epoch,
            leader_epoch,
            start_offset: start_offset.max(UNKNOWN),
            create_timestamp,
            ..Default::default()
        };
        self.change(key, value, now, effects)
    }

    fn read(
        &mut self,
        key: &ShareKey,
        leader_epoch: i32,
        now: Now,
        effects: &mut StateEffects,
    ) -> Result<StoredState, ErrorCode> {
        let before = self.kept.get(key).ok_or(ErrorCode::InvalidRequest)?;
        if before.leader_epoch > leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        let kept = StoredState {
            state_epoch: before.state_epoch,
            start_offset: before.start_offset,
            batches: before.state_batches.clone(),
        };
        if before.leader_epoch < leader_epoch {
            let value = ShareSnapshotValue { leader_epoch, ..before.clone() };
            self.change(key, value, now, effects)?;
        }
        Ok(kept)
    }

    fn write(
        &mut self,
        key: &ShareKey,
        written: Written,
        now: Now,
        effects: &mut StateEffects,
    ) -> Result<(), ErrorCode> {
        let before = self.kept.get(key).ok_or(ErrorCode::InvalidRequest)?;
        if before.leader_epoch > written.leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if before.state_epoch > written.state_epoch {
            return Err(ErrorCode::FencedStateEpoch);
        }
        let goes_on = before.state_epoch == written.state_epoch;
        let (known, runs) = match goes_on {
            true => (before.start_offset, &before.state_batches[..]),
            false => (UNKNOWN, &[][..]),
        };
        let start_offset = known.max(written.start_offset);
        let state_batches = laid_over(runs, &written.batches, start_offset);
        if state_batches.len() > RUNS_MAX {
            return Err(ErrorCode::InvalidRequest);
        }
        // Known share partitions go on; where even the reserve is used up, only with writes that take no more.
        if !self.room.has_reserve(RUN_BYTES * state_batches.len().saturating_sub(before.state_batches.len()))
        {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let value = ShareSnapshotValue {
            state_epoch: written.state_epoch,
            leader_epoch: written.leader_epoch,
            start_offset,
            state_batches,
            ..before.clone()
        };
        self.change(key, value, now, effects)
    }
}

impl Machine for StateMachine {
    type Event = StateEvent;
    type Reply = StateReply;
    type Action = ();

    fn replay(&mut self, entry: &LogEntry) -> Result<(), String> {
        let LogEntry::Record { record, .. } = entry else { return Ok(()) };
        let (key, value) = stored::read(record).map_err(|error| error.to_string())?;
        match value {
            Some(value) => self.put(key, value),
            None => {
                let _was_there = self.drop_kept(&key);
            }
        }
        Ok(())
    }

    fn loaded(&mut self, _now: Now) -> StateEffects {
        self.to_forget.extend(self.kept.keys().filter(|key| (self.is_gone)(&key.topic_id)).cloned());
        self.forget_some()
    }

    fn writes(event: &StateEvent) -> bool {
        !matches!(event.request, StateRequest::Summary)
    }

    fn handle(&mut self, event: StateEvent, now: Now) -> StateEffects {
        let StateEvent { ticket, key, request } = event;
        let mut effects = Effects::default();
        let done =
            |outcome: Result<(), ErrorCode>| StateReply::Done(outcome.err().unwrap_or(ErrorCode::None));
        let reply = match request {
            StateRequest::Initialize { state_epoch, start_offset } => {
                done(self.initialize(&key, state_epoch, start_offset, now, &mut effects))
            }
            StateRequest::Read { leader_epoch } => {
                StateReply::Read(self.read(&key, leader_epoch, now, &mut effects))
            }
            StateRequest::Write(written) => done(self.write(&key, written, now, &mut effects)),
            StateRequest::Delete => {
                self.delete(&key, &mut effects);
                StateReply::Done(ErrorCode::None)
            }
            StateRequest::Summary => StateReply::Summary(self.kept.get(&key).map(|value| Summary {
                state_epoch: value.state_epoch,
                leader_epoch: value.leader_epoch,
                start_offset: value.start_offset,
                complete_count: value.delivery_complete_count,
            })),
        };
        effects.reply(ticket, reply);
        effects
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        // What is to be forgotten is due.
        (!self.to_forget.is_empty()).then_some(0)
    }

    fn tick(&mut self, _now: Now) -> StateEffects {
        self.forget_some()
    }
}

/// The state stays: what is said is nothing new.
///
/// # Errors
/// FENCED_STATE_EPOCH: another request has set it to something else.
fn as_it_is(before: &ShareSnapshotValue, start_offset: i64) -> Result<(), ErrorCode> {
    let is_same = before.start_offset == start_offset && before.state_batches.is_empty();
    (start_offset == UNKNOWN || is_same).then_some(()).ok_or(ErrorCode::FencedStateEpoch)
}

/// What a state costs in memory, about.
fn cost(key: &ShareKey, value: &ShareSnapshotValue) -> usize {
    PARTITION_BYTES + 3 * key.group_id.len() + RUN_BYTES * value.state_batches.len()
}
