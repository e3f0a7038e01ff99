//! What tools see of transactions.
use super::machine::TransactionMachine;
use super::metadata::TxnMetadata;
use super::state::TxnState;
use crate::Now;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_transactions::{TopicData, TransactionState};
use pylog_wire::messages::list_transactions::TransactionState as Listed;

/// Which transactional ids are listed; an empty list lets all through.
#[derive(Debug, Clone, Default)]
pub struct TxnFilter {
    /// Only these states.
    pub states: Vec<TxnState>,
    /// Only these producers.
    pub producer_ids: Vec<i64>,
    /// Only transactions that are open for longer; negative: all.
    pub duration_ms: i64,
}

impl TxnFilter {
    fn lets_through(&self, metadata: &TxnMetadata, age_ms: impl FnOnce() -> i64) -> bool {
        (self.states.is_empty() || self.states.contains(&metadata.state))
            && (self.producer_ids.is_empty() || self.producer_ids.contains(&metadata.producer.id))
            && (self.duration_ms < 0 || self.is_open_long(metadata, age_ms))
    }

    fn is_open_long(&self, metadata: &TxnMetadata, age_ms: impl FnOnce() -> i64) -> bool {
        let open = metadata.state == TxnState::Ongoing || metadata.state.is_ending();
        open && age_ms() > self.duration_ms
    }
}

impl TransactionMachine {
    /// The ids that the filter and `name_matches` let through.
    pub fn list(&self, filter: &TxnFilter, name_matches: impl Fn(&str) -> bool, now: Now) -> Vec<Listed> {
        let wanted = self.transactions.iter().filter(|(transactional_id, metadata)| {
            metadata.producer.epoch >= 0
                && filter.lets_through(metadata, || self.age_ms(transactional_id, metadata, now))
                && name_matches(transactional_id)
        });
        wanted
            .map(|(transactional_id, metadata)| Listed {
                transactional_id: transactional_id.clone(),
                producer_id: metadata.producer.id,
                transaction_state: metadata.state.name().to_owned(),
            })
            .collect()
    }

    /// How long a transaction is open: by the steady clock while it waits for its program, whatever the time of the day is
    /// set to.
    fn age_ms(&self, transactional_id: &str, metadata: &TxnMetadata, now: Now) -> i64 {
        let begun = self.begun.get(transactional_id).filter(|(start_ms, _)| *start_ms == metadata.start_ms);
        let begun_ms = begun.map_or_else(|| now.past(metadata.start_ms), |(_, begun_ms)| *begun_ms);
        now.steady_ms.saturating_sub(begun_ms)
    }

    pub(super) fn describe(&self, transactional_id: String) -> TransactionState {
        let error = |error: ErrorCode, transactional_id| TransactionState {
            error_code: error.code(),
            transactional_id,
            ..Default::default()
        };
        if transactional_id.is_empty() {
            return error(ErrorCode::InvalidRequest, transactional_id);
        }
        let Some(metadata) = self.transactions.get(&transactional_id) else {
            return error(ErrorCode::TransactionalIdNotFound, transactional_id);
        };
        let topics = metadata.partitions.iter().map(|(topic, numbers)| TopicData {
            topic: topic.clone(),
            partitions: numbers.iter().copied().collect(),
        });
        TransactionState {
            error_code: ErrorCode::None.code(),
            transactional_id,
            transaction_state: metadata.state.name().to_owned(),
            transaction_timeout_ms: metadata.timeout_ms,
            transaction_start_time_ms: metadata.start_ms,
            producer_id: metadata.producer.id,
            producer_epoch: metadata.producer.epoch,
            topics: topics.collect(),
        }
    }
}
