//! The transactional ids of one partition of `__transaction_state`.
use std::collections::HashMap;
use std::sync::Arc;

use super::metadata::{TxnMetadata, cost};
use super::records;
use super::requests::{TxnAction, TxnEvent, TxnReply, TxnRequest};
use super::settings::Settings;
use super::state::TxnState;
use crate::{Effects, LogEntry, Machine, Now, Room, Ticket, Timers};
use pylog_wire::ErrorCode;

/// Time until markers that could not be written are tried again.
pub(super) const MARKER_RETRY_MS: i64 = 100;

/// What a step gives.
pub type TxnEffects = Effects<TxnReply, TxnAction>;

/// Gives out producer ids.
pub trait ProducerIdSource: Send + Sync + 'static {
    /// An id that was never given out before.
    ///
    /// # Errors
    /// What the producer gets as its answer.
    fn next(&self) -> Result<i64, ErrorCode>;
}

/// Writes a line into the broker's log.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// What a transactional id's deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// Follows from the state: a time-out, another try of the markers, or the end of the id.
    Deadline,
    /// A request that waits for the end of the transaction is answered: it is to come again.
    WaitOver,
    /// It is open for long: a line in the broker's log.
    Long,
}

/// A batch that begins a transaction while the one before ends.
#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub ticket: Ticket,
    pub request: TxnRequest,
    /// By the steady clock.
    pub until_ms: i64,
}

/// All transactional ids of one partition.
pub struct TransactionMachine {
    pub(super) settings: Arc<Settings>,
    pub(super) ids: Arc<dyn ProducerIdSource>,
    pub(super) transactions: HashMap<String, TxnMetadata>,
    pub(super) timers: Timers<(String, Purpose)>,
    pub(super) waiting: HashMap<String, Vec<WaitingRequest>>,
    /// When the step that runs was begun.
    pub(super) now: Now,
    /// Of each open transaction, when it began: as it is written down, and by the steady clock.
    pub(super) begun: HashMap<String, (i64, i64)>,
    pub(super) room: Room,
    pub(super) warn: Warn,
}

impl Drop for TransactionMachine {
    fn drop(&mut self) {
        self.room.changed(self.transactions.values().map(|metadata| metadata.bytes).sum(), 0);
    }
}

impl TransactionMachine {
    /// Without transactional ids; `room` is for those of all machines. `warn` is called with a line for the broker's log.
    pub fn new(settings: Arc<Settings>, ids: Arc<dyn ProducerIdSource>, room: Room, warn: Warn) -> Self {
        Self {
            settings,
            ids,
            transactions: HashMap::new(),
            timers: Timers::default(),
            waiting: HashMap::new(),
            now: Now { wall_ms: 0, steady_ms: 0 },
            begun: HashMap::new(),
            room,
            warn,
        }
    }

    /// What is known of a transactional id.
    pub fn transaction(&self, transactional_id: &str) -> Option<&TxnMetadata> {
        self.transactions.get(transactional_id)
    }

    /// Writes down the id's state, and sets its deadline. Call it after every change.
    pub(super) fn changed(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        let metadata = self.transactions.get(transactional_id);
        // An id of more than 32 KiB is refused by the request's own layout.
        if let Ok(record) = records::record(transactional_id, metadata) {
            effects.record(record);
        }
        self.recount(transactional_id);
        self.set_deadline(transactional_id);
    }

    /// An id that is known may cost more or less than before.
    fn recount(&mut self, transactional_id: &str) {
        if let Some(metadata) = self.transactions.get_mut(transactional_id) {
            let after = cost(transactional_id, &metadata.partitions);
            let before = std::mem::replace(&mut metadata.bytes, after);
            self.room.changed(before, after);
        }
    }

    fn forget(&mut self, transactional_id: &str) {
        if let Some(metadata) = self.transactions.remove(transactional_id) {
            self.room.changed(metadata.bytes, 0);
        }
    }

    /// Sets the deadline that follows from the state that the id entered now.
    pub(super) fn set_deadline(&mut self, transactional_id: &str) {
        let key = (transactional_id.to_owned(), Purpose::Deadline);
        match self.deadline_ms(transactional_id, self.now.wall_ms) {
            Some(deadline_ms) => self.timers.set(key, deadline_ms),
            None => self.timers.cancel(&key),
        }
        self.watch_long(transactional_id);
    }

    /// The deadline that follows from the state, which was entered at `since_ms` of the wall clock, by the steady clock.
    fn deadline_ms(&mut self, transactional_id: &str, since_ms: i64) -> Option<i64> {
        let now = self.now;
        let metadata = self.transactions.get(transactional_id);
        let Some(metadata) = metadata.filter(|metadata| metadata.state == TxnState::Ongoing) else {
            self.begun.remove(transactional_id);
            let expires = metadata.is_some_and(|metadata| metadata.state.can_expire());
            let expiration_ms = self.settings.expiration_ms(transactional_id);
            return expires.then(|| now.past(since_ms).saturating_add(expiration_ms));
        };
        let noted = self.begun.get(transactional_id).filter(|(start_ms, _)| *start_ms == metadata.start_ms);
        let begun_ms = noted.map_or_else(|| now.past(metadata.start_ms), |(_, begun_ms)| *begun_ms);
        self.begun.insert(transactional_id.to_owned(), (metadata.start_ms, begun_ms));
        (!metadata.never_times_out()).then(|| begun_ms.saturating_add(i64::from(metadata.timeout_ms)))
    }

    /// Forgets an id that was not used for the time of its expiration.
    fn expire(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        self.forget(transactional_id);
        self.changed(transactional_id, effects);
    }

    fn due(&mut self, transactional_id: &str, purpose: Purpose, effects: &mut TxnEffects) {
        let Some(state) = self.transactions.get(transactional_id).map(|metadata| metadata.state) else {
            return;
        };
        match (purpose, state) {
            (Purpose::WaitOver, _) => self.give_up_waiting(transactional_id, effects),
            (Purpose::Long, _) => self.is_open_long(transactional_id),
            (Purpose::Deadline, TxnState::Ongoing) => self.fence(transactional_id, self.now.wall_ms, effects),
            (Purpose::Deadline, state) if state.is_ending() => self.send_markers(transactional_id, effects),
            (Purpose::Deadline, _) => self.expire(transactional_id, effects),
        }
    }
}

impl Machine for TransactionMachine {
    type Event = TxnEvent;
    type Reply = TxnReply;
    type Action = TxnAction;

    fn replay(&mut self, entry: &LogEntry) -> Result<(), String> {
        let LogEntry::Record { record, .. } = entry else { return Ok(()) };
        let (transactional_id, metadata) = records::read(record)?;
        self.forget(&transactional_id);
        if let Some(metadata) = metadata {
            self.transactions.insert(transactional_id.clone(), metadata);
            self.recount(&transactional_id);
        }
        Ok(())
    }

    fn loaded(&mut self, now: Now) -> TxnEffects {
        self.now = now;
        let mut effects = Effects::default();
        let grace_ms = self.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms;
        let mut transactional_ids: Vec<String> = self.transactions.keys().cloned().collect();
        transactional_ids.sort_unstable();
        for transactional_id in transactional_ids {
            let Some(metadata) = self.transactions.get(&transactional_id) else { continue };
            if metadata.state.is_ending() {
                self.send_markers(&transactional_id, &mut effects);
                continue;
            }
            let since_ms = metadata.last_update_ms;
            if let Some(deadline_ms) = self.deadline_ms(&transactional_id, since_ms) {
                // Its producer could not end it while there was no coordinator.
                let soonest_ms = now.steady_ms.saturating_add(grace_ms);
                self.timers.set((transactional_id, Purpose::Deadline), deadline_ms.max(soonest_ms));
            } else {
                self.watch_long(&transactional_id);
            }
        }
        effects
    }

    fn writes(event: &TxnEvent) -> bool {
        match event {
            TxnEvent::Asked { request: TxnRequest::AddPartitions { transaction, .. }, .. } => {
                !transaction.verify_only
            }
            TxnEvent::Asked { request: TxnRequest::Describe(_), .. } => false,
            TxnEvent::Asked { .. } | TxnEvent::MarkersWritten(_) => true,
        }
    }

    fn handle(&mut self, event: TxnEvent, now: Now) -> TxnEffects {
        self.now = now;
        let now_ms = now.wall_ms;
        let mut effects = Effects::default();
        match event {
            TxnEvent::MarkersWritten(written) => self.markers_written(written, now_ms, &mut effects),
            TxnEvent::Asked { ticket, caller, request } => match request {
                TxnRequest::InitProducerId(request) => {
                    let answer = self.init_producer_id(&request, now_ms, &mut effects);
                    effects.reply(ticket, TxnReply::InitProducerId(answer));
                }
                TxnRequest::AddPartitions { .. } => self.add_or_wait(ticket, request, now_ms, &mut effects),
                TxnRequest::EndTxn(request) => {
                    let answer = self.end_txn(&request, caller.version, now_ms, &mut effects);
                    effects.reply(ticket, TxnReply::EndTxn(answer));
                }
                TxnRequest::Describe(transactional_id) => {
                    effects.reply(ticket, TxnReply::Describe(self.describe(transactional_id)));
                }
            },
        }
        effects
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_ms()
    }

    fn tick(&mut self, now: Now) -> TxnEffects {
        self.now = now;
        let mut effects = Effects::default();
        while let Some((transactional_id, purpose)) = self.timers.pop_due(now.steady_ms) {
            self.due(&transactional_id, purpose, &mut effects);
        }
        effects
    }
}
