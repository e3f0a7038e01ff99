//! Coordinators of transactions on other brokers: how a partition's leader asks them whether a transaction holds the
//! partition (KIP-890).
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::waiting::Waiting;
use crate::cluster::peers::Peers;
use crate::state::topics::Topics;
use pylog_coordinator::transaction::TxnReply;
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_storage::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;
use pylog_wire::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

/// How long to wait before the coordinator is asked again, while the transaction before is still ending (Kafka's
/// add.partitions.to.txn.retry.backoff.ms).
const RETRY: Duration = Duration::from_millis(20);

/// See the module.
pub struct RemoteCoordinator {
    /// This broker.
    pub node_id: i32,
    /// Who leads what.
    pub topics: Arc<Topics>,
    /// The way there.
    pub peers: Arc<Peers>,
    /// How long a batch waits for the transaction before it to end.
    pub timeout: Duration,
}

impl RemoteCoordinator {
    /// Who leads the partition, when it is another broker; `Some(-1)` when nobody does.
    pub fn leader_of(&self, topic: &str, number: i32) -> Option<i32> {
        let image = self.topics.now();
        let leader = image.named(topic)?.partition(number)?.spec.leader;
        (leader != self.node_id).then_some(leader)
    }

    /// Asks broker `id`. Errors: COORDINATOR_NOT_AVAILABLE when it does not answer; those of the coordinator.
    pub fn ask(&self, id: i32, transaction: AddPartitionsToTxnTransaction) -> Waiting<TxnReply> {
        let Some(runtime) = self.peers.runtime() else {
            return Waiting::now(Err(ErrorCode::CoordinatorNotAvailable));
        };
        let (reply, answer) = oneshot::channel();
        let asked = ask_with_retries(Arc::clone(&self.peers), id, transaction, self.timeout);
        runtime.spawn(async move {
            // The receiver may have gone away: nobody waits for the answer then.
            let _ = reply.send(asked.await);
        });
        Waiting::Later(answer)
    }
}

async fn ask_with_retries(
    peers: Arc<Peers>,
    id: i32,
    transaction: AddPartitionsToTxnTransaction,
    timeout: Duration,
) -> Result<TxnReply, ErrorCode> {
    // A partition that is only asked about cannot wait for a transaction to begin.
    let timeout = if transaction.verify_only { Duration::ZERO } else { timeout };
    let until = Instant::now() + timeout;
    let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
    loop {
        let answer = peers.call(id, &request).await.map_err(|error| {
            warn!(target: COORDINATOR, peer = id, "broker {id}, the coordinator of a transaction, cannot be asked: {error}");
            error.of_coordinator()
        })?;
        let answers = read(answer)?;
        let ends = answers.iter().any(|(_, error)| *error == ErrorCode::ConcurrentTransactions);
        if !ends || Instant::now() + RETRY > until {
            return Ok(TxnReply::AddPartitions(answers));
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The answers, in the order of the question.
fn read(answer: AddPartitionsToTxnResponse) -> Result<Vec<(TopicPartition, ErrorCode)>, ErrorCode> {
    let code = |code: i16| ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError);
    match code(answer.error_code) {
        ErrorCode::None => {}
        error => return Err(error),
    }
    let topics = answer.results_by_transaction.into_iter().flat_map(|transaction| transaction.topic_results);
    let partitions = topics.flat_map(|topic| {
        let name = topic.name;
        topic.results_by_partition.into_iter().map(move |partition| {
            (TopicPartition::new(&name, partition.partition_index), code(partition.partition_error_code))
        })
    });
    Ok(partitions.collect())
}
