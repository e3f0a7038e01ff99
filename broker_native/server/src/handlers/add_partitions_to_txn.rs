//! AddPartitionsToTxn: partitions become part of transactions, or are asked about.
//!
//! All partitions of a transaction are added, or none: when one does not exist, the others are OPERATION_NOT_ATTEMPTED.
//!
//! KIP-98. Version 2 knows PRODUCER_FENCED (KIP-588); 4, which brokers send, has several transactions, and may only ask; 5
//! knows TRANSACTION_ABORTABLE (KIP-890).
use std::collections::HashSet;

use super::common::transactions::{FENCED_FROM, fenced_as};
use crate::authorization::table::{
    ADD_PARTITIONS_TO_TXN_CLUSTER, ADD_PARTITIONS_TO_TXN_TOPIC, ADD_PARTITIONS_TO_TXN_TRANSACTION,
};
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::{GROUPS_TOPIC, SHARES_TOPIC, TRANSACTIONS_TOPIC, Waiting};
use crate::state::topics::MetadataImage;
use pylog_coordinator::transaction::{TransactionVersion, TxnReply};
use pylog_storage::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
};
use pylog_wire::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

/// From this version on there are several transactions in a request.
const BATCHED_FROM: i16 = 4;

/// Each partition and what became of it.
type Answers = Vec<(TopicPartition, ErrorCode)>;

/// One transaction's answer.
struct Asked {
    transactional_id: String,
    /// For when the coordinator is not there.
    partitions: Vec<TopicPartition>,
    waiting: Waiting<TxnReply>,
}

/// Hands each transaction to its coordinator.
pub fn handle(call: Call, request: AddPartitionsToTxnRequest) -> Outcome {
    if call.version >= BATCHED_FROM
        && let Err(error) = call.check_cluster(&ADD_PARTITIONS_TO_TXN_CLUSTER)
    {
        let error_code = error.code();
        let refused = AddPartitionsToTxnResponse { error_code, ..Default::default() };
        return Outcome::Now(call.answer(&refused));
    }
    let image = call.shared.topics.now();
    let asked: Vec<Asked> =
        transactions(&call, request).into_iter().map(|transaction| ask(&call, &image, transaction)).collect();
    Outcome::later(async move {
        let mut results = Vec::with_capacity(asked.len());
        for Asked { transactional_id, partitions, waiting } in asked {
            let answers = match waiting.await {
                Ok(TxnReply::AddPartitions(answers)) => answers,
                Ok(_) => all(partitions, ErrorCode::UnknownServerError),
                Err(error) => all(partitions, error),
            };
            results
                .push(AddPartitionsToTxnResult { transactional_id, topic_results: by_topic(&call, answers) });
        }
        answer(&call, results)
    })
}

fn transactions(call: &Call, request: AddPartitionsToTxnRequest) -> Vec<AddPartitionsToTxnTransaction> {
    if call.version >= BATCHED_FROM {
        return request.transactions;
    }
    vec![AddPartitionsToTxnTransaction {
        transactional_id: request.v3_and_below_transactional_id,
        producer_id: request.v3_and_below_producer_id,
        producer_epoch: request.v3_and_below_producer_epoch,
        verify_only: false,
        topics: request.v3_and_below_topics,
    }]
}

fn ask(call: &Call, image: &MetadataImage, transaction: AddPartitionsToTxnTransaction) -> Asked {
    let transactional_id = transaction.transactional_id.clone();
    let partitions: Vec<TopicPartition> = transaction
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|&number| TopicPartition::new(&topic.name, number)))
        .collect();
    let waiting = match refused(call, image, &transaction, &partitions) {
        Some(answer) => Waiting::now(answer),
        None => {
            let version = match call.version >= BATCHED_FROM {
                true => TransactionVersion::V2,
                false => TransactionVersion::V0,
            };
            call.shared.coordinators.ask_for_partitions(call.caller(), transaction, version, false)
        }
    };
    Asked { transactional_id, partitions, waiting }
}

/// What is answered without the coordinator: nothing is added when one of the partitions is not there, or the client may not write to it.
fn refused(
    call: &Call,
    image: &MetadataImage,
    transaction: &AddPartitionsToTxnTransaction,
    partitions: &[TopicPartition],
) -> Option<Result<TxnReply, ErrorCode>> {
    let denied = match denied(call, transaction) {
        Ok(denied) => denied,
        Err(error) => return Some(Err(error)),
    };
    let error = |at: &TopicPartition| {
        let found = image.named(&at.topic).and_then(|topic| topic.partition(at.partition));
        match found {
            _ if denied.contains(&*at.topic) => ADD_PARTITIONS_TO_TXN_TOPIC.error(),
            // A marker would take the place of another cluster's record.
            Some(_) if image.named(&at.topic).is_some_and(|topic| topic.is_mirror()) => {
                ErrorCode::PolicyViolation
            }
            None => ErrorCode::UnknownTopicOrPartition,
            Some(_) => ErrorCode::OperationNotAttempted,
        }
    };
    let answers: Vec<_> = partitions.iter().map(|partition| (partition.clone(), error(partition))).collect();
    let adds_all = answers.iter().all(|(_, error)| *error == ErrorCode::OperationNotAttempted);
    (!adds_all).then_some(Ok(TxnReply::AddPartitions(answers)))
}

/// The topics that the client may not write to. Internal ones are nobody's, also without an authorizer, as in Kafka. Other brokers have been
/// asked for their right already.
///
/// # Errors
/// The client may not use the transactional id.
fn denied<'a>(
    call: &Call,
    transaction: &'a AddPartitionsToTxnTransaction,
) -> Result<HashSet<&'a str>, ErrorCode> {
    if call.version >= BATCHED_FROM {
        return Ok(HashSet::new());
    }
    call.check(&ADD_PARTITIONS_TO_TXN_TRANSACTION, &transaction.transactional_id)?;
    let is_internal = |name: &str| [GROUPS_TOPIC, SHARES_TOPIC, TRANSACTIONS_TOPIC].contains(&name);
    let names = transaction.topics.iter().map(|topic| topic.name.as_str());
    Ok(names.filter(|name| is_internal(name) || !call.may(&ADD_PARTITIONS_TO_TXN_TOPIC, name)).collect())
}

fn all(partitions: Vec<TopicPartition>, error: ErrorCode) -> Answers {
    partitions.into_iter().map(|partition| (partition, error)).collect()
}

/// Partitions of one topic stand together in the answers.
fn by_topic(call: &Call, answers: Answers) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut topics: Vec<AddPartitionsToTxnTopicResult> = Vec::new();
    for (partition, error) in answers {
        let TopicPartition { topic: name, partition: partition_index } = partition;
        let result = AddPartitionsToTxnPartitionResult {
            partition_index,
            partition_error_code: fenced_as(error.code(), call.version >= FENCED_FROM),
        };
        match topics.last_mut() {
            Some(topic) if *topic.name == *name => topic.results_by_partition.push(result),
            _ => topics.push(AddPartitionsToTxnTopicResult {
                name: name.to_string(),
                results_by_partition: vec![result],
            }),
        }
    }
    topics
}

fn answer(call: &Call, mut results: Vec<AddPartitionsToTxnResult>) -> Reply {
    let mut response = AddPartitionsToTxnResponse::default();
    if call.version >= BATCHED_FROM {
        response.results_by_transaction = results;
    } else {
        response.results_by_topic_v3_and_below =
            results.pop().map(|result| result.topic_results).unwrap_or_default();
    }
    call.answer(&response)
}
