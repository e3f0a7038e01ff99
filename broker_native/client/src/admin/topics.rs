//! Topics, their records, and the cluster.
use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::{change, error_name, leader, said, timeout_ms};
use crate::error::{Result, code};
use crate::metadata::cluster::Cluster;
use crate::metadata::listed_topic::ListedTopic;
use crate::metadata::offsets::partition_error;
use crate::metadata::topic_id;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_partitions::CreatePartitionsTopic;
use pylog_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig};
use pylog_wire::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsTopic};
use pylog_wire::messages::delete_topics::DeleteTopicState;
use pylog_wire::messages::metadata::{MetadataResponsePartition, MetadataResponseTopic};
use pylog_wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
};

/// Topics with their partitions; all when `names` is `None`.
///
/// # Errors
/// Those of [`Cluster::metadata`], retried.
pub fn describe_topics(cluster: &mut Cluster, names: Option<&[&str]>) -> Result<Vec<Value>> {
    Ok(topics(cluster, names)?.iter().map(topic_json).collect())
}

/// As [`describe_topics`], of many partitions: only which there are.
///
/// # Errors
/// Those of [`Cluster::metadata`], retried.
pub fn list_partitions(cluster: &mut Cluster, names: Option<&[&str]>) -> Result<Vec<ListedTopic>> {
    let listed = |topic: MetadataResponseTopic| {
        let mut partitions: Vec<i32> = topic.partitions.iter().map(|shown| shown.partition_index).collect();
        partitions.sort_unstable();
        ListedTopic {
            name: topic.name.unwrap_or_default(),
            topic_id: topic_id::text(topic.topic_id),
            is_internal: topic.is_internal,
            error: error_name(topic.error_code),
            partitions,
        }
    };
    Ok(topics(cluster, names)?.into_iter().map(listed).collect())
}

/// Topics as metadata shows them. One that a broker of several does not know is looked for at others for a moment: it may
/// have just been made.
fn topics(cluster: &mut Cluster, names: Option<&[&str]>) -> Result<Vec<MetadataResponseTopic>> {
    let begun = Instant::now();
    let mut attempt = 0;
    loop {
        let answer = cluster.retrying("describe topics", |cluster| cluster.metadata(names, false))?;
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        let complete = answer.topics.iter().all(|topic| topic.error_code != unknown);
        if complete || begun.elapsed() >= cluster.news_take() {
            return Ok(answer.topics);
        }
        cluster.distrust_metadata();
        let pause = cluster.settings().backoff(attempt);
        attempt += 1;
        cluster.stop().pause(pause);
    }
}

/// The cluster's id, controller and brokers.
///
/// # Errors
/// Those of [`Cluster::metadata`], retried.
pub fn describe_cluster(cluster: &mut Cluster) -> Result<Value> {
    let answer = cluster.retrying("describe the cluster", |cluster| cluster.metadata(Some(&[]), false))?;
    let broker = |broker: &pylog_wire::messages::metadata::MetadataResponseBroker| json!({"node_id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack});
    let brokers: Vec<Value> = answer.brokers.iter().map(broker).collect();
    Ok(json!({"cluster_id": answer.cluster_id, "controller_id": answer.controller_id, "brokers": brokers}))
}

/// A topic to create; -1 stands for the broker's default.
#[derive(Debug, Clone)]
pub struct NewTopic {
    /// Name.
    pub name: String,
    /// Number of partitions.
    pub num_partitions: i32,
    /// Number of replicas.
    pub replication_factor: i16,
    /// Settings of the topic.
    pub configs: BTreeMap<String, String>,
}

/// Creates topics.
///
/// # Errors
/// Those of the connection.
pub fn create_topics(cluster: &mut Cluster, topics: &[NewTopic], validate_only: bool) -> Result<Vec<Value>> {
    let config = |(name, value): (&String, &String)| CreatableTopicConfig {
        name: name.clone(),
        value: Some(value.clone()),
    };
    let topic = |topic: &NewTopic| CreatableTopic {
        name: topic.name.clone(),
        num_partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: Vec::new(),
        configs: topic.configs.iter().map(config).collect(),
    };
    let request = CreateTopicsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms: timeout_ms(cluster),
        validate_only,
    };
    let answer = change(cluster, "create topics", &request)?;
    let topic = |topic: &pylog_wire::messages::create_topics::CreatableTopicResult| {
        json!({
            "name": topic.name,
            "topic_id": topic_id::text(topic.topic_id),
            "error": error_name(topic.error_code),
            "message": said(topic.error_code, topic.error_message.as_deref()),
            "num_partitions": topic.num_partitions,
            "replication_factor": topic.replication_factor,
        })
    };
    Ok(answer.topics.iter().map(topic).collect())
}

/// Deletes topics.
///
/// # Errors
/// Those of the connection.
pub fn delete_topics(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Value>> {
    let state = |name: &String| DeleteTopicState { name: Some(name.clone()), ..Default::default() };
    let request = DeleteTopicsRequest {
        topics: names.iter().map(state).collect(),
        topic_names: names.to_vec(),
        timeout_ms: timeout_ms(cluster),
    };
    let answer = change(cluster, "delete topics", &request)?;
    let topic = |topic: &pylog_wire::messages::delete_topics::DeletableTopicResult| {
        json!({
            "name": topic.name,
            "topic_id": topic_id::text(topic.topic_id),
            "error": error_name(topic.error_code),
            "message": said(topic.error_code, topic.error_message.as_deref()),
        })
    };
    Ok(answer.responses.iter().map(topic).collect())
}

/// Raises the number of partitions to the given counts.
///
/// # Errors
/// Those of the connection.
pub fn create_partitions(cluster: &mut Cluster, counts: &BTreeMap<String, i32>) -> Result<Vec<Value>> {
    let topic = |(name, count): (&String, &i32)| CreatePartitionsTopic {
        name: name.clone(),
        count: *count,
        assignments: None,
    };
    let request = CreatePartitionsRequest {
        topics: counts.iter().map(topic).collect(),
        timeout_ms: timeout_ms(cluster),
        validate_only: false,
    };
    let answer = change(cluster, "add partitions", &request)?;
    let topic = |topic: &pylog_wire::messages::create_partitions::CreatePartitionsTopicResult| {
        json!({
            "name": topic.name,
            "error": error_name(topic.error_code),
            "message": said(topic.error_code, topic.error_message.as_deref()),
        })
    };
    Ok(answer.results.iter().map(topic).collect())
}

/// Deletes the records before the given offsets (-1: all up to the high watermark), in the order asked.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION`, those of the connection.
pub fn delete_records(cluster: &mut Cluster, before: &[(String, i32, i64)]) -> Result<Vec<Value>> {
    let mut answers = Vec::with_capacity(before.len());
    for (name, partition, offset) in before {
        let topic = DeleteRecordsTopic {
            name: name.clone(),
            partitions: vec![DeleteRecordsPartition { partition_index: *partition, offset: *offset }],
        };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: timeout_ms(cluster) };
        let (low_watermark, error) = cluster.retrying("delete records", |cluster| {
            let leader = leader(cluster, name, *partition)?;
            let answer = cluster.call(leader, &request)?;
            let found = answer.topics.first().and_then(|topic| topic.partitions.first());
            match found.map(|deleted| (deleted.low_watermark, deleted.error_code)) {
                Some((_, number)) if code(number) == ErrorCode::NotLeaderOrFollower => {
                    cluster.distrust_metadata();
                    Err(partition_error(name, *partition, code(number)))
                }
                found => Ok(found.unwrap_or((-1, ErrorCode::UnknownServerError.code()))),
            }
        })?;
        answers.push(json!({
            "topic": name, "partition": partition, "low_watermark": low_watermark, "error": error_name(error),
        }));
    }
    Ok(answers)
}

fn topic_json(topic: &MetadataResponseTopic) -> Value {
    let partition = |partition: &MetadataResponsePartition| {
        json!({
            "partition": partition.partition_index,
            "leader": partition.leader_id,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replica_nodes,
            "isr": partition.isr_nodes,
            "error": error_name(partition.error_code),
        })
    };
    let mut partitions: Vec<&MetadataResponsePartition> = topic.partitions.iter().collect();
    partitions.sort_by_key(|partition| partition.partition_index);
    json!({
        "name": topic.name,
        "topic_id": topic_id::text(topic.topic_id),
        "is_internal": topic.is_internal,
        "error": error_name(topic.error_code),
        "partitions": partitions.into_iter().map(partition).collect::<Vec<_>>(),
    })
}
