//! DeleteGroups: groups without members are forgotten, with their offsets.
use super::group_call::{answer_all, ask, error_of};
use crate::coordinator::group::{GroupReply, GroupRequest};
use crate::server::dispatch::{Call, Outcome};
use crate::wire::messages::delete_groups::DeletableGroupResult;
use crate::wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

/// Answers when it is written down.
pub fn handle(call: Call, mut request: DeleteGroupsRequest) -> Outcome {
    let mut seen = std::collections::HashSet::new();
    // The answer has each group once, as Kafka's.
    request.groups_names.retain(|group_id| seen.insert(group_id.clone()));
    let waiting = request.groups_names.iter();
    let waiting = waiting.map(|group_id| ask(&call, GroupRequest::DeleteGroup(group_id.clone())));
    let waiting = waiting.collect();
    answer_all(call, waiting, move |call, outcomes| {
        let results = request.groups_names.into_iter().zip(outcomes).map(|(group_id, outcome)| {
            let error_code = match outcome {
                Ok(GroupReply::DeleteGroup(error_code)) => error_code,
                other => error_of(other),
            };
            DeletableGroupResult { group_id, error_code, error_message: None }
        });
        call.answer(&DeleteGroupsResponse { results: results.collect(), ..Default::default() })
    })
}
