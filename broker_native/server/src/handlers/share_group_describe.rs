//! ShareGroupDescribe: asks each group's coordinator.
//!
//! KIP-932.
use super::common::group_call::{answer_all, ask, error_of};
use super::common::operations;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_group_describe::DescribedGroup;
use pylog_wire::messages::{ShareGroupDescribeRequest, ShareGroupDescribeResponse};

/// Answers with the groups in the order of the request.
pub fn handle(call: Call, request: ShareGroupDescribeRequest) -> Outcome {
    let asked =
        request.group_ids.iter().map(|group_id| ask(&call, GroupRequest::ShareDescribe(group_id.clone())));
    let asked = asked.collect();
    answer_all(call, asked, move |call, answers| {
        let groups = request.group_ids.into_iter().zip(answers).map(|(group_id, answer)| {
            let mut group = match answer {
                _ if group_id.is_empty() => error_response(group_id, ErrorCode::InvalidGroupId),
                Ok(GroupReply::ShareDescribe(group)) => group,
                other => {
                    let error =
                        ErrorCode::from_code(error_of(other)).unwrap_or(ErrorCode::UnknownServerError);
                    error_response(group_id, error)
                }
            };
            if group.error_code == ErrorCode::None.code() {
                group.authorized_operations = operations::on_group(request.include_authorized_operations);
            }
            group
        });
        call.answer(&ShareGroupDescribeResponse { groups: groups.collect(), ..Default::default() })
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
