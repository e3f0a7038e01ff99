//! A cluster as an administrator sees it. Answers are JSON values, shaped as `_native.pyi` says.
//!
//! An error of one topic, group or resource is part of the answer; only what concerns the whole request is an `Err`. A
//! request that changes something is sent once, because a repetition could meet its own effect; only one that was surely not
//! carried out (`NOT_CONTROLLER`) is sent again.
//!
//! | file | what it asks |
//! |---|---|
//! | `change` | how a request that changes something is sent |
//! | [`topics`], [`configs`] | topics, records and the cluster; settings |
//! | [`groups`], [`group_offsets`], [`share_groups`], `group_answer` | groups and their offsets; what their answers have in common |
//! | [`transactions`] | transactions and producers |
//! | [`features`], [`brokers`] | levels of the cluster; brokers that are dead or gone |
//! | [`replicas`] | replicas that move, leaders |
//! | [`scram_users`], [`acls`], [`quotas`] | who can log in, who may do what, how much |
//! | [`by_name`] | requests by name |
pub mod acls;
pub mod brokers;
pub mod by_name;
mod change;
pub mod configs;
pub mod features;
mod group_answer;
pub mod group_offsets;
pub mod groups;
pub mod quotas;
pub mod replicas;
pub mod scram_users;
pub mod share_groups;
pub mod topics;
pub mod transactions;

use crate::error::{ClientError, Result, code};
use crate::metadata::cluster::Cluster;
use change::change;
use pylog_wire::ErrorCode;

fn leader(cluster: &mut Cluster, name: &str, partition: i32) -> Result<i32> {
    let topic = cluster.topic(name, false)?;
    let shown = topic.partitions.iter().find(|shown| shown.partition_index == partition);
    let shown = shown.ok_or_else(|| {
        let message = format!("topic {name} has no partition {partition}; it has {}", topic.partitions.len());
        ClientError::fatal(ErrorCode::UnknownTopicOrPartition.name(), message)
    })?;
    Ok(shown.leader_id)
}

/// What `ask` gives for every broker. When one fails all are asked again, as metadata shows them by then: it may have died,
/// and another does its work.
fn everywhere<T>(
    cluster: &mut Cluster,
    what: &str,
    mut ask: impl FnMut(&mut Cluster, i32) -> Result<T>,
) -> Result<Vec<(i32, T)>> {
    cluster.retrying(what, |cluster| {
        let answer = cluster.metadata(Some(&[]), false)?;
        let nodes = answer.brokers.iter().map(|broker| broker.node_id);
        nodes.map(|node| Ok((node, ask(cluster, node)?))).collect()
    })
}

/// An error of the whole request.
fn refuse(number: i16, what: &str) -> Result<()> {
    match code(number) {
        ErrorCode::None => Ok(()),
        error => Err(ClientError::fatal(error.name(), format!("{what}: {}", error.sentence()))),
    }
}

/// As [`refuse`], with the broker's own words if it has some.
fn refuse_saying(number: i16, message: Option<&str>, what: &str) -> Result<()> {
    match said(number, message) {
        None => Ok(()),
        Some(sentence) => Err(ClientError::fatal(code(number).name(), format!("{what}: {sentence}"))),
    }
}

fn timeout_ms(cluster: &Cluster) -> i32 {
    i32::try_from(cluster.settings().request_timeout_ms).unwrap_or(i32::MAX)
}

fn error_name(number: i16) -> Option<&'static str> {
    (number != 0).then(|| code(number).name())
}

/// The broker's own words for an error, or the table's where they say no more than that something was not allowed.
fn said(number: i16, message: Option<&str>) -> Option<String> {
    let message = message.filter(|text| !text.is_empty() && !text.ends_with("uthorization failed."));
    (number != 0).then(|| message.unwrap_or(code(number).sentence()).to_owned())
}
