//! Share groups (KIP-932): their members and offsets, and changes of these offsets.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::group_answer::{described_error, first};
use super::{error_name, refuse, said};
use crate::error::{Result, code};
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, ask_coordinator, check_ready};
use pylog_wire::ErrorCode;
use pylog_wire::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use pylog_wire::messages::describe_share_group_offsets::DescribeShareGroupOffsetsRequestGroup;
use pylog_wire::messages::share_group_describe::{DescribedGroup, Member};
use pylog_wire::messages::{
    AlterShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest,
};

/// Kafka's word for the kind.
const SHARE: &str = "share";

/// The group with its members; `None` when it is not a share group, or the brokers have none.
///
/// # Errors
/// Those of the connection; a coordinator that is not there yet.
pub(super) fn describe_one(cluster: &mut Cluster, node: i32, name: &str) -> Result<Option<Value>> {
    let request = ShareGroupDescribeRequest { group_ids: vec![name.to_owned()], ..Default::default() };
    let group = match cluster.call(node, &request) {
        Ok(answer) => first(answer.groups, name)?,
        // Brokers before 4.1.
        Err(error) if error.kind == ErrorCode::UnsupportedVersion.name() => return Ok(None),
        Err(error) => return Err(error),
    };
    check_ready(group.error_code, name)?;
    let is_other =
        [ErrorCode::GroupIdNotFound, ErrorCode::UnsupportedVersion].contains(&code(group.error_code));
    Ok((!is_other).then(|| share_json(&group, node)))
}

/// Where the group stands in each partition that it has begun with: the first offset that is not done with, and how many from there on
/// are not.
///
/// # Errors
/// Those of the connection and of the group.
pub fn offsets(cluster: &mut Cluster, group: &str) -> Result<Vec<Value>> {
    let of_group = DescribeShareGroupOffsetsRequestGroup { group_id: group.to_owned(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![of_group] };
    let answer = ask_coordinator(
        cluster,
        "list offsets of a share group",
        CoordinatorType::Group,
        group,
        |cluster, node| {
            let answer = first(cluster.call(node, &request)?.groups, group)?;
            check_ready(answer.error_code, group)?;
            let mut each = answer.topics.iter().flat_map(|topic| &topic.partitions);
            each.try_for_each(|partition| check_ready(partition.error_code, group))?;
            Ok(answer)
        },
    )?;
    refuse(answer.error_code, "offsets of the share group cannot be listed")?;
    let of_topic = answer.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            json!({
                "topic": topic.topic_name,
                "partition": partition.partition_index,
                "offset": partition.start_offset,
                "lag": partition.lag,
                "error": error_name(partition.error_code),
                "message": said(partition.error_code, partition.error_message.as_deref()),
            })
        })
    });
    Ok(of_topic.collect())
}

/// Topic, partition, offset.
pub type StartOffset = (String, i32, i64);

/// Moves a share group without members: what is before these offsets is done with, what is behind them is delivered.
///
/// # Errors
/// Those of the connection and of the group.
pub fn alter(cluster: &mut Cluster, group: &str, starts: &[StartOffset]) -> Result<Vec<Value>> {
    let mut topics: BTreeMap<&str, Vec<AlterShareGroupOffsetsRequestPartition>> = BTreeMap::new();
    for (topic, partition_index, start_offset) in starts {
        topics.entry(topic).or_default().push(AlterShareGroupOffsetsRequestPartition {
            partition_index: *partition_index,
            start_offset: *start_offset,
        });
    }
    let topic = |(name, partitions): (&str, _)| AlterShareGroupOffsetsRequestTopic {
        topic_name: name.to_owned(),
        partitions,
    };
    let topics = topics.into_iter().map(topic).collect();
    let request = AlterShareGroupOffsetsRequest { group_id: group.to_owned(), topics };
    let answer = ask_coordinator(
        cluster,
        "set offsets of a share group",
        CoordinatorType::Group,
        group,
        |cluster, node| {
            let answer = cluster.call(node, &request)?;
            check_ready(answer.error_code, group)?;
            let mut each = answer.responses.iter().flat_map(|topic| &topic.partitions);
            each.try_for_each(|partition| check_ready(partition.error_code, group))?;
            Ok(answer)
        },
    )?;
    refuse(answer.error_code, "offsets of the share group cannot be set")?;
    let of_topic = answer.responses.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let name = format!("{}-{}", topic.topic_name, partition.partition_index);
            json!({
                "topic": topic.topic_name,
                "partition": partition.partition_index,
                "error": error_name(partition.error_code),
                "message": said(partition.error_code, partition.error_message.as_deref()).map(|said| format!("{name}: {said}")),
            })
        })
    });
    Ok(of_topic.collect())
}

fn share_json(group: &DescribedGroup, node: i32) -> Value {
    let member = |member: &Member| {
        let topics = &member.assignment.topic_partitions;
        let read = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic_name.as_str(), *partition))
        });
        json!({
            "member_id": member.member_id,
            "instance_id": null,
            "client_id": member.client_id,
            "host": member.client_host,
            "partitions": read.collect::<Vec<_>>(),
        })
    };
    json!({
        "group_id": group.group_id,
        "type": SHARE,
        "state": group.group_state,
        "protocol_type": SHARE,
        "assignor": group.assignor_name,
        "coordinator": node,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "error": error_name(group.error_code),
        "message": described_error(group.error_code, group.error_message.as_deref(), &group.group_id),
    })
}
