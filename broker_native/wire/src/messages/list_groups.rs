//! ListGroups (16): the groups that this broker coordinates.
use crate::schema::messages;

messages! {
    /// Of which states and types; empty lists stand for all.
    ListGroupsRequest of ListGroups {
        states_filter: Vec<String> [4+],
        types_filter: Vec<String> [5+],
    }

    /// The groups.
    ListGroupsResponse of ListGroups {
        throttle_time_ms: i32 [1+],
        error_code: i16 [0+],
        groups: Vec<ListedGroup> [0+],
    }

    /// A group.
    ListedGroup {
        group_id: String [0+],
        protocol_type: String [0+],
        group_state: String [4+],
        group_type: String [5+],
    }
}
