//! OffsetDelete: the group's coordinator forgets offsets.
use super::coordinated::{answered, ask_group};
use crate::coordinator::group::{GroupReply, GroupRequest};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

/// Answers when it is written down.
pub fn handle(call: Call, request: OffsetDeleteRequest) -> Outcome {
    if request.group_id.is_empty() {
        return Outcome::Now(call.answer(&refused(ErrorCode::InvalidGroupId)));
    }
    let waiting = ask_group(&call, GroupRequest::OffsetDelete(request));
    answered(call, waiting, |call, outcome| match outcome {
        Ok(GroupReply::OffsetDelete(response)) => call.answer(&response),
        other => call.answer(&refused(other.err().unwrap_or(ErrorCode::UnknownServerError))),
    })
}

fn refused(error: ErrorCode) -> OffsetDeleteResponse {
    OffsetDeleteResponse { error_code: error.code(), ..Default::default() }
}
