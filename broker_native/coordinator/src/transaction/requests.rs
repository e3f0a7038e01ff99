//! Events, answers and actions of transactions.
//!
//! Answers carry Kafka's newest error codes; a handler turns them into what the request's version knows.
use crate::{Caller, Ticket};
use pylog_record::TopicPartition;
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;
use pylog_wire::messages::describe_transactions::TransactionState;
use pylog_wire::messages::{EndTxnRequest, EndTxnResponse, InitProducerIdRequest, InitProducerIdResponse};

/// Something happens to a transactional id.
#[derive(Debug, Clone, PartialEq)]
pub enum TxnEvent {
    /// A request.
    Asked {
        /// Where the answer goes.
        ticket: Ticket,
        /// Who asks; the version decides what the producer understands.
        caller: Caller,
        /// What.
        request: TxnRequest,
    },
    /// A [`TxnAction`] was done.
    MarkersWritten(MarkersWritten),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum TxnRequest {
    /// InitProducerId, with a transactional id.
    InitProducerId(InitProducerIdRequest),
    /// One transaction of AddPartitionsToTxn; AddOffsetsToTxn, as the group's partition; or a produced batch.
    AddPartitions {
        /// Which partitions.
        transaction: AddPartitionsToTxnTransaction,
        /// What the producer speaks.
        transaction_version: TransactionVersion,
        /// Whether to wait a little for the end of the transaction before.
        patient: bool,
    },
    /// EndTxn.
    EndTxn(EndTxnRequest),
    /// DescribeTransactions, one transactional id.
    Describe(String),
}

impl TxnRequest {
    /// Which transactional id is asked.
    pub fn transactional_id(&self) -> &str {
        match self {
            Self::InitProducerId(request) => request.transactional_id.as_deref().unwrap_or_default(),
            Self::AddPartitions { transaction, .. } => &transaction.transactional_id,
            Self::EndTxn(request) => &request.transactional_id,
            Self::Describe(transactional_id) => transactional_id,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum TxnReply {
    /// To [`TxnRequest::InitProducerId`].
    InitProducerId(InitProducerIdResponse),
    /// To [`TxnRequest::AddPartitions`]: each partition with its error, in the order of the request.
    AddPartitions(Vec<(TopicPartition, ErrorCode)>),
    /// To [`TxnRequest::EndTxn`].
    EndTxn(EndTxnResponse),
    /// To [`TxnRequest::Describe`].
    Describe(TransactionState),
}

/// What a producer speaks (the feature `transaction.version`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(i16)]
pub enum TransactionVersion {
    /// The epoch stays the same from transaction to transaction.
    #[default]
    V0 = 0,
    /// As 0; the log's records have tagged fields.
    V1 = 1,
    /// Every end raises the epoch, so that a late request cannot enter a later transaction (KIP-890).
    V2 = 2,
}

impl TransactionVersion {
    /// Its number.
    pub const fn level(self) -> i16 {
        self as i16
    }

    /// The version with this number; newer ones count as the newest known.
    pub const fn from_level(level: i16) -> Self {
        match level {
            i16::MIN..=0 => Self::V0,
            1 => Self::V1,
            2.. => Self::V2,
        }
    }

    /// Whether every end raises the epoch.
    pub const fn bumps_epoch(self) -> bool {
        matches!(self, Self::V2)
    }
}

/// Writes the end of a transaction into its partitions. The outcome comes back as [`TxnEvent::MarkersWritten`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnAction {
    /// Whose.
    pub transactional_id: String,
    /// As the partitions know the producer.
    pub producer_id: i64,
    /// In the markers; with version 2 one more than in the batches.
    pub producer_epoch: i16,
    /// How the transaction ends.
    pub marker: Marker,
    /// Whether `producer_epoch` was raised.
    pub transaction_version: TransactionVersion,
    /// Where to.
    pub partitions: Vec<TopicPartition>,
}

/// The outcome of a [`TxnAction`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkersWritten {
    /// As in the action.
    pub transactional_id: String,
    /// As in the action.
    pub producer_id: i64,
    /// As in the action.
    pub producer_epoch: i16,
    /// Partitions that could not be written now. One that does not exist any more is not among them.
    pub failed: Vec<TopicPartition>,
}
