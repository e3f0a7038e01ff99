//! Offsets of groups: shown, set, removed.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{error_name, refuse, said};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, ask_coordinator, check_ready};
use pylog_wire::messages::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use pylog_wire::messages::offset_delete::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use pylog_wire::messages::offset_fetch::OffsetFetchRequestGroup;
use pylog_wire::messages::{OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest};

/// Topic, partition, offset, metadata.
pub type CommittedOffset = (String, i32, i64, String);

/// All offsets that a group committed; with `stable`, none that an open transaction may change.
///
/// # Errors
/// Those of the connection and of the group.
pub fn list(cluster: &mut Cluster, group: &str, stable: bool) -> Result<Vec<Value>> {
    let of_group = OffsetFetchRequestGroup { group_id: group.to_owned(), topics: None, ..Default::default() };
    let request = OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: None,
        groups: vec![of_group],
        require_stable: stable,
    };
    let answer = ask_coordinator(
        cluster,
        "list offsets of a group",
        CoordinatorType::Group,
        group,
        |cluster, node| {
            let answer = cluster.call(node, &request)?;
            check_ready(answer.error_code, group)?;
            answer.groups.iter().try_for_each(|described| check_ready(described.error_code, group))?;
            Ok(answer)
        },
    )?;
    refuse(answer.error_code, "offsets of the group cannot be listed")?;
    let mut offsets = Vec::new();
    for topic in &answer.topics {
        offsets.extend(topic.partitions.iter().map(|partition| {
            offset_json(
                &topic.name,
                partition.partition_index,
                partition.committed_offset,
                partition.metadata.as_deref(),
                partition.error_code,
            )
        }));
    }
    for of_group in &answer.groups {
        refuse(of_group.error_code, "offsets of the group cannot be listed")?;
        for topic in &of_group.topics {
            offsets.extend(topic.partitions.iter().map(|partition| {
                offset_json(
                    &topic.name,
                    partition.partition_index,
                    partition.committed_offset,
                    partition.metadata.as_deref(),
                    partition.error_code,
                )
            }));
        }
    }
    Ok(offsets)
}

fn offset_json(topic: &str, partition: i32, offset: i64, metadata: Option<&str>, error: i16) -> Value {
    json!({
        "topic": topic, "partition": partition, "offset": offset, "metadata": metadata, "error": error_name(error),
    })
}

/// Sets offsets of a group without members.
///
/// # Errors
/// Those of the connection.
pub fn alter(cluster: &mut Cluster, group: &str, offsets: &[CommittedOffset]) -> Result<Vec<Value>> {
    let mut topics: BTreeMap<&str, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
    for (topic, partition_index, committed_offset, metadata) in offsets {
        topics.entry(topic).or_default().push(OffsetCommitRequestPartition {
            partition_index: *partition_index,
            committed_offset: *committed_offset,
            committed_metadata: Some(metadata.clone()),
            ..Default::default()
        });
    }
    let topic = |(name, partitions): (&str, _)| OffsetCommitRequestTopic {
        name: name.to_owned(),
        partitions,
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: topics.into_iter().map(topic).collect(),
        ..Default::default()
    };
    let answer = ask_coordinator(
        cluster,
        "set offsets of a group",
        CoordinatorType::Group,
        group,
        |cluster, node| {
            let answer = cluster.call(node, &request)?;
            let mut each = answer.topics.iter().flat_map(|topic| &topic.partitions);
            each.try_for_each(|partition| check_ready(partition.error_code, group))?;
            Ok(answer)
        },
    )?;
    let mut results = Vec::new();
    for topic in &answer.topics {
        let result = |partition, error| result_json(&topic.name, partition, error);
        results.extend(
            topic.partitions.iter().map(|partition| result(partition.partition_index, partition.error_code)),
        );
    }
    Ok(results)
}

/// Removes offsets of partitions that no member of the group reads.
///
/// # Errors
/// Those of the connection and of the group.
pub fn delete(cluster: &mut Cluster, group: &str, partitions: &[(String, i32)]) -> Result<Vec<Value>> {
    let mut topics: BTreeMap<&str, Vec<OffsetDeleteRequestPartition>> = BTreeMap::new();
    for (topic, partition_index) in partitions {
        let partition = OffsetDeleteRequestPartition { partition_index: *partition_index };
        topics.entry(topic).or_default().push(partition);
    }
    let topic =
        |(name, partitions): (&str, _)| OffsetDeleteRequestTopic { name: name.to_owned(), partitions };
    let request =
        OffsetDeleteRequest { group_id: group.to_owned(), topics: topics.into_iter().map(topic).collect() };
    let answer = ask_coordinator(
        cluster,
        "delete offsets of a group",
        CoordinatorType::Group,
        group,
        |cluster, node| {
            let answer = cluster.call(node, &request)?;
            check_ready(answer.error_code, group)?;
            Ok(answer)
        },
    )?;
    refuse(answer.error_code, "offsets of the group cannot be deleted")?;
    let mut results = Vec::new();
    for topic in &answer.topics {
        let result = |partition, error| result_json(&topic.name, partition, error);
        results.extend(
            topic.partitions.iter().map(|partition| result(partition.partition_index, partition.error_code)),
        );
    }
    Ok(results)
}

fn result_json(topic: &str, partition: i32, error: i16) -> Value {
    let message = said(error, None).map(|said| format!("{topic}-{partition}: {said}"));
    json!({"topic": topic, "partition": partition, "error": error_name(error), "message": message})
}
