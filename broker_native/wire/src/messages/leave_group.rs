//! LeaveGroup (13): members go at once instead of by time-out.
use crate::schema::messages;

messages! {
    /// The members that leave: `members` from version 3 on, `member_id` before.
    LeaveGroupRequest of LeaveGroup {
        group_id: String [0+],
        member_id: String [0-2],
        members: Vec<MemberIdentity> [3+],
    }

    /// A member by its id; by its instance id alone when the member id is empty.
    MemberIdentity {
        member_id: String [3+],
        group_instance_id: Option<String> [3+],
        reason: Option<String> [5+],
    }

    /// What became of each.
    LeaveGroupResponse of LeaveGroup {
        throttle_time_ms: i32 [1+],
        error_code: i16 [0+],
        members: Vec<MemberResponse> [3+],
    }

    /// A member that went, or why it did not.
    MemberResponse {
        member_id: String [3+],
        group_instance_id: Option<String> [3+],
        error_code: i16 [3+],
    }
}
