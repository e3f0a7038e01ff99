//! Groups: lists them and their members, and deletes them.
use serde_json::{Value, json};

use super::group_answer::{described_error, first};
use super::{error_name, said, share_groups};
use crate::error::{Result, code};
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, ask_coordinator, check_ready};
use pylog_wire::ErrorCode;
use pylog_wire::consumer_protocol::assigned;
use pylog_wire::messages::consumer_group_describe as newer;
use pylog_wire::messages::describe_groups::{DescribedGroup, DescribedGroupMember};
use pylog_wire::messages::{
    ConsumerGroupDescribeRequest, DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest,
};

/// Protocol type of groups whose members' assignments are partitions.
const CONSUMER: &str = "consumer";
/// State of a classic group that is not there.
const DEAD: &str = "Dead";

/// All groups of all brokers, by name.
///
/// # Errors
/// Those of the connection; of a coordinator that is still loading after `default.api.timeout.ms`.
pub fn list(cluster: &mut Cluster, states: &[String], types: &[String]) -> Result<Vec<Value>> {
    let request = ListGroupsRequest { states_filter: states.to_vec(), types_filter: types.to_vec() };
    let answers = super::everywhere(cluster, "list groups", |cluster, node| {
        let answer = cluster.call(node, &request)?;
        check_ready(answer.error_code, "list groups")?;
        super::refuse(answer.error_code, "groups cannot be listed")?;
        Ok(answer.groups)
    })?;
    let mut groups: Vec<_> = answers.into_iter().flat_map(|(_, groups)| groups).collect();
    groups.sort_by(|left, right| left.group_id.cmp(&right.group_id));
    let group = |group: pylog_wire::messages::list_groups::ListedGroup| {
        json!({
            "group_id": group.group_id,
            "protocol_type": group.protocol_type,
            "state": group.group_state,
            "type": group.group_type,
        })
    };
    Ok(groups.into_iter().map(group).collect())
}

/// Each group with its members, of whichever protocol or kind it is.
///
/// # Errors
/// Those of the connection.
pub fn describe(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Value>> {
    let describe = |name: &String| {
        ask_coordinator(cluster, "describe groups", CoordinatorType::Group, name, |cluster, node| {
            describe_one(cluster, node, name)
        })
    };
    names.iter().map(describe).collect()
}

fn describe_one(cluster: &mut Cluster, node: i32, name: &str) -> Result<Value> {
    let request = ConsumerGroupDescribeRequest { group_ids: vec![name.to_owned()], ..Default::default() };
    match cluster.call(node, &request) {
        Ok(answer) => {
            let group = first(answer.groups, name)?;
            check_ready(group.error_code, name)?;
            // A group of the other protocol is said not to be there.
            if code(group.error_code) != ErrorCode::GroupIdNotFound {
                return Ok(consumer_json(&group, node));
            }
        }
        // Brokers before 4.0.
        Err(error) if error.kind == ErrorCode::UnsupportedVersion.name() => {}
        Err(error) => return Err(error),
    }
    if let Some(group) = share_groups::describe_one(cluster, node, name)? {
        return Ok(group);
    }
    let request = DescribeGroupsRequest { groups: vec![name.to_owned()], ..Default::default() };
    let group = first(cluster.call(node, &request)?.groups, name)?;
    check_ready(group.error_code, name)?;
    Ok(classic_json(&group, node))
}

/// Deletes groups that have no members, with all their offsets.
///
/// # Errors
/// Those of the connection.
pub fn delete(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Value>> {
    let delete = |name: &String| {
        let request = DeleteGroupsRequest { groups_names: vec![name.clone()] };
        let result =
            ask_coordinator(cluster, "delete groups", CoordinatorType::Group, name, |cluster, node| {
                let result = first(cluster.call(node, &request)?.results, name)?;
                check_ready(result.error_code, name)?;
                Ok(result)
            })?;
        let message = match code(result.error_code) {
            ErrorCode::GroupIdNotFound => Some(format!("Group '{name}' does not exist.")),
            ErrorCode::NonEmptyGroup => {
                Some(format!("Group '{name}' has members: stop its consumers first."))
            }
            _ => said(result.error_code, None),
        };
        Ok(json!({"name": name, "error": error_name(result.error_code), "message": message}))
    };
    names.iter().map(delete).collect()
}

fn classic_json(group: &DescribedGroup, node: i32) -> Value {
    let is_gone = group.error_code == 0 && group.group_state == DEAD;
    let number = if is_gone { ErrorCode::GroupIdNotFound.code() } else { group.error_code };
    let is_consumer = group.protocol_type == CONSUMER;
    let member = |member: &DescribedGroupMember| {
        let owned = if is_consumer { assigned(&member.member_assignment) } else { Vec::new() };
        json!({
            "member_id": member.member_id,
            "instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "partitions": owned,
        })
    };
    json!({
        "group_id": group.group_id,
        "type": "classic",
        "state": group.group_state,
        "protocol_type": group.protocol_type,
        "assignor": group.protocol_data,
        "coordinator": node,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "error": error_name(number),
        "message": described_error(number, group.error_message.as_deref(), &group.group_id),
    })
}

fn consumer_json(group: &newer::DescribedGroup, node: i32) -> Value {
    let member = |member: &newer::Member| {
        let topics = &member.assignment.topic_partitions;
        let owned = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic_name.as_str(), *partition))
        });
        json!({
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "partitions": owned.collect::<Vec<_>>(),
        })
    };
    json!({
        "group_id": group.group_id,
        "type": CONSUMER,
        "state": group.group_state,
        "protocol_type": CONSUMER,
        "assignor": group.assignor_name,
        "coordinator": node,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "error": error_name(group.error_code),
        "message": described_error(group.error_code, group.error_message.as_deref(), &group.group_id),
    })
}
