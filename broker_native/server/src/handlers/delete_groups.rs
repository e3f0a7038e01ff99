//! DeleteGroups: groups without members are forgotten, with their offsets; of share groups also what they did with records.
//!
//! KIP-229. Version 3 has a sentence for each error.
use super::common::group_call::{ask, error_of};
use super::common::share_admin;
use crate::authorization::table::DELETE_GROUPS_GROUP;
use crate::call::{Call, Outcome};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_groups::DeletableGroupResult;
use pylog_wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, mut request: DeleteGroupsRequest) -> Outcome {
    let mut seen = std::collections::HashSet::new();
    // The answer has each group once, as Kafka's.
    request.groups_names.retain(|group_id| seen.insert(group_id.clone()));
    let error = DELETE_GROUPS_GROUP.error();
    let refused = call.set_aside(&mut request.groups_names, &DELETE_GROUPS_GROUP, |group_id| group_id);
    // All that are not share groups, at once.
    let begun = request.groups_names.into_iter().map(|group_id| {
        let shares = matches!(share_admin::is_empty(&call, &group_id), Ok(true));
        let waiting = (!shares).then(|| ask(&call, GroupRequest::DeleteGroup(group_id.clone())));
        (group_id, waiting)
    });
    let begun: Vec<_> = begun.collect();
    Outcome::later(async move {
        let mut results = Vec::with_capacity(begun.len());
        for (group_id, waiting) in begun {
            let outcome = match waiting {
                Some(waiting) => waiting.await,
                // First what it did: a group that is made anew must not find it.
                None => match forget(&call, &group_id).await {
                    ErrorCode::None => ask(&call, GroupRequest::DeleteGroup(group_id.clone())).await,
                    error => Err(error),
                },
            };
            let error_code = match outcome {
                Ok(GroupReply::DeleteGroup(error_code)) => error_code,
                other => error_of(other),
            };
            results.push(DeletableGroupResult { group_id, error_code, error_message: None });
        }
        results.extend(refused.into_iter().map(|group_id| DeletableGroupResult {
            group_id,
            error_code: error.code(),
            error_message: None,
        }));
        call.answer(&DeleteGroupsResponse { results, ..Default::default() })
    })
}

async fn forget(call: &Call, group_id: &str) -> ErrorCode {
    match call.shared.coordinators.share_store.keys(group_id).await {
        Ok(keys) => share_admin::delete(&call.shared, keys).await,
        Err(error) => error,
    }
}
