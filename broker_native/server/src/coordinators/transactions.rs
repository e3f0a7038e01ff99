//! What the machines of transactions need of the server: producer ids.
use super::shell::Coordinator;
use crate::state::producer_ids::{NoId, ProducerIds};
use pylog_coordinator::transaction::{ProducerIdSource, TransactionMachine};
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_wire::ErrorCode;

/// The machines of `__transaction_state`.
pub type Transactions = Coordinator<TransactionMachine>;

impl ProducerIdSource for ProducerIds {
    fn next(&self) -> Result<i64, ErrorCode> {
        Self::next(self).map_err(|error| match error {
            NoId::Disk(error) => {
                warn!(target: COORDINATOR, "no producer id could be reserved: {error}");
                ErrorCode::KafkaStorageError
            }
            // As Kafka: producers come again.
            NoId::Asked => ErrorCode::CoordinatorLoadInProgress,
        })
    }
}
