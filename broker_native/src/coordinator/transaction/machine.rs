//! The transactional ids of one partition of `__transaction_state`.
use std::collections::HashMap;
use std::sync::Arc;

use super::metadata::Metadata;
use super::records;
use super::requests::{TxnAction, TxnEvent, TxnReply, TxnRequest};
use super::settings::Settings;
use super::state::State;
use crate::coordinator::{Effects, Entry, Machine, Ticket, Timers};
use crate::wire::ErrorCode;

/// Markers that could not be written are tried again after so long.
pub(super) const MARKER_RETRY_MS: i64 = 100;

/// What a step gives.
pub type TxnEffects = Effects<TxnReply, TxnAction>;

/// Gives out producer ids.
pub trait ProducerIdSource: Send + Sync + 'static {
    /// An id that nobody had before.
    ///
    /// # Errors
    /// What the producer is told.
    fn next(&self) -> Result<i64, ErrorCode>;
}

/// What a transactional id's deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// Follows from the state: a time-out, another try of the markers, or the end of the id.
    State,
    /// Whoever waits for the end of the transaction is told to come again.
    Waiting,
}

/// A batch that begins a transaction while the one before ends.
#[derive(Debug)]
pub(super) struct Waiting {
    pub ticket: Ticket,
    pub request: TxnRequest,
    pub until_ms: i64,
}

/// All transactional ids of one partition.
pub struct TransactionMachine {
    pub(super) settings: Arc<Settings>,
    pub(super) ids: Arc<dyn ProducerIdSource>,
    pub(super) transactions: HashMap<String, Metadata>,
    pub(super) timers: Timers<(String, Purpose)>,
    pub(super) waiting: HashMap<String, Vec<Waiting>>,
}

impl TransactionMachine {
    /// Without transactional ids.
    pub fn new(settings: Arc<Settings>, ids: Arc<dyn ProducerIdSource>) -> Self {
        Self {
            settings,
            ids,
            transactions: HashMap::new(),
            timers: Timers::default(),
            waiting: HashMap::new(),
        }
    }

    /// What is known of a transactional id.
    pub fn transaction(&self, transactional_id: &str) -> Option<&Metadata> {
        self.transactions.get(transactional_id)
    }

    /// Writes down where the id stands, and sets its deadline. Call it after every change.
    pub(super) fn changed(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        let metadata = self.transactions.get(transactional_id);
        // An id of more than 32 KiB is refused by the request's own layout.
        if let Ok(record) = records::record(transactional_id, metadata) {
            effects.record(record);
        }
        self.set_deadline(transactional_id);
    }

    /// Sets the deadline that follows from the state.
    pub(super) fn set_deadline(&mut self, transactional_id: &str) {
        let key = (transactional_id.to_owned(), Purpose::State);
        match self
            .transactions
            .get(transactional_id)
            .and_then(|metadata| self.deadline_ms(transactional_id, metadata))
        {
            Some(deadline_ms) => self.timers.set(key, deadline_ms),
            None => self.timers.cancel(&key),
        }
    }

    fn deadline_ms(&self, transactional_id: &str, metadata: &Metadata) -> Option<i64> {
        match metadata.state {
            State::Ongoing if metadata.never_times_out() => None,
            State::Ongoing => Some(metadata.start_ms.saturating_add(i64::from(metadata.timeout_ms))),
            state if state.can_expire() => {
                Some(metadata.last_update_ms.saturating_add(self.settings.expiration_ms(transactional_id)))
            }
            _ => None,
        }
    }

    /// Forgets an id that nobody used for long.
    fn expire(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        self.transactions.remove(transactional_id);
        self.changed(transactional_id, effects);
    }

    fn due(&mut self, transactional_id: &str, purpose: Purpose, now_ms: i64, effects: &mut TxnEffects) {
        let Some(state) = self.transactions.get(transactional_id).map(|metadata| metadata.state) else {
            return;
        };
        match (purpose, state) {
            (Purpose::Waiting, _) => self.give_up_waiting(transactional_id, now_ms, effects),
            (Purpose::State, State::Ongoing) => self.fence(transactional_id, now_ms, effects),
            (Purpose::State, state) if state.is_ending() => self.send_markers(transactional_id, effects),
            (Purpose::State, _) => self.expire(transactional_id, effects),
        }
    }
}

impl Machine for TransactionMachine {
    type Event = TxnEvent;
    type Reply = TxnReply;
    type Action = TxnAction;

    fn replay(&mut self, entry: &Entry) -> Result<(), String> {
        let Entry::Record { record, .. } = entry else { return Ok(()) };
        match records::read(record)? {
            (transactional_id, Some(metadata)) => self.transactions.insert(transactional_id, metadata),
            (transactional_id, None) => self.transactions.remove(&transactional_id),
        };
        Ok(())
    }

    fn loaded(&mut self, now_ms: i64) -> TxnEffects {
        let mut effects = Effects::default();
        let grace_ms = self.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms;
        let mut transactional_ids: Vec<String> = self.transactions.keys().cloned().collect();
        transactional_ids.sort_unstable();
        for transactional_id in transactional_ids {
            let Some(metadata) = self.transactions.get(&transactional_id) else { continue };
            if metadata.state.is_ending() {
                self.send_markers(&transactional_id, &mut effects);
            } else if let Some(deadline_ms) = self.deadline_ms(&transactional_id, metadata) {
                // Its producer could not end it while nobody was here.
                let soonest_ms = now_ms.saturating_add(grace_ms);
                self.timers.set((transactional_id, Purpose::State), deadline_ms.max(soonest_ms));
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

    fn handle(&mut self, event: TxnEvent, now_ms: i64) -> TxnEffects {
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

    fn tick(&mut self, now_ms: i64) -> TxnEffects {
        let mut effects = Effects::default();
        while let Some((transactional_id, purpose)) = self.timers.pop_due(now_ms) {
            self.due(&transactional_id, purpose, now_ms, &mut effects);
        }
        effects
    }
}
