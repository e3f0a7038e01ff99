//! The machine of one partition of `__consumer_offsets`: its groups, and which module takes what.
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::context::{GroupContext, Settings, TimerKey, TopicsView};
use super::offsets::{CommittedOffset, commit, fetch, forget};
use super::requests::{GroupEvent, GroupReply, GroupRequest};
use super::state::{Group, GroupKind};
use super::{classic, consumer, share};
use crate::{Effects, LogEntry, Machine, Now, Record, Room, Timers};
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;
use pylog_wire::stored::offsets::{OffsetCommitKey, OffsetCommitValue};
use pylog_wire::stored::{Stored, type_and_name};

/// What a step of a group gives.
pub type GroupEffects = Effects<GroupReply, std::convert::Infallible>;

/// Key types of committed offsets.
const OFFSET_TYPES: std::ops::RangeInclusive<i16> = 0..=1;
/// Key type of classic groups.
const CLASSIC_TYPE: i16 = 2;
/// Key types of KIP-848 groups.
const CONSUMER_TYPES: [i16; 7] = [3, 4, 5, 6, 7, 8, 16];
/// Key types of share groups.
const SHARE_TYPES: std::ops::RangeInclusive<i16> = 10..=15;

/// The machine's own timer: offsets and groups that are too old.
const EXPIRY: &str = "machine: expiry";
/// What a group costs besides what is in it, about.
const GROUP_BYTES: usize = 500;
/// Tombstones go into batches of about this size.
const EXPIRY_BYTES: usize = /* 256 KiB */ 256 << 10;

/// All groups of one partition.
pub struct GroupMachine {
    settings: Arc<Settings>,
    topics: Arc<dyn TopicsView>,
    groups: HashMap<String, Group>,
    /// Deadlines of all groups.
    timers: Timers<TimerKey>,
    /// Groups that a producer's open transaction commits to.
    transactions: HashMap<i64, BTreeSet<String>>,
    /// Greater than [`CommittedOffset::order`] of all commits.
    next_order: i64,
    room: Room,
    /// Bytes that its groups take of the room.
    bytes: usize,
}

impl Drop for GroupMachine {
    fn drop(&mut self) {
        self.room.changed(self.bytes, 0);
    }
}

impl GroupMachine {
    /// Without groups; `room` is for those of all machines.
    pub fn new(settings: Arc<Settings>, topics: Arc<dyn TopicsView>, room: Room) -> Self {
        Self {
            settings,
            topics,
            groups: HashMap::new(),
            timers: Timers::default(),
            transactions: HashMap::new(),
            next_order: 0,
            room,
            bytes: 0,
        }
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(group_id, group)| (group_id.as_str(), group))
    }

    /// The group with this id.
    pub fn group(&self, group_id: &str) -> Option<&Group> {
        self.groups.get(group_id)
    }

    /// Runs `step` on a group, which is made for it and does not stay when nothing is in it afterwards.
    fn step(
        &mut self,
        group_id: &str,
        now: Now,
        effects: &mut GroupEffects,
        step: impl FnOnce(&mut Group, &mut GroupContext<'_>),
    ) {
        let (settings, topics, timers) = (&*self.settings, &self.topics, &mut self.timers);
        let before = self.groups.get(group_id).map_or(0, |group| cost(group_id, group));
        let Now { wall_ms: now_ms, steady_ms } = now;
        let mut cx =
            GroupContext { group_id, now_ms, steady_ms, settings, room: &self.room, topics, timers, effects };
        if let Some(group) = self.groups.get_mut(group_id) {
            step(group, &mut cx);
            if group.is_vacant() {
                self.groups.remove(group_id);
            }
        } else {
            let mut group = Group::default();
            step(&mut group, &mut cx);
            if !group.is_vacant() {
                self.groups.insert(group_id.to_owned(), group);
            }
        }
        self.recount(group_id, before);
    }

    /// A group that cost `before` bytes may cost more or less now.
    fn recount(&mut self, group_id: &str, before: usize) {
        let after = self.groups.get(group_id).map_or(0, |group| cost(group_id, group));
        self.bytes = self.bytes.saturating_add(after).saturating_sub(before);
        self.room.changed(before, after);
    }

    /// Which module answers: one line for each request. `classic::handle` and `consumer::handle` take the requests of their
    /// protocols whatever the group's kind is now, so that they can take it over or refuse.
    fn route(&mut self, event: GroupEvent, now: Now, effects: &mut GroupEffects) {
        let GroupEvent { ticket, caller, request } = event;
        let group_id = request.group_id().to_owned();
        let mut order = self.next_order;
        self.step(&group_id, now, effects, |group, cx| match request {
            GroupRequest::OffsetCommit(request) => {
                commit::commit(group, ticket, &caller, request, &mut order, cx);
            }
            GroupRequest::TxnOffsetCommit(request) => {
                commit::commit_in_transaction(group, ticket, &caller, request, cx);
            }
            GroupRequest::OffsetFetch { group: request, require_stable } => {
                let found = fetch::fetch(group, caller.version, request, require_stable, &**cx.topics);
                cx.effects.reply(ticket, GroupReply::OffsetFetch(found));
            }
            GroupRequest::OffsetDelete(request) => {
                let response = forget::delete_offsets(group, request, cx);
                cx.effects.reply(ticket, GroupReply::OffsetDelete(response));
            }
            GroupRequest::ConsumerHeartbeat { .. } | GroupRequest::ConsumerDescribe(_) => {
                consumer::handle(group, ticket, &caller, request, cx);
            }
            GroupRequest::ShareHeartbeat { .. }
            | GroupRequest::ShareDescribe(_)
            | GroupRequest::ShareMove { .. } => {
                share::handle(group, ticket, &caller, request, cx);
            }
            GroupRequest::DeleteGroup(_) => {
                let error = forget::delete_group(group, cx).err().unwrap_or(ErrorCode::None);
                cx.effects.reply(ticket, GroupReply::DeleteGroup(error.code()));
            }
            request @ (GroupRequest::JoinGroup { .. }
            | GroupRequest::SyncGroup(_)
            | GroupRequest::Heartbeat(_)
            | GroupRequest::LeaveGroup(_)
            | GroupRequest::DescribeGroup(_)) => classic::handle(group, ticket, &caller, request, cx),
        });
        self.next_order = order;
    }

    /// A topic is no more: nor are its offsets.
    pub fn forget_topic(&mut self, topic: &str, now: Now) -> GroupEffects {
        let mut effects = Effects::default();
        for group_id in self.group_ids() {
            self.step(&group_id, now, &mut effects, |group, cx| forget::forget_topic(group, topic, cx));
        }
        effects
    }

    /// Looks for expired offsets and empty groups, some at a time.
    fn expire(&mut self, now: Now, effects: &mut GroupEffects) {
        let mut pause_ms = self.settings.offsets_retention_check_interval_ms.max(1);
        for group_id in self.group_ids() {
            self.step(&group_id, now, effects, forget::expire);
            if effects.records.iter().map(|record| record.key.len()).sum::<usize>() > EXPIRY_BYTES {
                pause_ms = 0;
                break;
            }
        }
        self.timers.set(expiry_timer(), now.steady_ms.saturating_add(pause_ms));
    }

    fn group_ids(&self) -> Vec<String> {
        self.groups.keys().cloned().collect()
    }

    fn replay_record(&mut self, record: &Record, producer_id: Option<i64>, order: i64) -> Result<(), String> {
        let (key_type, group_id) = type_and_name(&record.key).map_err(|error| error.to_string())?;
        let before = self.groups.get(&group_id).map_or(0, |group| cost(&group_id, group));
        let group = self.groups.entry(group_id.clone()).or_default();
        let outcome = match key_type {
            key if OFFSET_TYPES.contains(&key) => replay_offset(group, record, producer_id, order),
            CLASSIC_TYPE => classic::replay(group, key_type, record),
            key if CONSUMER_TYPES.contains(&key) => consumer::replay(group, key_type, record),
            key if SHARE_TYPES.contains(&key) => share::replay(group, key_type, record),
            key => Err(format!("records of type {key} are not known")),
        };
        let is_vacant = group.is_vacant();
        if is_vacant {
            self.groups.remove(&group_id);
        }
        self.recount(&group_id, before);
        if is_vacant {
            return outcome;
        }
        if let (Some(producer_id), true) = (producer_id, OFFSET_TYPES.contains(&key_type)) {
            self.transactions.entry(producer_id).or_default().insert(group_id);
        }
        outcome
    }

    fn end_transaction(&mut self, producer_id: i64, commit: bool) {
        for group_id in self.transactions.remove(&producer_id).unwrap_or_default() {
            if let Some(group) = self.groups.get_mut(&group_id) {
                let before = cost(&group_id, group);
                group.offsets.end(producer_id, commit);
                if group.is_vacant() {
                    self.groups.remove(&group_id);
                }
                self.recount(&group_id, before);
            }
        }
    }
}

impl Machine for GroupMachine {
    type Event = GroupEvent;
    type Reply = GroupReply;
    type Action = std::convert::Infallible;

    fn replay(&mut self, entry: &LogEntry) -> Result<(), String> {
        match entry {
            LogEntry::Record { offset, transaction, record, .. } => {
                self.next_order = self.next_order.max(offset + 1);
                self.replay_record(record, transaction.map(|(producer_id, _)| producer_id), *offset)
            }
            LogEntry::Marker { producer_id, marker, .. } => {
                self.end_transaction(*producer_id, *marker == Marker::Commit);
                Ok(())
            }
        }
    }

    fn loaded(&mut self, now: Now) -> GroupEffects {
        let mut effects = Effects::default();
        for group_id in self.group_ids() {
            self.step(&group_id, now, &mut effects, |group, cx| match group.kind {
                GroupKind::Simple => {}
                GroupKind::Classic(_) => classic::loaded(group, cx),
                GroupKind::Consumer(_) => consumer::loaded(group, cx),
                GroupKind::Share(_) => share::loaded(group, cx),
            });
        }
        let check_ms = self.settings.offsets_retention_check_interval_ms.max(1);
        self.timers.set(expiry_timer(), now.steady_ms.saturating_add(check_ms));
        effects
    }

    fn writes(event: &GroupEvent) -> bool {
        !matches!(
            event.request,
            GroupRequest::OffsetFetch { .. }
                | GroupRequest::Heartbeat(_)
                | GroupRequest::DescribeGroup(_)
                | GroupRequest::ConsumerDescribe(_)
                | GroupRequest::ShareDescribe(_)
        )
    }

    fn handle(&mut self, event: GroupEvent, now: Now) -> GroupEffects {
        let mut effects = Effects::default();
        self.route(event, now, &mut effects);
        effects
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_ms()
    }

    fn tick(&mut self, now: Now) -> GroupEffects {
        let mut effects = Effects::default();
        while let Some(TimerKey { group_id, member_id, purpose }) = self.timers.pop_due(now.steady_ms) {
            if purpose == EXPIRY {
                self.expire(now, &mut effects);
                // What is left waits for the next batch.
                break;
            }
            self.step(&group_id, now, &mut effects, |group, cx| match group.kind {
                GroupKind::Simple => {}
                GroupKind::Classic(_) => classic::timer(group, &member_id, purpose, cx),
                GroupKind::Consumer(_) => consumer::timer(group, &member_id, purpose, cx),
                GroupKind::Share(_) => share::timer(group, &member_id, purpose, cx),
            });
        }
        effects
    }
}

/// What a group costs in memory, about.
fn cost(group_id: &str, group: &Group) -> usize {
    GROUP_BYTES + 2 * group_id.len() + group.bytes()
}

fn replay_offset(
    group: &mut Group,
    record: &Record,
    producer_id: Option<i64>,
    order: i64,
) -> Result<(), String> {
    let key = OffsetCommitKey::from_bytes(&record.key).map_err(|error| error.to_string())?;
    match &record.value {
        None => group.offsets.remove(&key.topic, key.partition),
        Some(value) => {
            let value = OffsetCommitValue::from_bytes(value).map_err(|error| error.to_string())?;
            group.offsets.put(&key.topic, key.partition, CommittedOffset::of(value, order), producer_id);
        }
    }
    Ok(())
}

fn expiry_timer() -> TimerKey {
    TimerKey { group_id: String::new(), member_id: String::new(), purpose: EXPIRY }
}
