//! One machine and its log under one lock.
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use super::alarm::NEVER_MS;
use super::commit::{is_acknowledged, when_acknowledged};
use super::commit_timeouts::Unanswered;
use super::load::load;
use super::waiting::{Sender, Waiting};
use crate::errors::of_storage;
use crate::state::replication::leader_state::LeaderState;
use pylog_coordinator::{Effects, LogEntry, Machine, Now, Ticket};
use pylog_log::loggers::COORDINATOR;
use pylog_log::{BUG, error, warn};
use pylog_record::{BatchBuilder, Codec};
use pylog_storage::{AppendOptions, Appended, PartitionLog, StorageError, TxnMarker};
use pylog_wire::ErrorCode;

/// One partition of an internal topic that this broker leads.
pub struct Shard<M: Machine> {
    /// Its number.
    pub partition: i32,
    /// The epoch in which this broker leads it.
    pub leader_epoch: i32,
    /// Its log. Nobody else appends to it.
    pub log: Arc<PartitionLog>,
    /// The machine's next deadline.
    deadline_ms: AtomicI64,
    /// Grows each time a machine is loaded: an action's outcome goes back only to the machine that began it.
    life: AtomicU64,
    /// Who copies the log.
    leader_state: RwLock<Option<Arc<LeaderState>>>,
    state: Mutex<State<M>>,
}

enum State<M: Machine> {
    Loading,
    Ready(Box<Live<M>>),
    /// The log cannot be read or written until the broker is restarted.
    Broken,
    /// Another shard has taken over, or the server stops.
    Gone,
}

/// A machine that works.
struct Live<M: Machine> {
    machine: M,
    next_ticket: u64,
    waiting: HashMap<Ticket, Sender<M::Reply>>,
    /// Last record in the log: what is answered later must not become visible before it is acknowledged.
    last_offset: Option<i64>,
}

/// What is to be done without the lock once everything in the log is acknowledged.
pub struct After<M: Machine> {
    replies: Vec<(Sender<M::Reply>, M::Reply)>,
    actions: Vec<M::Action>,
}

/// How a step ended.
pub struct Stepped<M: Machine> {
    /// The caller's own answer, when it is there and may be sent.
    mine: Option<M::Reply>,
    /// The caller's own answer when it is to come.
    later: Option<oneshot::Receiver<Result<M::Reply, ErrorCode>>>,
    after: After<M>,
    /// Wait for this record first.
    until: Option<i64>,
}

/// Starts what a machine asks for.
pub trait Start<M: Machine>: Send + Sync {
    /// Starts `action`; never blocks.
    fn start(&self, partition: i32, action: M::Action);

    /// Does `work` soon, in another place of the runtime: for callers that may hold a machine's lock.
    fn later(&self, work: Box<dyn FnOnce() + Send>);
}

impl<M: Machine> Shard<M> {
    /// To be loaded.
    pub fn new(partition: i32, leader_epoch: i32, log: Arc<PartitionLog>) -> Self {
        Self {
            partition,
            leader_epoch,
            log,
            deadline_ms: AtomicI64::new(NEVER_MS),
            life: AtomicU64::new(0),
            leader_state: RwLock::new(None),
            state: Mutex::new(State::Loading),
        }
    }

    /// When the machine has something to do, by the steady clock.
    pub fn deadline_ms(&self) -> i64 {
        self.deadline_ms.load(Ordering::Acquire)
    }

    /// Which machine works here: it has another number after it was loaded again.
    pub fn life(&self) -> u64 {
        self.life.load(Ordering::Acquire)
    }

    /// Takes note of who copies the log.
    pub fn set_leader_state(&self, leader_state: Option<Arc<LeaderState>>) {
        *self.leader_state.write() = leader_state;
    }

    /// Whether fewer than `min.insync.replicas` are in sync. What the machine writes by itself is written all the same, and
    /// counts later.
    fn takes_nothing(&self) -> bool {
        self.leader_state.read().as_ref().is_some_and(|leader_state| leader_state.is_under_min_isr())
    }

    /// Hands the machine an event whose answer somebody waits for.
    ///
    /// # Errors
    /// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
    pub fn call(&self, make: impl FnOnce(Ticket) -> M::Event, now: Now) -> Result<Stepped<M>, ErrorCode> {
        let full = self.takes_nothing();
        self.step(now, true, |machine, ticket| {
            let event = make(ticket);
            match full && M::writes(&event) {
                true => Err(ErrorCode::CoordinatorNotAvailable),
                false => Ok(machine.handle(event, now)),
            }
        })
    }

    /// Runs `step` on the machine; nobody waits for its answer.
    ///
    /// # Errors
    /// As [`Shard::call`].
    pub fn run(
        &self,
        now: Now,
        step: impl FnOnce(&mut M) -> Effects<M::Reply, M::Action>,
    ) -> Result<Stepped<M>, ErrorCode> {
        self.step(now, false, |machine, _ticket| Ok(step(machine)))
    }

    /// Looks at the machine.
    ///
    /// # Errors
    /// As [`Shard::call`].
    pub fn look<T>(&self, look: impl FnOnce(&M) -> T) -> Result<T, ErrorCode> {
        match &*self.state.lock() {
            State::Ready(live) => Ok(look(&live.machine)),
            other => Err(refusal(other)),
        }
    }

    /// Loads the machine that `make` makes, if it is still wanted.
    pub fn load(&self, make: impl FnOnce() -> M, now: Now) -> Option<Stepped<M>> {
        if !matches!(&*self.state.lock(), State::Loading) {
            return None;
        }
        // Nobody appends while the state is Loading, so the log stands still without the lock.
        let mut machine = make();
        let loaded = catch_unwind(AssertUnwindSafe(|| load(&mut machine, &self.log)));
        let loaded = loaded.map_err(|_panic| "a bug of the broker (see the panic above)".to_owned());
        let loaded = loaded.and_then(|outcome| outcome);
        let mut state = self.state.lock();
        if !matches!(&*state, State::Loading) {
            return None;
        }
        if let Err(error) = loaded {
            let partition = self.log.topic_partition();
            error!(target: COORDINATOR, %partition, "the coordinator of {partition} cannot load its log: {error}");
            *state = State::Broken;
            return None;
        }
        // What another leader wrote last may still wait for the in-sync replicas.
        let last_offset = self.log.offsets().log_end_offset.checked_sub(1).filter(|&last| last >= 0);
        *state =
            State::Ready(Box::new(Live { machine, next_ticket: 0, waiting: HashMap::new(), last_offset }));
        self.life.fetch_add(1, Ordering::AcqRel);
        drop(state);
        self.run(now, |machine| machine.loaded(now)).ok()
    }

    /// Ends a producer's transaction in this partition: the marker is written and given to the machine.
    ///
    /// # Errors
    /// NOT_LEADER_OR_FOLLOWER when the machine is not here or not loaded: the marker is to be sent again. What the log says.
    pub fn append_marker(&self, marker: TxnMarker) -> Result<Appended, ErrorCode> {
        let mut state = self.state.lock();
        let State::Ready(live) = &mut *state else { return Err(ErrorCode::NotLeaderOrFollower) };
        let how = AppendOptions::coordinator(self.leader_epoch);
        let appended = self.log.append_marker(marker, how).map_err(|error| of_storage(&error))?;
        live.last_offset = Some(appended.last_offset);
        let TxnMarker { producer_id, producer_epoch, marker, .. } = marker;
        let entry = LogEntry::Marker { producer_id, producer_epoch, marker };
        match catch_unwind(AssertUnwindSafe(|| live.machine.replay(&entry))) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => log_unreadable(&self.log, &why),
            // The marker is written: the machine finds it when it is loaded.
            Err(_panic) => _ = self.fail(&mut state, Effects::default(), ErrorCode::UnknownServerError, BUG),
        }
        Ok(appended)
    }

    /// Ends the shard: all requests that wait are answered NOT_COORDINATOR.
    pub fn end(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Gone);
        self.deadline_ms.store(NEVER_MS, Ordering::Release);
        drop(before);
    }

    /// Whether the machine is to be loaded.
    pub fn is_loading(&self) -> bool {
        matches!(&*self.state.lock(), State::Loading)
    }

    fn step(
        &self,
        now: Now,
        waits: bool,
        step: impl FnOnce(&mut M, Ticket) -> Result<Effects<M::Reply, M::Action>, ErrorCode>,
    ) -> Result<Stepped<M>, ErrorCode> {
        let mut state = self.state.lock();
        let State::Ready(live) = &mut *state else { return Err(refusal(&state)) };
        let ticket = Ticket(live.next_ticket);
        live.next_ticket += 1;
        let Ok(effects) = catch_unwind(AssertUnwindSafe(|| step(&mut live.machine, ticket))) else {
            return Err(self.fail(&mut state, Effects::default(), ErrorCode::UnknownServerError, BUG));
        };
        let effects = effects?;
        if !effects.records.is_empty() {
            let appended = catch_unwind(AssertUnwindSafe(|| self.append(&effects, now.wall_ms)));
            let Ok(appended) = appended else {
                return Err(self.fail(&mut state, effects, ErrorCode::UnknownServerError, BUG));
            };
            match appended {
                Ok(last_offset) => {
                    live.last_offset = Some(last_offset);
                    live.replay_transactional(&effects, last_offset, now.wall_ms, &self.log);
                }
                // The machine has not changed: it waits for the replay.
                Err(error) if effects.transaction.is_some() && is_refusal(&error) => {
                    return Err(of_append(&error));
                }
                Err(error) => {
                    let (code, why) = (of_append(&error), error.to_string());
                    return Err(self.fail(&mut state, effects, code, &why));
                }
            }
        }
        let deadline_ms = live.machine.next_deadline_ms().unwrap_or(NEVER_MS);
        self.deadline_ms.store(deadline_ms, Ordering::Release);
        let until = live.last_offset.filter(|&last| !is_acknowledged(&self.log, last));
        Ok(live.stepped(effects, waits.then_some(ticket), until))
    }

    /// Appends the records as one batch; gives the offset of the last.
    fn append(&self, effects: &Effects<M::Reply, M::Action>, now_ms: i64) -> Result<i64, StorageError> {
        let bytes = effects
            .records
            .iter()
            .map(|record| record.key.len() + record.value.as_ref().map_or(0, |v| v.len()));
        let mut builder = BatchBuilder::with_capacity(
            /* header and framing */ 96 + bytes.map(|b| b + 32).sum::<usize>(),
        );
        if let Some((producer_id, producer_epoch)) = effects.transaction {
            builder.set_producer(producer_id, producer_epoch, /* no sequence */ -1);
            builder.set_transactional(true);
        }
        let invalid = |error: pylog_record::BatchError| StorageError::InvalidBatch {
            at: self.log.topic_partition().clone(),
            reason: error.to_string(),
        };
        for record in &effects.records {
            builder.append(now_ms, Some(&record.key), record.value.as_deref(), &[]).map_err(invalid)?;
        }
        let mut batch = builder.finish(Codec::None).map_err(invalid)?;
        let how = AppendOptions { now_ms: Some(now_ms), ..AppendOptions::coordinator(self.leader_epoch) };
        Ok(self.log.append(&mut batch, how)?.last_offset)
    }

    /// The machine is ahead of its log: it is thrown away, and to be loaded again. Its answers to this step become `code`.
    fn fail(
        &self,
        state: &mut State<M>,
        effects: Effects<M::Reply, M::Action>,
        code: ErrorCode,
        why: &str,
    ) -> ErrorCode {
        let partition = self.log.topic_partition();
        warn!(target: COORDINATOR, %partition, "the coordinator of {partition} loads its log again: {why}");
        let next = if self.log.is_poisoned() { State::Broken } else { State::Loading };
        if let State::Ready(mut live) = std::mem::replace(state, next) {
            for (ticket, _) in effects.replies {
                if let Some(sender) = live.waiting.remove(&ticket) {
                    // The receiver may have gone away: nobody waits for the answer then.
                    let _ = sender.send(Err(code));
                }
            }
        }
        self.deadline_ms.store(NEVER_MS, Ordering::Release);
        code
    }
}

/// A machine refused a record that it made itself.
fn log_unreadable(log: &PartitionLog, why: &str) {
    let partition = log.topic_partition();
    warn!(target: COORDINATOR, %partition, "the coordinator of {partition} cannot read a record that it wrote itself: {why}");
}

impl<M: Machine> Live<M> {
    /// The machine leaves transactional records alone until they are written, because a fenced producer's are not.
    fn replay_transactional(
        &mut self,
        effects: &Effects<M::Reply, M::Action>,
        last_offset: i64,
        timestamp_ms: i64,
        log: &PartitionLog,
    ) {
        if effects.transaction.is_none() {
            return;
        }
        let first = last_offset + 1 - i64::try_from(effects.records.len()).unwrap_or(0);
        for (offset, record) in (first..).zip(&effects.records) {
            let record = record.clone();
            let entry = LogEntry::Record { offset, timestamp_ms, transaction: effects.transaction, record };
            if let Err(why) = self.machine.replay(&entry) {
                log_unreadable(log, &why);
            }
        }
    }

    fn stepped(
        &mut self,
        effects: Effects<M::Reply, M::Action>,
        mine: Option<Ticket>,
        until: Option<i64>,
    ) -> Stepped<M> {
        let mut stepped = Stepped {
            mine: None,
            later: None,
            after: After { replies: Vec::new(), actions: effects.actions },
            until,
        };
        let answers_now = until.is_none();
        let mut sender = None;
        if let Some(ticket) = mine {
            let is_answered = answers_now && effects.replies.iter().any(|(answered, _)| *answered == ticket);
            if !is_answered {
                let (send, receive) = oneshot::channel();
                stepped.later = Some(receive);
                sender = Some(send);
            }
        }
        if let (Some(ticket), Some(sender)) = (mine, sender) {
            self.waiting.insert(ticket, sender);
        }
        for (ticket, reply) in effects.replies {
            if Some(ticket) == mine && answers_now {
                stepped.mine = Some(reply);
            } else if let Some(sender) = self.waiting.remove(&ticket) {
                stepped.after.replies.push((sender, reply));
            }
        }
        stepped
    }
}

impl<M: Machine> Stepped<M>
where
    M::Action: 'static,
{
    /// Sends and starts what is due, without any lock; gives the caller's own answer, and the answers that wait to be
    /// acknowledged.
    #[allow(clippy::type_complexity)]
    pub fn finish(
        self,
        shard: &Shard<M>,
        start: &Arc<dyn Start<M>>,
    ) -> (Waiting<M::Reply>, Option<Arc<Unanswered<M::Reply>>>) {
        let Self { mine, later, after, until } = self;
        let mut unanswered = None;
        match until {
            None => after.happen(shard.partition, start),
            Some(_) if after.is_nothing() => {}
            Some(offset) => unanswered = Some(after.happen_when_acknowledged(shard, offset, start)),
        }
        let waiting = match (mine, later) {
            (Some(reply), _) => Waiting::now(Ok(reply)),
            (None, Some(receiver)) => Waiting::Later(receiver),
            (None, None) => Waiting::now(Err(ErrorCode::NotCoordinator)),
        };
        (waiting, unanswered)
    }
}

impl<M: Machine> After<M>
where
    M::Action: 'static,
{
    /// Does what is due when the record at `offset` counts. When it never will, the senders are dropped: NOT_COORDINATOR.
    fn happen_when_acknowledged(
        self,
        shard: &Shard<M>,
        offset: i64,
        start: &Arc<dyn Start<M>>,
    ) -> Arc<Unanswered<M::Reply>> {
        let (partition, start) = (shard.partition, Arc::clone(start));
        let unanswered = Arc::new(Unanswered::new(self.replies));
        let (replies, actions) = (Arc::clone(&unanswered), self.actions);
        // An append moves the high watermark where nobody else is in sync, and is done with a machine's lock held.
        let act = move || {
            let starter = Arc::clone(&start);
            let all = move || actions.into_iter().for_each(|action| starter.start(partition, action));
            start.later(Box::new(all));
        };
        let topic_partition = shard.log.topic_partition().clone();
        let done = move |outcome: Result<(), StorageError>| match outcome {
            Ok(()) => {
                replies.answer();
                act();
            }
            Err(error) => {
                replies.forget();
                warn!(
                    target: COORDINATOR, partition = %topic_partition,
                    "records of the coordinator in {topic_partition} are not acknowledged: {error}"
                );
            }
        };
        when_acknowledged(&shard.log, shard.leader_epoch, offset, Box::new(done));
        unanswered
    }
}

impl<M: Machine> After<M> {
    fn is_nothing(&self) -> bool {
        self.replies.is_empty() && self.actions.is_empty()
    }

    fn happen(self, partition: i32, start: &Arc<dyn Start<M>>) {
        Unanswered::new(self.replies).answer();
        for action in self.actions {
            start.start(partition, action);
        }
    }
}

fn refusal<M: Machine>(state: &State<M>) -> ErrorCode {
    match state {
        State::Loading => ErrorCode::CoordinatorLoadInProgress,
        State::Broken => ErrorCode::CoordinatorNotAvailable,
        State::Ready(_) | State::Gone => ErrorCode::NotCoordinator,
    }
}

/// Whether the log does not want the batch, and nothing is wrong with the log.
fn is_refusal(error: &StorageError) -> bool {
    matches!(error, StorageError::InvalidProducerEpoch { .. } | StorageError::RecordTooLarge { .. })
}

/// The error for a client when the records could not be appended, as in Kafka.
fn of_append(error: &StorageError) -> ErrorCode {
    match of_storage(error) {
        ErrorCode::MessageTooLarge => ErrorCode::UnknownServerError,
        ErrorCode::InvalidProducerEpoch => ErrorCode::InvalidProducerEpoch,
        _ => ErrorCode::NotCoordinator,
    }
}
