//! OffsetDelete: the group's coordinator forgets offsets.
//!
//! KIP-496.
use super::common::group_call::{answer, error_of};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, request: OffsetDeleteRequest) -> Outcome {
    if request.group_id.is_empty() {
        return Outcome::Now(call.answer(&error_response(ErrorCode::InvalidGroupId.code())));
    }
    answer(call, GroupRequest::OffsetDelete(request), |reply| match reply {
        Ok(GroupReply::OffsetDelete(response)) => response,
        other => error_response(error_of(other)),
    })
}

fn error_response(error_code: i16) -> OffsetDeleteResponse {
    OffsetDeleteResponse { error_code, ..Default::default() }
}
