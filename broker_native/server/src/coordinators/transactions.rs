//! What the machines of transactions need of the server: producer ids; and how the rest of the server asks them about
//! partitions.
use super::Coordinators;
use super::shell::Coordinator;
use super::waiting::Waiting;
use crate::notice::notice;
use crate::state::producer_ids::{NoId, ProducerIds};
use pylog_coordinator::Caller;
use pylog_coordinator::transaction::{
    ProducerIdSource, TransactionMachine, TransactionVersion, TxnEvent, TxnReply, TxnRequest,
};
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;

/// The machines of `__transaction_state`.
pub type Transactions = Coordinator<TransactionMachine>;

impl ProducerIdSource for ProducerIds {
    fn next(&self) -> Result<i64, ErrorCode> {
        Self::next(self).map_err(|error| match error {
            NoId::Disk(error) => {
                notice(&format!("no producer id could be reserved: {error}"));
                ErrorCode::KafkaStorageError
            }
            // As Kafka: producers come again.
            NoId::Asked => ErrorCode::CoordinatorLoadInProgress,
        })
    }
}

impl Coordinators {
    /// Asks the coordinator of a transaction whether it holds partitions, or has it take them in. What is asked has
    /// happened when this returns; the answer usually is there, too.
    pub fn ask_for_partitions(
        &self,
        caller: Caller,
        transaction: AddPartitionsToTxnTransaction,
        transaction_version: TransactionVersion,
        patient: bool,
    ) -> Waiting<TxnReply> {
        let transactional_id = transaction.transactional_id.clone();
        let request = TxnRequest::AddPartitions { transaction, transaction_version, patient };
        self.transactions.call(&transactional_id, |ticket| TxnEvent::Asked { ticket, caller, request })
    }
    /// As [`Coordinators::ask_for_partitions`] for the leader of a partition whose log is about to take the first batch of a
    /// transaction: the coordinator may be another broker's.
    pub fn ask_for_log(
        &self,
        caller: Caller,
        transaction: AddPartitionsToTxnTransaction,
    ) -> Waiting<TxnReply> {
        if let Some(elsewhere) = &self.elsewhere {
            let number = self.transactions.partition_of(&transaction.transactional_id);
            let leader = number.and_then(|number| elsewhere.leader_of(self.transactions.topic(), number));
            if let Some(id) = leader {
                return elsewhere.ask(id, transaction);
            }
        }
        self.ask_for_partitions(caller, transaction, TransactionVersion::V2, true)
    }
}
