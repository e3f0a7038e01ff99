//! Topics, configs and cluster, as an administrator sees them. Answers are JSON values, shaped as `_native.pyi` says.
//!
//! An error of one topic or resource is part of the answer; only what concerns the whole request is an `Err`. A request
//! that changes something is sent once, because a repetition could meet its own effect.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::error::{ClientError, Result, code};
use super::topic_id;
use crate::wire::messages::create_partitions::CreatePartitionsTopic;
use crate::wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig};
use crate::wire::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsTopic};
use crate::wire::messages::delete_topics::DeleteTopicState;
use crate::wire::messages::describe_configs::{DescribeConfigsResource, DescribeConfigsResourceResult};
use crate::wire::messages::incremental_alter_configs::{AlterConfigsResource, AlterableConfig};
use crate::wire::messages::metadata::{MetadataResponsePartition, MetadataResponseTopic};
use crate::wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeConfigsRequest, IncrementalAlterConfigsRequest,
};
use crate::wire::{ErrorCode, Request};

/// A setting to this value is an incremental change of kind "set"; without a value it is "delete".
const OP_SET: i8 = 0;
const OP_DELETE: i8 = 1;
/// Resource types of configs.
const RESOURCES: [(&str, i8); 2] = [("topic", 2), ("broker", 4)];
/// Names of config types, by number.
const CONFIG_TYPES: [&str; 10] =
    ["UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"];
/// Names of config sources, by number.
const CONFIG_SOURCES: [&str; 8] = [
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "CLIENT_METRICS_CONFIG",
];

/// Topics with their partitions; all when `names` is `None`.
///
/// # Errors
/// Those of [`Cluster::metadata`], retried.
pub fn describe_topics(cluster: &mut Cluster, names: Option<&[&str]>) -> Result<Vec<Value>> {
    let answer = cluster.retrying("describe topics", |cluster| cluster.metadata(names, false))?;
    Ok(answer.topics.iter().map(topic_json).collect())
}

/// The cluster's id, controller and brokers.
///
/// # Errors
/// Those of [`Cluster::metadata`], retried.
pub fn describe_cluster(cluster: &mut Cluster) -> Result<Value> {
    let answer = cluster.retrying("describe the cluster", |cluster| cluster.metadata(Some(&[]), false))?;
    let broker = |broker: &crate::wire::messages::metadata::MetadataResponseBroker| json!({"node_id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack});
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
    let topic = |topic: &crate::wire::messages::create_topics::CreatableTopicResult| {
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
    let topic = |topic: &crate::wire::messages::delete_topics::DeletableTopicResult| {
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
    let topic = |topic: &crate::wire::messages::create_partitions::CreatePartitionsTopicResult| {
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
        let leader = cluster.retrying("delete records", |cluster| leader(cluster, name, *partition))?;
        let topic = DeleteRecordsTopic {
            name: name.clone(),
            partitions: vec![DeleteRecordsPartition { partition_index: *partition, offset: *offset }],
        };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: timeout_ms(cluster) };
        let answer = cluster.retrying("delete records", |cluster| cluster.call(leader, &request))?;
        let found = answer.topics.first().and_then(|topic| topic.partitions.first());
        let (low_watermark, error) = found
            .map_or((-1, ErrorCode::UnknownServerError.code()), |one| (one.low_watermark, one.error_code));
        answers.push(json!({
            "topic": name, "partition": partition, "low_watermark": low_watermark, "error": error_name(error),
        }));
    }
    Ok(answers)
}

/// Settings of topics or brokers.
///
/// # Errors
/// `INVALID_ARGUMENT` for another resource type, those of the connection.
pub fn describe_configs(cluster: &mut Cluster, resource_type: &str, names: &[String]) -> Result<Vec<Value>> {
    let resource_type = resource(resource_type)?;
    let wanted = |name: &String| DescribeConfigsResource {
        resource_type,
        resource_name: name.clone(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: names.iter().map(wanted).collect(),
        include_synonyms: false,
        include_documentation: true,
    };
    let answer = cluster.retrying("describe configs", |cluster| cluster.call_any(&request))?;
    Ok(answer.results.iter().map(resource_json).collect())
}

/// Sets (or, without a value, resets) settings of one topic or broker.
///
/// # Errors
/// `INVALID_ARGUMENT` for another resource type, those of the connection.
pub fn alter_configs(
    cluster: &mut Cluster,
    resource_type: &str,
    name: &str,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<Vec<Value>> {
    let change_one = |(name, value): (&String, &Option<String>)| AlterableConfig {
        name: name.clone(),
        config_operation: if value.is_some() { OP_SET } else { OP_DELETE },
        value: value.clone(),
    };
    let resource = AlterConfigsResource {
        resource_type: resource(resource_type)?,
        resource_name: name.to_owned(),
        configs: changes.iter().map(change_one).collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = change(cluster, "alter configs", &request)?;
    let result = |result: &crate::wire::messages::incremental_alter_configs::AlterConfigsResourceResponse| {
        json!({
            "name": result.resource_name,
            "error": error_name(result.error_code),
            "message": said(result.error_code, result.error_message.as_deref()),
        })
    };
    Ok(answer.responses.iter().map(result).collect())
}

/// Sends a request that changes something: to the controller, once it is reached.
fn change<Q: Request>(cluster: &mut Cluster, what: &str, request: &Q) -> Result<Q::Response> {
    cluster.retrying(what, |cluster| cluster.metadata(Some(&[]), false).map(drop))?;
    cluster.call_controller(request)
}

fn leader(cluster: &mut Cluster, name: &str, partition: i32) -> Result<i32> {
    let topic = cluster.topic(name, false)?;
    let shown = topic.partitions.iter().find(|shown| shown.partition_index == partition);
    let shown = shown.ok_or_else(|| {
        let message = format!("topic {name} has no partition {partition}; it has {}", topic.partitions.len());
        ClientError::fatal(ErrorCode::UnknownTopicOrPartition.name(), message)
    })?;
    Ok(shown.leader_id)
}

fn timeout_ms(cluster: &Cluster) -> i32 {
    i32::try_from(cluster.settings().request_timeout_ms).unwrap_or(i32::MAX)
}

fn resource(name: &str) -> Result<i8> {
    let found = RESOURCES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    found.ok_or_else(|| ClientError::invalid(format!("resource type {name:?} must be topic or broker")))
}

fn error_name(number: i16) -> Option<&'static str> {
    (number != 0).then(|| code(number).name())
}

/// The broker's own words for an error, or the table's.
fn said(number: i16, message: Option<&str>) -> Option<String> {
    let message = message.filter(|text| !text.is_empty());
    (number != 0).then(|| message.unwrap_or(code(number).sentence()).to_owned())
}

fn topic_json(topic: &MetadataResponseTopic) -> Value {
    let partition = |one: &MetadataResponsePartition| {
        json!({
            "partition": one.partition_index,
            "leader": one.leader_id,
            "leader_epoch": one.leader_epoch,
            "replicas": one.replica_nodes,
            "isr": one.isr_nodes,
            "error": error_name(one.error_code),
        })
    };
    let mut partitions: Vec<&MetadataResponsePartition> = topic.partitions.iter().collect();
    partitions.sort_by_key(|one| one.partition_index);
    json!({
        "name": topic.name,
        "topic_id": topic_id::text(topic.topic_id),
        "is_internal": topic.is_internal,
        "error": error_name(topic.error_code),
        "partitions": partitions.into_iter().map(partition).collect::<Vec<_>>(),
    })
}

fn resource_json(resource: &crate::wire::messages::describe_configs::DescribeConfigsResult) -> Value {
    let config = |one: &DescribeConfigsResourceResult| {
        json!({
            "name": one.name,
            "value": one.value,
            "source": named(&CONFIG_SOURCES, one.config_source),
            "type": named(&CONFIG_TYPES, one.config_type),
            "read_only": one.read_only,
            "is_sensitive": one.is_sensitive,
            "documentation": one.documentation,
        })
    };
    json!({
        "name": resource.resource_name,
        "error": error_name(resource.error_code),
        "message": said(resource.error_code, resource.error_message.as_deref()),
        "configs": resource.configs.iter().map(config).collect::<Vec<_>>(),
    })
}

fn named(names: &[&'static str], number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|at| names.get(at)).copied().unwrap_or("UNKNOWN")
}
