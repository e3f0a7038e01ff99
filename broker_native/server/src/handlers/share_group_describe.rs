//! ShareGroupDescribe: asks each group's coordinator.
//!
//! KIP-932.
use super::common::group_call::{answer_all, ask, error_of};
use super::common::operations;
use super::consumer_group_describe::HAS_HIDDEN_TOPICS;
use crate::authorization::table::{SHARE_GROUP_DESCRIBE_GROUP, SHARE_GROUP_DESCRIBE_TOPIC};
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_group_describe::DescribedGroup;
use pylog_wire::messages::{ShareGroupDescribeRequest, ShareGroupDescribeResponse};

/// Answers with the groups in the order of the request.
pub fn handle(call: Call, request: ShareGroupDescribeRequest) -> Outcome {
    let asked =
        request.group_ids.iter().map(|group_id| match call.check(&SHARE_GROUP_DESCRIBE_GROUP, group_id) {
            Ok(()) => ask(&call, GroupRequest::ShareDescribe(group_id.clone())),
            Err(error) => Waiting::now(Err(error)),
        });
    let asked = asked.collect();
    answer_all(call, asked, move |call, answers| {
        let groups = request.group_ids.into_iter().zip(answers).map(|(group_id, answer)| {
            let mut group = match answer {
                _ if group_id.is_empty() => error_response(group_id, ErrorCode::InvalidGroupId),
                Ok(GroupReply::ShareDescribe(group)) => visible(call, group),
                other => {
                    let error =
                        ErrorCode::from_code(error_of(other)).unwrap_or(ErrorCode::UnknownServerError);
                    error_response(group_id, error)
                }
            };
            if group.error_code == ErrorCode::None.code() {
                let asked = request.include_authorized_operations;
                group.authorized_operations = operations::on_group(call, asked, &group.group_id);
            }
            group
        });
        call.answer(&ShareGroupDescribeResponse { groups: groups.collect(), ..Default::default() })
    })
}

/// The group, where the client may know of all topics that its members have.
fn visible(call: &Call, group: DescribedGroup) -> DescribedGroup {
    let topics = group.members.iter().flat_map(|member| &member.assignment.topic_partitions);
    match call.may_all(&SHARE_GROUP_DESCRIBE_TOPIC, topics.map(|topic| &*topic.topic_name)) {
        true => group,
        false => DescribedGroup {
            error_message: Some(HAS_HIDDEN_TOPICS.to_owned()),
            ..error_response(group.group_id, SHARE_GROUP_DESCRIBE_TOPIC.error())
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
