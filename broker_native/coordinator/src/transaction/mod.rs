//! Transactional ids and their transactions: one [`TransactionMachine`] for each partition of `__transaction_state`.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`state`] | the states, and which may follow which |
//! | [`metadata`] | what is known of a transactional id, and how it changes |
//! | [`records`] | the same as a record of the log |
//! | [`machine`] | the ids of a partition, deadlines, which file takes what |
//! | `init` | InitProducerId: epochs, fencing, keeping a prepared transaction |
//! | `add` | AddPartitionsToTxn, AddOffsetsToTxn, produced batches |
//! | `end` | EndTxn, time-outs, markers |
//! | [`long`] | a line in the broker's log about each transaction that stays open |
//! | `report` | DescribeTransactions, ListTransactions |
//! | [`requests`], [`settings`] | events, answers, actions; the broker's settings |
//!
//! # A transaction's way
//! `Empty -> Ongoing` when the first partition is added; `-> PrepareCommit` or `PrepareAbort` when the end is decided: that
//! record is the decision, and a machine that loads the log afterwards carries it out; `-> CompleteCommit` or `CompleteAbort` when
//! every partition has its marker. While it ends everything else is answered CONCURRENT_TRANSACTIONS.
mod add;
mod end;
mod init;
pub mod long;
pub mod machine;
pub mod metadata;
pub mod records;
mod report;
pub mod requests;
pub mod settings;
pub mod state;
#[cfg(test)]
mod tests;

pub use machine::{ProducerIdSource, TransactionMachine, TxnEffects};
pub use report::TxnFilter;
pub use requests::{MarkersWritten, TransactionVersion, TxnAction, TxnEvent, TxnReply, TxnRequest};
pub use settings::Settings;
pub use state::TxnState;
