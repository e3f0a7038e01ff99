//! ConsumerGroupDescribe: asks each group's coordinator.
//!
//! KIP-848. Version 1 says which members speak the classic protocol (KIP-1099).
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::consumer_group_describe::DescribedGroup;
use pylog_wire::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};

/// What a client without credentials may do with a group, as the bits of READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and
/// ALTER_CONFIGS: everything, there are no ACLs.
const ALL_OPERATIONS: i32 = (1 << 3) | (1 << 6) | (1 << 8) | (1 << 10) | (1 << 11);

/// Answers with the groups in the order of the request.
pub fn handle(call: Call, request: ConsumerGroupDescribeRequest) -> Outcome {
    let ask = |group_id: &String| {
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
                Ok(GroupReply::ConsumerDescribe(group)) => group,
                Ok(_) => error_response(group_id, ErrorCode::UnknownServerError),
                Err(error) => error_response(group_id, error),
            };
            if with_operations && group.error_code == ErrorCode::None.code() {
                group.authorized_operations = ALL_OPERATIONS;
            }
            response.groups.push(group);
        }
        call.answer(&response)
    })
}

fn error_response(group_id: String, error: ErrorCode) -> DescribedGroup {
    DescribedGroup {
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
        group_id,
        ..Default::default()
    }
}
