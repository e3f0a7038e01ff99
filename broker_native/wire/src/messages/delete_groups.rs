//! DeleteGroups (42): forgets groups and their offsets.
use crate::schema::messages;

messages! {
    /// Which groups.
    DeleteGroupsRequest of DeleteGroups {
        groups_names: Vec<String> [0+],
    }

    /// What became of each.
    DeleteGroupsResponse of DeleteGroups {
        throttle_time_ms: i32 [0+],
        results: Vec<DeletableGroupResult> [0+],
    }

    /// What became of a group.
    DeletableGroupResult {
        group_id: String [0+],
        error_code: i16 [0+],
        error_message: Option<String> [3+],
    }
}
