//! Settings of topics and brokers.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{change, error_name, said};
use crate::error::{ClientError, Result};
use crate::metadata::cluster::Cluster;
use pylog_wire::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
    RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_TOPIC,
};
use pylog_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig,
};
use pylog_wire::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

/// A setting to this value is an incremental change of kind "set"; without a value it is "delete".
const OP_SET: i8 = 0;
const OP_DELETE: i8 = 1;
/// Resource types of configs.
const RESOURCES: [(&str, i8); 3] =
    [("topic", RESOURCE_TOPIC), ("broker", RESOURCE_BROKER), ("broker-logger", RESOURCE_BROKER_LOGGER)];
/// Of these only the broker that is named by its number knows anything.
const OF_ONE_BROKER: [i8; 2] = [RESOURCE_BROKER, RESOURCE_BROKER_LOGGER];
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

/// Settings of topics or brokers, levels of brokers' loggers: all of them, or those named by `keys`.
///
/// # Errors
/// `INVALID_ARGUMENT` for another resource type, those of the connection.
pub fn describe_configs(
    cluster: &mut Cluster,
    resource_type: &str,
    names: &[String],
    keys: Option<&[String]>,
) -> Result<Vec<Value>> {
    let resource_type = resource(resource_type)?;
    let wanted = |name: &String| DescribeConfigsResource {
        resource_type,
        resource_name: name.clone(),
        configuration_keys: keys.map(<[String]>::to_vec),
    };
    let request = |names: &[String]| DescribeConfigsRequest {
        resources: names.iter().map(wanted).collect(),
        include_synonyms: true,
        include_documentation: true,
    };
    let mut results = Vec::with_capacity(names.len());
    if OF_ONE_BROKER.contains(&resource_type) {
        for name in names {
            let request = request(std::slice::from_ref(name));
            let answer = cluster.retrying("describe configs", |cluster| {
                cluster.metadata(Some(&[]), false)?;
                cluster.call(node(name)?, &request)
            })?;
            results.extend(answer.results.iter().map(resource_json));
        }
    } else {
        let request = request(names);
        let answer = cluster.retrying("describe configs", |cluster| cluster.call_any(&request))?;
        results.extend(answer.results.iter().map(resource_json));
    }
    Ok(results)
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
    validate_only: bool,
) -> Result<Vec<Value>> {
    let change_one = |(name, value): (&String, &Option<String>)| AlterableConfig {
        name: name.clone(),
        config_operation: if value.is_some() { OP_SET } else { OP_DELETE },
        value: value.clone(),
    };
    let resource_type = resource(resource_type)?;
    let resource = AlterConfigsResource {
        resource_type,
        resource_name: name.to_owned(),
        configs: changes.iter().map(change_one).collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    let answer = if OF_ONE_BROKER.contains(&resource_type) {
        cluster.retrying("alter configs", |cluster| cluster.metadata(Some(&[]), false).map(drop))?;
        cluster.call(node(name)?, &request)?
    } else {
        change(cluster, "alter configs", &request)?
    };
    let result = |result: &AlterConfigsResourceResponse| {
        json!({
            "name": result.resource_name,
            "error": error_name(result.error_code),
            "message": said(result.error_code, result.error_message.as_deref()),
        })
    };
    Ok(answer.responses.iter().map(result).collect())
}

fn resource(name: &str) -> Result<i8> {
    let found = RESOURCES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    found.ok_or_else(|| {
        ClientError::invalid(format!("resource type {name:?} must be topic, broker or broker-logger"))
    })
}

/// The broker that a resource of these types names.
fn node(name: &str) -> Result<i32> {
    name.parse().map_err(|_| ClientError::invalid(format!("a broker is named by its number, not {name:?}")))
}

fn resource_json(resource: &DescribeConfigsResult) -> Value {
    let synonym = |synonym: &DescribeConfigsSynonym| json!({"name": synonym.name, "value": synonym.value, "source": named(&CONFIG_SOURCES, synonym.source)});
    let config = |config: &DescribeConfigsResourceResult| {
        json!({
            "name": config.name,
            "value": config.value,
            "source": named(&CONFIG_SOURCES, config.config_source),
            "type": named(&CONFIG_TYPES, config.config_type),
            "read_only": config.read_only,
            "is_sensitive": config.is_sensitive,
            "documentation": config.documentation,
            "synonyms": config.synonyms.iter().map(synonym).collect::<Vec<_>>(),
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
