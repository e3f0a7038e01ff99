//! ConsumerGroupDescribe: asks each group's coordinator.
//!
//! KIP-848. Version 1 says which members speak the classic protocol (KIP-1099).
use super::common::operations;
use crate::authorization::table::{CONSUMER_GROUP_DESCRIBE_GROUP, CONSUMER_GROUP_DESCRIBE_TOPIC};
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::consumer_group_describe::DescribedGroup;
use pylog_wire::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};

/// Why a group is not described to who may not know of its topics; in Kafka's words.
pub const HAS_HIDDEN_TOPICS: &str =
    "The group has described topic(s) that the client is not authorized to describe.";

/// Answers with the groups in the order of the request.
pub fn handle(call: Call, request: ConsumerGroupDescribeRequest) -> Outcome {
    let ask = |group_id: &String| {
        if let Err(error) = call.check(&CONSUMER_GROUP_DESCRIBE_GROUP, group_id) {
            return Waiting::now(Err(error));
        }
        call.shared.coordinators.groups.call(group_id, |ticket| GroupEvent {
            ticket,
            caller: call.caller(),
            request: GroupRequest::ConsumerDescribe(group_id.clone()),
        })
    };
    let asked: Vec<_> = request.group_ids.iter().map(|group_id| (group_id.clone(), ask(group_id))).collect();
    let with_operations = request.include_authorized_operations;
    Outcome::later(async move {
        let mut response = ConsumerGroupDescribeResponse::default();
        for (group_id, waiting) in asked {
            let answer = if group_id.is_empty() { Err(ErrorCode::InvalidGroupId) } else { waiting.await };
            let mut group = match answer {
                Ok(GroupReply::ConsumerDescribe(group)) => visible(&call, group),
                Ok(_) => error_response(group_id, ErrorCode::UnknownServerError),
                Err(error) => error_response(group_id, error),
            };
            if group.error_code == ErrorCode::None.code() {
                group.authorized_operations = operations::on_group(&call, with_operations, &group.group_id);
            }
            response.groups.push(group);
        }
        call.answer(&response)
    })
}

/// The group, where the client may know of all topics that its members have.
fn visible(call: &Call, group: DescribedGroup) -> DescribedGroup {
    let assignments = group.members.iter().flat_map(|member| [&member.assignment, &member.target_assignment]);
    let topics = assignments.flat_map(|assignment| &assignment.topic_partitions);
    match call.may_all(&CONSUMER_GROUP_DESCRIBE_TOPIC, topics.map(|topic| &*topic.topic_name)) {
        true => group,
        false => DescribedGroup {
            error_message: Some(HAS_HIDDEN_TOPICS.to_owned()),
            ..error_response(group.group_id, CONSUMER_GROUP_DESCRIBE_TOPIC.error())
        },
    }
}

fn error_response(group_id: String, error: ErrorCode) -> DescribedGroup {
    DescribedGroup {
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        group_id,
        ..Default::default()
    }
}
