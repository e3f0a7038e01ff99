//! The share partitions of a broker together with where they are kept: each is read before anything of it is delivered, written down
//! after each change, and given up when another broker leads its partition or has set it.
//!
//! One write of a share partition is under way at a time, with its whole state; what changes meanwhile goes with the next. Answers
//! that say that something is done with wait for the write that has it. A write that does not get through is tried again for as long as
//! this broker leads: requests that waited get an error that asks to try again, and when the same acknowledgement comes again it waits for the next write.
use std::collections::{BTreeMap, VecDeque};

use uuid::Uuid;

use super::machine::ShareMachine;
use super::requests::{ShareEffects, ShareEvent, ShareKey, ShareReply, ShareRequest};
use super::state_requests::{StoredState, UNKNOWN, Written};
use super::stored;
use crate::{Effects, Now, Ticket};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

/// Most acknowledgements of a share partition that may come again because their answer was an error; the oldest make room.
const LATE_MAX: usize = 1_000;

/// What the shell does; the outcome comes back by [`ShareLeader::loaded`] and [`ShareLeader::saved`].
#[derive(Debug, Clone, PartialEq)]
pub enum LeaderAction {
    /// Read a state.
    Load {
        /// Which.
        key: ShareKey,
        /// For the leader of this epoch.
        leader_epoch: i32,
        /// Comes back with the outcome.
        life: u64,
        /// Make it first when it is not there.
        makes: bool,
    },
    /// Write a state.
    Save {
        /// Which.
        key: ShareKey,
        /// Comes back with the outcome.
        version: u64,
        /// What.
        written: Written,
    },
    /// Members of the group may find records that they did not find before.
    Wake(String),
}

/// What a step gives; nothing goes into a log of this broker's by itself.
pub type LeaderEffects = Effects<ShareReply, LeaderAction>;

/// See the module.
pub struct ShareLeader {
    machine: ShareMachine,
    held: BTreeMap<ShareKey, LedPartition>,
    /// Number of the share partition that came here last. An outcome for one that was given up meanwhile is recognised by its number.
    life: u64,
}

/// Changes that a share partition may have before the next number begins.
const CHANGES_MAX: u64 = 1 << 32;

/// A share partition and how far it is written down.
struct LedPartition {
    /// The epoch in which this broker leads the partition.
    leader_epoch: i32,
    /// Requests that came while it is read from where it is kept; `None`: it is here.
    loading: Option<Vec<ShareEvent>>,
    /// It began here, and that is not written down yet.
    is_new: bool,
    /// Counts its changes, from its own number on.
    version: u64,
    /// Which of them is written down.
    saved: u64,
    /// Which of them is being written.
    saving: Option<u64>,
    /// Answers that wait for a change to be written, in the order of the changes.
    waiting: VecDeque<Unanswered>,
    /// Acknowledgements that were answered with an error, although they count.
    late: VecDeque<Acknowledged>,
}

struct Unanswered {
    version: u64,
    ticket: Ticket,
    reply: ShareReply,
    acknowledged: Vec<Acknowledged>,
}

/// Offsets that a member has acknowledged.
struct Acknowledged {
    member_id: String,
    first: i64,
    last: i64,
}

impl ShareLeader {
    /// Without any.
    pub fn new(machine: ShareMachine) -> Self {
        Self { machine, held: BTreeMap::new(), life: 0 }
    }

    /// The windows.
    pub fn windows(&self) -> &ShareMachine {
        &self.machine
    }

    /// A request to the leader of the partition, which this broker is in `leader_epoch`.
    pub fn ask(&mut self, event: ShareEvent, leader_epoch: i32, now: Now) -> LeaderEffects {
        let mut effects = Effects::default();
        match self.held.get(&event.key).map(|held| held.leader_epoch) {
            Some(known) if known > leader_epoch => {
                effects.reply(event.ticket, failed(&event.request, ErrorCode::NotLeaderOrFollower));
                return effects;
            }
            Some(known) if known < leader_epoch => {
                self.let_go(&event.key, ErrorCode::NotLeaderOrFollower, &mut effects);
            }
            _ => {}
        }
        let reads = matches!(event.request, ShareRequest::Next { .. });
        match self.held.get_mut(&event.key) {
            Some(LedPartition { loading: None, .. }) => self.step(event, now, &mut effects),
            _ if !reads => effects.reply(event.ticket, nothing_held(&event.request)),
            Some(LedPartition { loading: Some(asked), .. }) => asked.push(event),
            None => self.load(event.key.clone(), leader_epoch, vec![event], &mut effects),
        }
        effects
    }

    fn load(
        &mut self,
        key: ShareKey,
        leader_epoch: i32,
        asked: Vec<ShareEvent>,
        effects: &mut LeaderEffects,
    ) {
        let makes = asked.iter().any(begins);
        self.life += CHANGES_MAX;
        let life = self.life;
        self.held.insert(key.clone(), LedPartition::loading(leader_epoch, life, asked));
        effects.actions.push(LeaderAction::Load { key, leader_epoch, life, makes });
    }

    /// A state was read, or could not be.
    pub fn loaded(
        &mut self,
        key: &ShareKey,
        life: u64,
        makes: bool,
        outcome: Result<StoredState, ErrorCode>,
        now: Now,
    ) -> LeaderEffects {
        let mut effects = Effects::default();
        let held = self.held.get_mut(key).filter(|held| held.version == life);
        let Some((leader_epoch, asked)) =
            held.and_then(|held| held.loading.take().map(|asked| (held.leader_epoch, asked)))
        else {
            return effects;
        };
        let begun = match outcome {
            Ok(kept) if kept.start_offset != UNKNOWN => {
                self.machine.take_in(key.clone(), stored::partition_of(&kept));
                Ok(())
            }
            Ok(kept) => self.begin(key, kept.state_epoch, &asked, &mut effects),
            // The request that may begin it came after the read was sent.
            Err(ErrorCode::InvalidRequest) if !makes && asked.iter().any(begins) => {
                self.load(key.clone(), leader_epoch, asked, &mut effects);
                return effects;
            }
            Err(ErrorCode::InvalidRequest) => Err(ErrorCode::UnknownTopicOrPartition),
            Err(code) => Err(of_store(code)),
        };
        match begun {
            Ok(()) => asked.into_iter().for_each(|event| self.step(event, now, &mut effects)),
            Err(code) => {
                self.held.remove(key);
                refuse(asked, code, &mut effects);
            }
        }
        // Fetches that did not wait for it look again.
        effects.actions.push(LeaderAction::Wake(key.group_id.clone()));
        effects
    }

    /// Begins where the first request that may begin it says.
    fn begin(
        &mut self,
        key: &ShareKey,
        state_epoch: i32,
        asked: &[ShareEvent],
        effects: &mut LeaderEffects,
    ) -> Result<(), ErrorCode> {
        let first = asked.iter().find_map(|event| match event.request {
            ShareRequest::Next { begin: Some(offset), .. } => Some((event.settings, offset)),
            _ => None,
        });
        let (settings, offset) = first.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        self.machine.begin(key.clone(), settings, offset, state_epoch)?;
        if let Some(held) = self.held.get_mut(key) {
            (held.is_new, held.version) = (true, held.version + 1);
        }
        self.save(key, effects);
        Ok(())
    }

    /// A state was written, or could not be.
    pub fn saved(&mut self, key: &ShareKey, version: u64, outcome: Result<(), ErrorCode>) -> LeaderEffects {
        let mut effects = Effects::default();
        let held = self.held.get_mut(key).filter(|held| held.saving == Some(version));
        let Some(held) = held else { return effects };
        held.saving = None;
        match outcome {
            Ok(()) => {
                (held.saved, held.is_new) = (version, false);
                let start = self.machine.partition(key).map_or(0, super::SharePartition::start_offset);
                held.late.retain(|acknowledged| acknowledged.last >= start);
                for unanswered in held.written(version) {
                    effects.reply(unanswered.ticket, unanswered.reply);
                }
            }
            Err(code) if is_passing(code) => {
                for unanswered in held.written(version) {
                    effects.reply(
                        unanswered.ticket,
                        instead_of(&unanswered.reply, ErrorCode::CoordinatorNotAvailable),
                    );
                    held.late.extend(unanswered.acknowledged);
                }
                let over = held.late.len().saturating_sub(LATE_MAX);
                held.late.drain(..over);
            }
            Err(code) => {
                self.let_go(key, of_store(code), &mut effects);
                return effects;
            }
        }
        self.save(key, &mut effects);
        effects
    }

    /// When [`ShareLeader::tick`] has something to do, by the steady clock.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.machine.next_deadline_ms()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) -> LeaderEffects {
        let mut effects = Effects::default();
        let stepped = self.machine.tick(now);
        self.follow_up(stepped, None, Vec::new(), &mut effects);
        effects
    }

    /// Lets go of what this broker does not lead any more in the epoch in which it did.
    pub fn keep(&mut self, leads: impl Fn(&ShareKey) -> Option<i32>) -> LeaderEffects {
        let lost = self.held.iter().filter(|(key, held)| leads(key) != Some(held.leader_epoch));
        let lost: Vec<_> = lost.map(|(key, _)| key.clone()).collect();
        self.let_all_go(lost, ErrorCode::NotLeaderOrFollower)
    }

    /// Lets go of what is of a topic that is no more.
    pub fn forget_topic(&mut self, topic_id: &Uuid) -> LeaderEffects {
        let gone = self.held.keys().filter(|key| key.topic_id == *topic_id).cloned().collect();
        self.let_all_go(gone, ErrorCode::UnknownTopicId)
    }

    /// Another broker has set it: it is read anew.
    pub fn forget(&mut self, key: &ShareKey) -> LeaderEffects {
        self.let_all_go(vec![key.clone()], ErrorCode::CoordinatorNotAvailable)
    }

    fn let_all_go(&mut self, keys: Vec<ShareKey>, code: ErrorCode) -> LeaderEffects {
        let mut effects = Effects::default();
        keys.iter().for_each(|key| self.let_go(key, code, &mut effects));
        effects
    }

    fn let_go(&mut self, key: &ShareKey, code: ErrorCode, effects: &mut LeaderEffects) {
        self.machine.let_go(key);
        let Some(held) = self.held.remove(key) else { return };
        for unanswered in held.waiting {
            effects.reply(unanswered.ticket, instead_of(&unanswered.reply, code));
        }
        refuse(held.loading.unwrap_or_default(), code, effects);
        effects.actions.push(LeaderAction::Wake(key.group_id.clone()));
    }

    /// One that is here takes an event.
    fn step(&mut self, mut event: ShareEvent, now: Now, effects: &mut LeaderEffects) {
        let Some(held) = self.held.get_mut(&event.key) else {
            return effects.reply(event.ticket, nothing_held(&event.request));
        };
        let mut acknowledged = Vec::new();
        match &mut event.request {
            ShareRequest::Acknowledge { member_id, batches } => {
                batches.retain(|batch| !held.has_late(member_id, batch));
                let of = |batch: &AcknowledgementBatch| Acknowledged {
                    member_id: member_id.clone(),
                    first: batch.first_offset,
                    last: batch.last_offset,
                };
                acknowledged = batches.iter().map(of).collect();
            }
            ShareRequest::Release { member_id } => {
                held.late.retain(|acknowledged| acknowledged.member_id != *member_id)
            }
            ShareRequest::Refresh if held.version > held.saved || !held.waiting.is_empty() => {
                return effects.reply(event.ticket, ShareReply::Done(ErrorCode::None));
            }
            _ => {}
        }
        let key = event.key.clone();
        let stepped = self.machine.handle(event, now);
        self.follow_up(stepped, Some(&key), acknowledged, effects);
        if self.machine.partition(&key).is_none() {
            self.held.remove(&key);
        }
    }

    /// What follows a step (of the share partition `of`): writes, answers, fetches that look again.
    fn follow_up(
        &mut self,
        stepped: ShareEffects,
        of: Option<&ShareKey>,
        mut acknowledged: Vec<Acknowledged>,
        effects: &mut LeaderEffects,
    ) {
        let ShareEffects { changed, woken, replies } = stepped;
        effects.actions.extend(woken.into_iter().map(LeaderAction::Wake));
        for key in &changed {
            if let Some(held) = self.held.get_mut(key) {
                held.version += 1;
            }
        }
        for (ticket, reply) in replies {
            match of.and_then(|key| self.held.get_mut(key)) {
                Some(held) if held.has_to_write(&reply) => {
                    let (version, acknowledged) = (held.version, std::mem::take(&mut acknowledged));
                    held.waiting.push_back(Unanswered { version, ticket, reply, acknowledged });
                }
                _ => effects.reply(ticket, reply),
            }
        }
        changed.iter().for_each(|key| self.save(key, effects));
    }

    /// Begins to write the changes that are not written down, unless a write is under way.
    fn save(&mut self, key: &ShareKey, effects: &mut LeaderEffects) {
        let (Some(held), Some(partition)) = (self.held.get_mut(key), self.machine.partition(key)) else {
            return;
        };
        if held.saving.is_some() || held.version == held.saved {
            return;
        }
        held.saving = Some(held.version);
        let written = stored::written(partition, held.leader_epoch);
        effects.actions.push(LeaderAction::Save { key: key.clone(), version: held.version, written });
    }
}

impl LedPartition {
    fn loading(leader_epoch: i32, life: u64, asked: Vec<ShareEvent>) -> Self {
        Self {
            leader_epoch,
            loading: Some(asked),
            is_new: false,
            version: life,
            saved: life,
            saving: None,
            waiting: VecDeque::new(),
            late: VecDeque::new(),
        }
    }

    /// Whether an answer must wait for a write: it acknowledges records, or says where the group begins.
    fn has_to_write(&self, reply: &ShareReply) -> bool {
        match reply {
            ShareReply::Done(ErrorCode::None) => self.version > self.saved,
            ShareReply::Next(Ok(_)) => self.is_new,
            _ => false,
        }
    }

    /// The answers that wait for a change up to `version`.
    fn written(&mut self, version: u64) -> Vec<Unanswered> {
        let count = self.waiting.iter().take_while(|unanswered| unanswered.version <= version).count();
        self.waiting.drain(..count).collect()
    }

    /// Whether the member sent this acknowledgement before, and it counts.
    fn has_late(&self, member_id: &str, batch: &AcknowledgementBatch) -> bool {
        let within = |acknowledged: &Acknowledged| {
            acknowledged.first <= batch.first_offset && batch.last_offset <= acknowledged.last
        };
        self.late.iter().any(|acknowledged| acknowledged.member_id == member_id && within(acknowledged))
    }
}

fn begins(event: &ShareEvent) -> bool {
    matches!(event.request, ShareRequest::Next { begin: Some(_), .. })
}

/// Whether a write or a read that failed so may get through later.
pub fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut
            // The coordinator that keeps the state does not know the topic yet.
            | ErrorCode::UnknownTopicOrPartition
    )
}

/// What a member gets when a write or a read failed, as in Kafka.
fn of_store(code: ErrorCode) -> ErrorCode {
    match code {
        code if is_passing(code) => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::FencedLeaderEpoch | ErrorCode::FencedStateEpoch => ErrorCode::NotLeaderOrFollower,
        // It was deleted.
        ErrorCode::InvalidRequest => ErrorCode::UnknownTopicOrPartition,
        code => code,
    }
}

fn refuse(asked: Vec<ShareEvent>, code: ErrorCode, effects: &mut LeaderEffects) {
    for event in asked {
        effects.reply(event.ticket, failed(&event.request, code));
    }
}

/// The answer to a request that failed.
pub fn failed(request: &ShareRequest, code: ErrorCode) -> ShareReply {
    match request {
        ShareRequest::Next { .. } => ShareReply::Next(Err(code)),
        ShareRequest::Acquire { .. } => ShareReply::Acquired(Vec::new()),
        _ => ShareReply::Done(code),
    }
}

/// The answer of a share partition of which no member has a record.
fn nothing_held(request: &ShareRequest) -> ShareReply {
    match request {
        ShareRequest::Acknowledge { .. } => ShareReply::Done(ErrorCode::InvalidRecordState),
        request => failed(request, ErrorCode::None),
    }
}

fn instead_of(reply: &ShareReply, code: ErrorCode) -> ShareReply {
    match reply {
        ShareReply::Next(_) => ShareReply::Next(Err(code)),
        _ => ShareReply::Done(code),
    }
}
