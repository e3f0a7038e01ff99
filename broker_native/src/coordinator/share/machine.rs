//! The machine of one partition of `__share_group_state`.
use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::acknowledge::Terms;
use super::acquire::Wish;
use super::partition::SharePartition;
use super::requests::{Described, LogRange, ShareAction, ShareEvent, ShareKey, ShareReply, ShareRequest};
use super::settings::GroupSettings;
use super::stored;
use crate::coordinator::{Effects, Entry, Machine, Now, Room, Timers};
use crate::wire::ErrorCode;

/// Whether a topic was deleted a short while ago.
pub type IsGone = Arc<dyn Fn(&Uuid) -> bool + Send + Sync>;

/// What a step of a share partition gives.
pub type ShareEffects = Effects<ShareReply, ShareAction>;

/// What a share partition costs besides its runs and its group's name, about.
const PARTITION_BYTES: usize = 400;
/// What a run costs, about.
const RUN_BYTES: usize = 100;
/// What a machine writes by itself (locks that are over, topics that are gone) is written in batches of about this size.
const TICK_BYTES: usize = /* 256 KiB */ 256 << 10;

/// One that is kept here, and the settings that it was used with last.
struct Kept {
    partition: SharePartition,
    settings: GroupSettings,
    bytes: usize,
    /// It was read from the log, or set by an administrator, and not compared with its partition's end since.
    is_unfitted: bool,
}

/// The share partitions of one partition of the topic.
pub struct ShareMachine {
    defaults: GroupSettings,
    /// In the order of the groups.
    kept: BTreeMap<ShareKey, Kept>,
    /// When the first lock of each is over.
    locks: Timers<ShareKey>,
    room: Room,
    is_gone: IsGone,
    /// Of topics that are gone; they leave as soon as the machine is asked to tick.
    to_forget: Vec<ShareKey>,
}

impl Drop for ShareMachine {
    fn drop(&mut self) {
        self.room.changed(self.kept.values().map(|kept| kept.bytes).sum(), 0);
    }
}

impl ShareMachine {
    /// Without any; `room` is for those of all machines. `defaults` are for groups without settings of their own.
    /// A share partition of a topic that `is_gone` is not made.
    pub fn new(defaults: GroupSettings, room: Room, is_gone: IsGone) -> Self {
        Self {
            defaults,
            kept: BTreeMap::new(),
            locks: Timers::default(),
            room,
            is_gone,
            to_forget: Vec::new(),
        }
    }

    /// The share partition, if it is kept here.
    pub fn partition(&self, key: &ShareKey) -> Option<&SharePartition> {
        self.kept.get(key).map(|kept| &kept.partition)
    }

    /// Which share partitions of a group are kept here.
    pub fn keys_of<'a>(&'a self, group_id: &'a str) -> impl Iterator<Item = &'a ShareKey> {
        let first = ShareKey { group_id: group_id.to_owned(), topic_id: Uuid::nil(), partition: i32::MIN };
        self.kept.range(first..).map(|(key, _)| key).take_while(move |key| key.group_id == group_id)
    }

    /// A topic is no more: nor is what share groups did with it.
    pub fn forget_topic(&mut self, topic_id: &Uuid, now: Now) -> ShareEffects {
        self.to_forget.extend(self.kept.keys().filter(|key| key.topic_id == *topic_id).cloned());
        self.forget_some(now)
    }

    /// What does not fit into one batch waits for the next, which follows at once.
    fn forget_some(&mut self, now: Now) -> ShareEffects {
        let mut effects = Effects::default();
        let mut bytes = 0;
        while bytes < TICK_BYTES {
            let Some(key) = self.to_forget.pop() else { break };
            self.delete(&key, now, &mut effects);
            bytes += RUN_BYTES + key.group_id.len();
        }
        effects
    }

    fn delete(&mut self, key: &ShareKey, now: Now, effects: &mut ShareEffects) {
        if self.drop_kept(key) {
            // A name that was in the log can be written again.
            effects.records.extend(stored::record(key, None, now.wall_ms));
        }
    }

    fn drop_kept(&mut self, key: &ShareKey) -> bool {
        self.locks.cancel(key);
        let Some(kept) = self.kept.remove(key) else { return false };
        self.room.changed(kept.bytes, 0);
        true
    }

    fn put(&mut self, key: ShareKey, partition: SharePartition, settings: GroupSettings, is_unfitted: bool) {
        self.drop_kept(&key);
        let bytes = cost(&key, &partition);
        self.room.changed(0, bytes);
        self.kept.insert(key, Kept { partition, settings, bytes, is_unfitted });
    }

    /// From where on is to be read; makes the share partition when it is not there.
    fn next(
        &mut self,
        key: &ShareKey,
        settings: GroupSettings,
        log: LogRange,
        begin: Option<i64>,
        now: Now,
    ) -> Result<Option<i64>, ErrorCode> {
        if !self.kept.contains_key(key) {
            let begin = begin.ok_or(ErrorCode::UnknownTopicOrPartition)?;
            if (self.is_gone)(&key.topic_id) {
                return Err(ErrorCode::UnknownTopicId);
            }
            let made = SharePartition::new(begin, now.wall_ms);
            if !self.room.has(cost(key, &made)) || stored::record(key, None, now.wall_ms).is_err() {
                return Err(ErrorCode::GroupMaxSizeReached);
            }
            self.put(key.clone(), made, settings, false);
        }
        let kept = self.kept.get_mut(key).ok_or(ErrorCode::UnknownServerError)?;
        // Only a crash of the machine makes a log shorter. Who asks may have looked at the log before others appended and were
        // given records: by that end, what they acknowledged would be delivered again.
        let end = if std::mem::take(&mut kept.is_unfitted) { log.end } else { i64::MAX };
        kept.partition.fit(log.start, end);
        Ok(kept.partition.next_offset(settings.max_record_locks))
    }

    /// What follows a step of the share partition: its record, its timer, its size.
    fn follow_up(&mut self, key: &ShareKey, now: Now, effects: &mut ShareEffects) {
        let Some(kept) = self.kept.get_mut(key) else { return };
        if kept.partition.dirty {
            kept.partition.snapshot_epoch = kept.partition.snapshot_epoch.wrapping_add(1).max(0);
            kept.partition.dirty = false;
            effects.records.extend(stored::record(key, Some(&kept.partition), now.wall_ms));
        }
        match kept.partition.next_lock_ms() {
            Some(until_ms) => self.locks.set(key.clone(), until_ms),
            None => self.locks.cancel(key),
        }
        let bytes = cost(key, &kept.partition);
        self.room.changed(kept.bytes, bytes);
        kept.bytes = bytes;
    }

    fn route(&mut self, event: ShareEvent, now: Now, effects: &mut ShareEffects) {
        let ShareEvent { ticket, key, settings, request } = event;
        let until_ms = now.steady_ms.saturating_add(settings.record_lock_ms);
        let terms = Terms { delivery_count_limit: settings.delivery_count_limit, until_ms };
        if let Some(kept) = self.kept.get_mut(&key) {
            kept.settings = settings;
        }
        let before = self.offered(&key);
        let (known, room) = (self.kept.get_mut(&key).map(|kept| &mut kept.partition), &self.room);
        let reply = match request {
            ShareRequest::Next { log, begin } => ShareReply::Next(self.next(&key, settings, log, begin, now)),
            ShareRequest::Acquire { member_id, from, batches, max_records, exact } => {
                let delivery_count_limit = settings.delivery_count_limit;
                // Where there is no room for more, what is in flight already is still delivered again.
                let max_in_flight = if room.has(RUN_BYTES) { settings.max_record_locks } else { 0 };
                let wish = Wish { max_records, exact, max_in_flight, delivery_count_limit, until_ms };
                let member = Arc::from(member_id);
                let acquired = known.and_then(|partition| {
                    bounded(partition, room, |partition| partition.acquire(&member, from, &batches, wish))
                });
                ShareReply::Acquired(acquired.unwrap_or_default())
            }
            ShareRequest::Acknowledge { member_id, batches } => {
                let taken = |partition| {
                    bounded(partition, room, |partition| partition.acknowledge(&member_id, &batches, terms))
                        .unwrap_or(Err(ErrorCode::CoordinatorNotAvailable))
                };
                let outcome = known.map_or(Err(ErrorCode::UnknownTopicOrPartition), taken);
                ShareReply::Done(outcome.err().unwrap_or(ErrorCode::None))
            }
            ShareRequest::Release { member_id } => {
                let _some = known.is_some_and(|partition| partition.release(&member_id, terms));
                ShareReply::Done(ErrorCode::None)
            }
            ShareRequest::Describe => ShareReply::Described(known.map(|partition| Described {
                start_offset: partition.start_offset(),
                complete_count: partition.complete_count(),
            })),
            ShareRequest::Reset { start_offset } => {
                ShareReply::Done(self.reset(&key, settings, start_offset, now))
            }
            ShareRequest::Delete => {
                self.delete(&key, now, effects);
                ShareReply::Done(ErrorCode::None)
            }
        };
        self.follow_up(&key, now, effects);
        let offered = self.offered(&key);
        if offered.is_some() && before.is_none_or(|before| offered < Some(before)) {
            effects.actions.push(ShareAction::Wake(key.group_id));
        }
        effects.reply(ticket, reply);
    }

    /// Where the next member would find something; when that changes, those who wait look again.
    fn offered(&self, key: &ShareKey) -> Option<i64> {
        let kept = self.kept.get(key)?;
        kept.partition.next_offset(kept.settings.max_record_locks)
    }

    fn reset(&mut self, key: &ShareKey, settings: GroupSettings, start_offset: i64, now: Now) -> ErrorCode {
        if let Some(kept) = self.kept.get_mut(key) {
            kept.partition.reset(start_offset);
            kept.is_unfitted = true;
            return ErrorCode::None;
        }
        let made = SharePartition::new(start_offset, now.wall_ms);
        if !self.room.has(cost(key, &made)) {
            return ErrorCode::GroupMaxSizeReached;
        }
        self.put(key.clone(), made, settings, true);
        ErrorCode::None
    }
}

impl Machine for ShareMachine {
    type Event = ShareEvent;
    type Reply = ShareReply;
    type Action = ShareAction;

    fn replay(&mut self, entry: &Entry) -> Result<(), String> {
        let Entry::Record { record, .. } = entry else { return Ok(()) };
        let (key, partition) = stored::read(record).map_err(|error| error.to_string())?;
        match partition {
            Some(partition) => self.put(key, partition, self.defaults, true),
            None => {
                let _was_there = self.drop_kept(&key);
            }
        }
        Ok(())
    }

    fn loaded(&mut self, now: Now) -> ShareEffects {
        self.to_forget.extend(self.kept.keys().filter(|key| (self.is_gone)(&key.topic_id)).cloned());
        let mut effects = self.forget_some(now);
        // Who asked before was told of nothing, and waits.
        let mut groups: Vec<&String> = self.kept.keys().map(|key| &key.group_id).collect();
        groups.dedup();
        effects.actions.extend(groups.into_iter().cloned().map(ShareAction::Wake));
        effects
    }

    fn writes(event: &ShareEvent) -> bool {
        !matches!(event.request, ShareRequest::Describe)
    }

    fn handle(&mut self, event: ShareEvent, now: Now) -> ShareEffects {
        let mut effects = Effects::default();
        self.route(event, now, &mut effects);
        effects
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        // What is to be forgotten is due.
        if self.to_forget.is_empty() { self.locks.next_ms() } else { Some(0) }
    }

    fn tick(&mut self, now: Now) -> ShareEffects {
        if !self.to_forget.is_empty() {
            return self.forget_some(now);
        }
        let mut effects = Effects::default();
        let mut bytes = 0;
        // What does not fit into one batch waits for the next, which follows at once.
        while bytes < TICK_BYTES {
            let Some(key) = self.locks.pop_due(now.steady_ms) else { break };
            let Some(kept) = self.kept.get_mut(&key) else { continue };
            let delivery_count_limit = kept.settings.delivery_count_limit;
            let terms = Terms { delivery_count_limit, until_ms: now.steady_ms };
            if kept.partition.expire(now.steady_ms, terms) {
                effects.actions.push(ShareAction::Wake(key.group_id.clone()));
            }
            bytes += cost(&key, &kept.partition);
            self.follow_up(&key, now, &mut effects);
        }
        effects
    }
}

/// Takes a step of a share partition. Where memory is used up, it is not taken if it leaves more than there was: `None`.
fn bounded<T>(
    partition: &mut SharePartition,
    room: &Room,
    step: impl FnOnce(&mut SharePartition) -> T,
) -> Option<T> {
    if room.has_reserve(RUN_BYTES) {
        return Some(step(partition));
    }
    let before = partition.clone();
    let outcome = step(partition);
    if partition.runs.len() > before.runs.len() {
        *partition = before;
        return None;
    }
    Some(outcome)
}

/// What a share partition costs in memory, about.
fn cost(key: &ShareKey, partition: &SharePartition) -> usize {
    PARTITION_BYTES + 3 * key.group_id.len() + RUN_BYTES * partition.runs.len()
}
