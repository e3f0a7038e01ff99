//! DescribeGroups: classic groups, each asked by itself.
//!
//! Version 3 says what the client may do (KIP-430); 4 static members (KIP-345); 6 has GROUP_ID_NOT_FOUND, with a sentence
//! (KIP-1043).
use super::common::group_call::{ask, error_of};
use super::common::operations;
use crate::authorization::table::DESCRIBE_GROUPS_GROUP;
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_wire::messages::describe_groups::DescribedGroup;
use pylog_wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse};

/// Asks every group that is named.
pub fn handle(call: Call, request: DescribeGroupsRequest) -> Outcome {
    let operations_asked = request.include_authorized_operations;
    let asked = request.groups.into_iter().map(|group_id| {
        let waiting = match call.check(&DESCRIBE_GROUPS_GROUP, &group_id) {
            Ok(()) => ask(&call, GroupRequest::DescribeGroup(group_id.clone())),
            Err(error) => Waiting::now(Err(error)),
        };
        (group_id, waiting)
    });
    let asked: Vec<_> = asked.collect();
    Outcome::later(async move {
        let mut groups = Vec::with_capacity(asked.len());
        for (group_id, waiting) in asked {
            let mut group = match waiting.await {
                Ok(GroupReply::DescribeGroup(group)) => group,
                other => DescribedGroup { error_code: error_of(other), group_id, ..Default::default() },
            };
            if group.error_code == 0 {
                group.authorized_operations = operations::on_group(&call, operations_asked, &group.group_id);
            }
            groups.push(group);
        }
        call.answer(&DescribeGroupsResponse { groups, ..Default::default() })
    })
}
