//! Replicas: where they are moving, moves begun and ended, leaders elected.
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, error_name, refuse, said, timeout_ms};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_partition_reassignments::{ReassignablePartition, ReassignableTopic};
use pylog_wire::messages::elect_leaders::ElectLeadersTopicPartitions;
use pylog_wire::messages::{
    AlterPartitionReassignmentsRequest, ElectLeadersRequest, ListPartitionReassignmentsRequest,
};

/// Where the replicas of a partition shall be; without them a move that is under way ends.
pub type ReplicaMove = (String, i32, Option<Vec<i32>>);

/// Which leaders to elect.
#[derive(Debug, Deserialize)]
pub struct Election {
    /// All partitions when `None`.
    pub partitions: Option<Vec<(String, i32)>>,
    /// Any live replica, when none is in sync: records may be lost.
    #[serde(default)]
    pub unclean: bool,
}

/// Moves replicas: one result for each partition.
///
/// # Errors
/// Those of the connection and of the whole request.
pub fn reassign(cluster: &mut Cluster, moves: &[ReplicaMove]) -> Result<Vec<Value>> {
    let mut topics: BTreeMap<&str, Vec<ReassignablePartition>> = BTreeMap::new();
    for (topic, partition_index, replicas) in moves {
        let partition =
            ReassignablePartition { partition_index: *partition_index, replicas: replicas.clone() };
        topics.entry(topic).or_default().push(partition);
    }
    let topic = |(name, partitions): (&str, _)| ReassignableTopic { name: name.to_owned(), partitions };
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: timeout_ms(cluster),
        allow_replication_factor_change: true,
        topics: topics.into_iter().map(topic).collect(),
    };
    let answer = change(cluster, "move replicas", &request)?;
    refuse(answer.error_code, "replicas cannot be moved")?;
    let mut results = Vec::new();
    for topic in &answer.responses {
        results.extend(topic.partitions.iter().map(|partition| {
            let message = partition.error_message.as_deref();
            result_json(&topic.name, partition.partition_index, partition.error_code, message)
        }));
    }
    Ok(results)
}

/// The moves that are under way: {topic, partition, replicas, adding, removing}.
///
/// # Errors
/// Those of the connection and of the request.
pub fn moving(cluster: &mut Cluster) -> Result<Vec<Value>> {
    let request = ListPartitionReassignmentsRequest { timeout_ms: timeout_ms(cluster), topics: None };
    let answer = cluster.retrying("list moves of replicas", |cluster| {
        cluster.metadata(Some(&[]), false)?;
        cluster.call_controller(&request)
    })?;
    refuse(answer.error_code, "moves of replicas cannot be listed")?;
    let mut moves = Vec::new();
    for topic in &answer.topics {
        moves.extend(topic.partitions.iter().map(|partition| {
            json!({
                "topic": topic.name, "partition": partition.partition_index, "replicas": partition.replicas,
                "adding": partition.adding_replicas, "removing": partition.removing_replicas,
            })
        }));
    }
    Ok(moves)
}

/// Elects leaders: one result for each partition whose leader changed or could not be elected. That nothing had to be done
/// is no error.
///
/// # Errors
/// Those of the connection and of the whole request.
pub fn elect(cluster: &mut Cluster, election: &Election) -> Result<Vec<Value>> {
    let topic_partitions = election.partitions.as_ref().map(|partitions| {
        let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in partitions {
            topics.entry(topic).or_default().push(*partition);
        }
        let topic = |(topic, partitions): (&str, _)| ElectLeadersTopicPartitions {
            topic: topic.to_owned(),
            partitions,
        };
        topics.into_iter().map(topic).collect()
    });
    let request = ElectLeadersRequest {
        election_type: i8::from(election.unclean),
        topic_partitions,
        timeout_ms: timeout_ms(cluster),
    };
    let answer = change(cluster, "elect leaders", &request)?;
    refuse(answer.error_code, "leaders cannot be elected")?;
    let mut results = Vec::new();
    for topic in &answer.replica_election_results {
        let each = topic.partition_result.iter();
        let each = each.filter(|partition| partition.error_code != ErrorCode::ElectionNotNeeded.code());
        results.extend(each.map(|partition| {
            result_json(
                &topic.topic,
                partition.partition_id,
                partition.error_code,
                partition.error_message.as_deref(),
            )
        }));
    }
    Ok(results)
}

fn result_json(topic: &str, partition: i32, error: i16, message: Option<&str>) -> Value {
    let message = said(error, message).map(|said| format!("{topic}-{partition}: {said}"));
    json!({"topic": topic, "partition": partition, "error": error_name(error), "message": message})
}
