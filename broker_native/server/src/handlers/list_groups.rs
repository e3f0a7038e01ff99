//! ListGroups: all groups that this broker coordinates.
//!
//! Version 4 has the groups' states, and asks for some of them (KIP-518); 5 the same of their types (KIP-848).
use crate::authorization::table::{LIST_GROUPS_CLUSTER, LIST_GROUPS_GROUP};
use crate::call::{Call, Outcome};
use pylog_coordinator::group::Group;
use pylog_wire::messages::list_groups::ListedGroup;
use pylog_wire::messages::{ListGroupsRequest, ListGroupsResponse};

/// Answers with the groups of all partitions; with COORDINATOR_LOAD_IN_PROGRESS, and none, while one is being loaded.
pub fn handle(call: &Call, request: &ListGroupsRequest) -> Outcome {
    let states: Vec<_> = request.states_filter.iter().map(|state| state.trim().to_lowercase()).collect();
    let types: Vec<_> = request.types_filter.iter().map(|name| name.to_lowercase()).collect();
    let wanted = |group: &Group| {
        (states.is_empty() || states.contains(&group.kind.state_name().to_lowercase()))
            && (types.is_empty() || types.iter().any(|name| name == group.kind.type_name()))
    };
    let sees_all = call.may_cluster(&LIST_GROUPS_CLUSTER);
    let mut groups = Vec::new();
    let looked = call.shared.coordinators.groups.for_each_loaded(|machine| {
        let found = machine.groups().filter(|(group_id, group)| {
            wanted(group) && (sees_all || call.may(&LIST_GROUPS_GROUP, group_id))
        });
        groups.extend(found.map(|(group_id, group)| ListedGroup {
            group_id: group_id.to_owned(),
            protocol_type: group.kind.protocol_type().to_owned(),
            group_state: group.kind.state_name().to_owned(),
            group_type: group.kind.type_name().to_owned(),
        }));
    });
    let response = match looked {
        Ok(()) => ListGroupsResponse { groups, ..Default::default() },
        Err(error) => ListGroupsResponse { error_code: error.code(), ..Default::default() },
    };
    Outcome::Now(call.answer(&response))
}
