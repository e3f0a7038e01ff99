//! The share partitions of a broker, of the partitions that it leads: which member has which records.
use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::acknowledge::Terms;
use super::acquire::AcquireLimits;
use super::partition::SharePartition;
use super::requests::{LogRange, ShareEffects, ShareEvent, ShareKey, ShareReply, ShareRequest};
use super::settings::GroupSettings;
use crate::{Now, Room, Timers};
use pylog_wire::ErrorCode;

/// Whether a topic was deleted a short while ago.
pub type IsGone = Arc<dyn Fn(&Uuid) -> bool + Send + Sync>;

/// About how many bytes a share partition takes besides its runs and its group's name.
const PARTITION_BYTES: usize = 400;
/// About how many bytes a run takes.
const RUN_BYTES: usize = 100;
/// Expired locks are handled in steps of about this many bytes.
const TICK_BYTES: usize = /* 256 KiB */ 256 << 10;

/// A share partition in memory, and the settings that it was used with last.
struct CachedPartition {
    partition: SharePartition,
    settings: GroupSettings,
    bytes: usize,
    /// It was read from `__share_group_state`, and not compared with its log's end since.
    is_unfitted: bool,
}

/// See the module.
pub struct ShareMachine {
    defaults: GroupSettings,
    kept: BTreeMap<ShareKey, CachedPartition>,
    /// When the first lock of each is over.
    locks: Timers<ShareKey>,
    room: Room,
    is_gone: IsGone,
}

impl Drop for ShareMachine {
    fn drop(&mut self) {
        self.room.changed(self.kept.values().map(|kept| kept.bytes).sum(), 0);
    }
}

impl ShareMachine {
    /// Without any; `room` is for those of all machines. `defaults` are for groups without settings of their own.
    /// A share partition of a topic that `is_gone` does not begin.
    pub fn new(defaults: GroupSettings, room: Room, is_gone: IsGone) -> Self {
        Self { defaults, kept: BTreeMap::new(), locks: Timers::default(), room, is_gone }
    }

    /// The share partition, if it is here.
    pub fn partition(&self, key: &ShareKey) -> Option<&SharePartition> {
        self.kept.get(key).map(|kept| &kept.partition)
    }

    /// Goes on with one that was read from `__share_group_state`.
    pub fn take_in(&mut self, key: ShareKey, partition: SharePartition) {
        self.put(key, partition, self.defaults, true);
    }

    /// Removes it; whether it was here.
    pub fn let_go(&mut self, key: &ShareKey) -> bool {
        self.locks.cancel(key);
        let Some(kept) = self.kept.remove(key) else { return false };
        self.room.changed(kept.bytes, 0);
        true
    }

    fn put(&mut self, key: ShareKey, partition: SharePartition, settings: GroupSettings, is_unfitted: bool) {
        self.let_go(&key);
        let bytes = cost(&key, &partition);
        self.room.changed(0, bytes);
        self.kept.insert(key, CachedPartition { partition, settings, bytes, is_unfitted });
    }

    /// Begins with a share partition that has no state yet.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_ID, GROUP_MAX_SIZE_REACHED.
    pub fn begin(
        &mut self,
        key: ShareKey,
        settings: GroupSettings,
        start_offset: i64,
        state_epoch: i32,
    ) -> Result<(), ErrorCode> {
        if (self.is_gone)(&key.topic_id) {
            return Err(ErrorCode::UnknownTopicId);
        }
        let made = SharePartition { state_epoch, ..SharePartition::new(start_offset) };
        if !self.room.has(cost(&key, &made)) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        self.put(key, made, settings, false);
        Ok(())
    }

    /// From where on is to be read.
    fn next(
        &mut self,
        key: &ShareKey,
        settings: GroupSettings,
        log: LogRange,
    ) -> Result<Option<i64>, ErrorCode> {
        let kept = self.kept.get_mut(key).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        // Only a crash of the machine makes a log shorter. The asking request may have looked at the log before others appended and were
        // given records: by that end, what they acknowledged would be delivered again.
        let end = if std::mem::take(&mut kept.is_unfitted) { log.end } else { i64::MAX };
        kept.partition.fit(log.start, end);
        Ok(kept.partition.next_offset(settings.max_record_locks))
    }

    /// What follows a step of the share partition: its timer, its size, and that it is to be written down.
    fn follow_up(&mut self, key: &ShareKey, effects: &mut ShareEffects) {
        let Some(kept) = self.kept.get_mut(key) else { return };
        if std::mem::take(&mut kept.partition.dirty) {
            effects.changed.push(key.clone());
        }
        match kept.partition.next_lock_ms() {
            Some(until_ms) => self.locks.set(key.clone(), until_ms),
            None => self.locks.cancel(key),
        }
        let bytes = cost(key, &kept.partition);
        self.room.changed(kept.bytes, bytes);
        kept.bytes = bytes;
    }

    /// Takes an event.
    pub fn handle(&mut self, event: ShareEvent, now: Now) -> ShareEffects {
        let mut effects = ShareEffects::default();
        self.route(event, now, &mut effects);
        effects
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
            ShareRequest::Next { log, begin: _ } => ShareReply::Next(self.next(&key, settings, log)),
            ShareRequest::Acquire { member_id, from, batches, max_records, exact } => {
                let delivery_count_limit = settings.delivery_count_limit;
                // Where there is no room for more, what is in flight already is still delivered again.
                let max_in_flight = if room.has(RUN_BYTES) { settings.max_record_locks } else { 0 };
                let limits =
                    AcquireLimits { max_records, exact, max_in_flight, delivery_count_limit, until_ms };
                let member = Arc::from(member_id);
                let acquired = known.and_then(|partition| {
                    bounded(partition, room, |partition| partition.acquire(&member, from, &batches, limits))
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
            ShareRequest::Refresh => {
                if known.is_some_and(|partition| !partition.is_held()) {
                    self.let_go(&key);
                }
                ShareReply::Done(ErrorCode::None)
            }
        };
        self.follow_up(&key, effects);
        let offered = self.offered(&key);
        if offered.is_some() && before.is_none_or(|before| offered < Some(before)) {
            effects.woken.push(key.group_id);
        }
        effects.replies.push((ticket, reply));
    }

    /// The offset of the next record for a member; when that changes, waiting fetches look again.
    fn offered(&self, key: &ShareKey) -> Option<i64> {
        let kept = self.kept.get(key)?;
        kept.partition.next_offset(kept.settings.max_record_locks)
    }

    /// When [`ShareMachine::tick`] has something to do, by the steady clock.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.locks.next_ms()
    }

    /// Gives records back whose locks are over. What is left follows at once.
    pub fn tick(&mut self, now: Now) -> ShareEffects {
        let mut effects = ShareEffects::default();
        let mut bytes = 0;
        while bytes < TICK_BYTES {
            let Some(key) = self.locks.pop_due(now.steady_ms) else { break };
            let Some(kept) = self.kept.get_mut(&key) else { continue };
            let delivery_count_limit = kept.settings.delivery_count_limit;
            let terms = Terms { delivery_count_limit, until_ms: now.steady_ms };
            if kept.partition.expire(now.steady_ms, terms) {
                effects.woken.push(key.group_id.clone());
            }
            bytes += cost(&key, &kept.partition);
            self.follow_up(&key, &mut effects);
        }
        effects
    }
}

/// Takes a step of a share partition. Where memory is used up, a step that would need more is not taken: `None`.
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

/// About how many bytes a share partition takes in memory.
fn cost(key: &ShareKey, partition: &SharePartition) -> usize {
    PARTITION_BYTES + 3 * key.group_id.len() + RUN_BYTES * partition.runs.len()
}
