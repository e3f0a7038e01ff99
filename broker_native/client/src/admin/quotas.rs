//! Quotas of users, client ids and addresses: which there are, changing them (KIP-546).
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, error_name, refuse_saying, said};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use pylog_wire::messages::alter_client_quotas::{EntityData, EntryData, EntryResult, OpData};
use pylog_wire::messages::describe_client_quotas::{self as described, ComponentData};
use pylog_wire::messages::{AlterClientQuotasRequest, DescribeClientQuotasRequest};

/// "user", "client-id" or "ip" -> its name, or `None` for the default.
pub type Entity = BTreeMap<String, Option<String>>;

/// How a component of a filter matches.
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const SPECIFIED: i8 = 2;

/// Whose quotas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// What the entity has: a name, or `None` for the default.
    entity: Entity,
    /// Types that it has with any name.
    any: Vec<String>,
    /// It has nothing else.
    strict: bool,
}

/// Changes of quotas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alterations {
    /// Entity, and for each quota what it is to be, or `None` to remove it.
    alterations: Vec<(Entity, BTreeMap<String, Option<f64>>)>,
    /// Nothing is changed.
    validate_only: bool,
}

/// The quotas that `filter` lets through: {entity, quotas}.
///
/// # Errors
/// Those of the connection and of the whole request.
pub fn describe(cluster: &mut Cluster, filter: &Filter) -> Result<Vec<Value>> {
    let what = "describe quotas";
    let named = filter.entity.iter().map(|(entity_type, name)| ComponentData {
        entity_type: entity_type.clone(),
        match_type: if name.is_some() { EXACT } else { DEFAULT },
        r#match: name.clone(),
    });
    let any = filter.any.iter().map(|entity_type| ComponentData {
        entity_type: entity_type.clone(),
        match_type: SPECIFIED,
        r#match: None,
    });
    let request =
        DescribeClientQuotasRequest { components: named.chain(any).collect(), strict: filter.strict };
    let answer = cluster.retrying(what, |cluster| cluster.call_any(&request))?;
    refuse_saying(answer.error_code, answer.error_message.as_deref(), what)?;
    let shown = |entry: &described::EntryData| {
        let parts = entry.entity.iter().map(|part| (part.entity_type.clone(), part.entity_name.clone()));
        let quotas = entry.values.iter().map(|value| (value.key.clone(), value.value));
        json!({"entity": parts.collect::<Entity>(), "quotas": quotas.collect::<BTreeMap<_, _>>()})
    };
    let mut found: Vec<Value> = answer.entries.unwrap_or_default().iter().map(shown).collect();
    found.sort_by_cached_key(Value::to_string);
    Ok(found)
}

/// Changes quotas: for each entity {entity, error, message}.
///
/// # Errors
/// Those of the connection.
pub fn alter(cluster: &mut Cluster, asked: &Alterations) -> Result<Vec<Value>> {
    let entry = |(entity, quotas): &(Entity, BTreeMap<String, Option<f64>>)| {
        let part = |(entity_type, entity_name): (&String, &Option<String>)| EntityData {
            entity_type: entity_type.clone(),
            entity_name: entity_name.clone(),
        };
        let op = |(key, value): (&String, &Option<f64>)| OpData {
            key: key.clone(),
            value: value.unwrap_or_default(),
            remove: value.is_none(),
        };
        EntryData { entity: entity.iter().map(part).collect(), ops: quotas.iter().map(op).collect() }
    };
    let request = AlterClientQuotasRequest {
        entries: asked.alterations.iter().map(entry).collect(),
        validate_only: asked.validate_only,
    };
    let answer = change(cluster, "alter quotas", &request)?;
    let result = |result: &EntryResult| {
        let parts = result.entity.iter().map(|part| (part.entity_type.clone(), part.entity_name.clone()));
        json!({
            "entity": parts.collect::<Entity>(),
            "error": error_name(result.error_code),
            "message": said(result.error_code, result.error_message.as_deref()),
        })
    };
    Ok(answer.entries.iter().map(result).collect())
}
