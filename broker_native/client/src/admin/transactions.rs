//! Transactions: lists them and the producers of a partition, and ends a hanging one.
use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{error_name, leader, refuse, said};
use crate::error::{ClientError, Result, code};
use crate::metadata::address::Address;
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, Located, ask_coordinator, check_ready, locate};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_producers::{ProducerState, TopicRequest};
use pylog_wire::messages::describe_transactions::TransactionState;
use pylog_wire::messages::write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic};
use pylog_wire::messages::{
    DescribeProducersRequest, DescribeTransactionsRequest, InitProducerIdRequest, ListTransactionsRequest,
    WriteTxnMarkersRequest,
};

/// Which transactions to list; empty and -1 let all through.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionFilter {
    /// Names of states.
    pub states: Vec<String>,
    /// Producer ids.
    pub producer_ids: Vec<i64>,
    /// Only those that are open for longer, in milliseconds.
    pub duration_ms: i64,
    /// Only ids that match this regular expression as a whole.
    #[serde(deserialize_with = "Option::deserialize")]
    pub pattern: Option<String>,
}

/// From this version of ListTransactions on brokers know the pattern.
const PATTERN_FROM: i16 = 2;

impl TransactionFilter {
    /// The pattern, for brokers that do not know it.
    fn whole(&self) -> Result<Option<Regex>> {
        let compile = |pattern: &String| Regex::new(&format!("^(?:{pattern})$"));
        self.pattern.as_ref().map(compile).transpose().map_err(|error| {
            ClientError::invalid(format!(
                "the pattern of transactional ids is no regular expression: {error}"
            ))
        })
    }
}

/// All transactional ids of all brokers, by name.
///
/// # Errors
/// Those of the connection; `UNSUPPORTED_VERSION` for a filter that a broker does not know.
pub fn list(cluster: &mut Cluster, filter: &TransactionFilter) -> Result<Vec<Value>> {
    let request = ListTransactionsRequest {
        state_filters: filter.states.clone(),
        producer_id_filters: filter.producer_ids.clone(),
        duration_filter: filter.duration_ms,
        transactional_id_pattern: filter.pattern.clone(),
    };
    let pattern = filter.whole()?;
    let answers = super::everywhere(cluster, "list transactions", |cluster, node| {
        let address = cluster.address(node)?;
        let mut answer = cluster.call_at(&address, &request)?;
        check_ready(answer.error_code, "list transactions")?;
        refuse(answer.error_code, "transactions cannot be listed")?;
        if let Some(unknown) = answer.unknown_state_filters.first() {
            return Err(ClientError::invalid(format!("the broker knows no transaction state {unknown:?}")));
        }
        let connection = cluster.connection(&address)?;
        let version = connection.versions().pick::<ListTransactionsRequest>(connection.broker())?;
        if let Some(pattern) = pattern.as_ref().filter(|_| version < PATTERN_FROM) {
            answer.transaction_states.retain(|transaction| pattern.is_match(&transaction.transactional_id));
        }
        Ok(answer.transaction_states)
    })?;
    let mut found = BTreeMap::new();
    for (node, states) in answers {
        for transaction in states {
            let shown = json!({
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "state": transaction.transaction_state,
                "coordinator": node,
            });
            found.insert(transaction.transactional_id, shown);
        }
    }
    Ok(found.into_values().collect())
}

/// The state of each transactional id; one request to each coordinator.
///
/// # Errors
/// Those of the connection.
pub fn describe(cluster: &mut Cluster, ids: &[String]) -> Result<Vec<Value>> {
    let what = "describe transactions";
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    cluster.retrying(what, |cluster| cluster.metadata(Some(&[]), false).map(drop))?;
    let known = cluster.retrying(what, |cluster| describe_all(cluster, ids))?;
    let missing = |id: &str| ClientError::protocol("any", format!("no answer about transactional id {id}"));
    ids.iter().map(|id| known.get(id).cloned().ok_or_else(|| missing(id))).collect()
}

fn describe_all(cluster: &mut Cluster, ids: &[String]) -> Result<BTreeMap<String, Value>> {
    let mut asked: BTreeMap<i32, (Address, Vec<String>)> = BTreeMap::new();
    for (id, found) in ids.iter().zip(locate(cluster, CoordinatorType::Transaction, ids)?) {
        let Located { node, address } = found?;
        asked.entry(node).or_insert_with(|| (address, Vec::new())).1.push(id.clone());
    }
    let mut known = BTreeMap::new();
    for (node, (address, transactional_ids)) in asked {
        let answer = cluster.call_at(&address, &DescribeTransactionsRequest { transactional_ids })?;
        for state in answer.transaction_states {
            check_ready(state.error_code, &state.transactional_id)?;
            known.insert(state.transactional_id.clone(), state_json(&state, &state.transactional_id, node));
        }
    }
    Ok(known)
}

fn state_json(state: &TransactionState, id: &str, node: i32) -> Value {
    let partitions = state
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic.as_str(), *partition)));
    let message = match code(state.error_code) {
        ErrorCode::TransactionalIdNotFound => Some(format!("Transactional id '{id}' does not exist.")),
        _ => said(state.error_code, None),
    };
    json!({
        "transactional_id": id,
        "state": state.transaction_state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.transaction_timeout_ms,
        "start_time_ms": state.transaction_start_time_ms,
        "partitions": partitions.collect::<Vec<_>>(),
        "coordinator": node,
        "error": error_name(state.error_code),
        "message": message,
    })
}

/// The producers of each partition, as its leader remembers them.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION`, those of the connection.
pub fn producers(cluster: &mut Cluster, partitions: &[(String, i32)]) -> Result<Vec<Value>> {
    partitions.iter().map(|(topic, partition)| producers_of(cluster, topic, *partition)).collect()
}

fn producers_of(cluster: &mut Cluster, topic: &str, partition: i32) -> Result<Value> {
    let asked = TopicRequest { name: topic.to_owned(), partition_indexes: vec![partition] };
    let request = DescribeProducersRequest { topics: vec![asked] };
    let answer = cluster.retrying("describe producers", |cluster| {
        let node = leader(cluster, topic, partition)?;
        cluster.call(node, &request)
    })?;
    let shown = answer.topics.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
    let shown = shown.ok_or_else(|| {
        ClientError::protocol("any", format!("no answer about the producers of {topic}-{partition}"))
    })?;
    let producer = |producer: &ProducerState| {
        json!({
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "last_sequence": producer.last_sequence,
            "last_timestamp_ms": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_start_offset": producer.current_txn_start_offset,
        })
    };
    Ok(json!({
        "topic": topic,
        "partition": partition,
        "error": error_name(shown.error_code),
        "message": said(shown.error_code, shown.error_message.as_deref()),
        "producers": shown.active_producers.iter().map(producer).collect::<Vec<_>>(),
    }))
}

/// A transaction in one partition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hanging {
    /// The partition's topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Whose transaction it is.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Epoch of the coordinator that wrote the producer's last marker; 0 when there is none.
    pub coordinator_epoch: i32,
}

/// Writes an abort marker into one partition, without asking the transaction's coordinator: for a transaction that hangs
/// because no coordinator knows of it.
///
/// # Errors
/// Those of the connection.
pub fn abort(cluster: &mut Cluster, hanging: &Hanging) -> Result<Value> {
    let (topic, partition) = (hanging.topic.as_str(), hanging.partition);
    let marker = WritableTxnMarker {
        producer_id: hanging.producer_id,
        producer_epoch: hanging.producer_epoch,
        coordinator_epoch: hanging.coordinator_epoch,
        transaction_result: false,
        topics: vec![WritableTxnMarkerTopic { name: topic.to_owned(), partition_indexes: vec![partition] }],
        ..Default::default()
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker] };
    let node = cluster.retrying("abort a transaction", |cluster| leader(cluster, topic, partition))?;
    let answer = cluster.call(node, &request)?;
    let topics = answer.markers.into_iter().flat_map(|marker| marker.topics);
    let error = topics.flat_map(|topic| topic.partitions).map(|partition| partition.error_code).next();
    let error = error.unwrap_or(ErrorCode::UnknownServerError.code());
    Ok(json!({
        "topic": topic, "partition": partition, "error": error_name(error), "message": said(error, None),
    }))
}

/// Fences the producer of each transactional id: its open transaction is aborted, and its producer can go on no more.
///
/// # Errors
/// Those of the connection.
pub fn fence(cluster: &mut Cluster, ids: &[String]) -> Result<Vec<Value>> {
    // The id is not used afterwards, so its time-out is of no use to anybody.
    let transaction_timeout_ms = 1;
    let fence = |id: &String| {
        let request = InitProducerIdRequest {
            transactional_id: Some(id.clone()),
            transaction_timeout_ms,
            ..Default::default()
        };
        ask_coordinator(cluster, "abort a transaction", CoordinatorType::Transaction, id, |cluster, node| {
            let answer = cluster.call(node, &request)?;
            check_ready(answer.error_code, id)?;
            Ok(json!({
                "transactional_id": id,
                "producer_id": answer.producer_id,
                "producer_epoch": answer.producer_epoch,
                "error": error_name(answer.error_code),
                "message": said(answer.error_code, None),
            }))
        })
    };
    ids.iter().map(fence).collect()
}
