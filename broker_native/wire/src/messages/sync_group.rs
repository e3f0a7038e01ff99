//! SyncGroup (14): the leader brings the assignments, every member takes its own.
use bytes::Bytes;

use super::hex;
use crate::schema::messages;

messages! {
    /// A member of a generation; from its leader, with everybody's assignment.
    SyncGroupRequest of SyncGroup {
        group_id: String [0+],
        generation_id: i32 [0+],
        member_id: String [0+],
        group_instance_id: Option<String> [3+],
        protocol_type: Option<String> [5+],
        protocol_name: Option<String> [5+],
        assignments: Vec<SyncGroupRequestAssignment> [0+],
    }

    /// What one member gets.
    SyncGroupRequestAssignment {
        member_id: String [0+],
        #[serde(with = "hex::never_null")]
        assignment: Bytes [0+],
    }

    /// The member's assignment.
    SyncGroupResponse of SyncGroup {
        throttle_time_ms: i32 [1+],
        error_code: i16 [0+],
        protocol_type: Option<String> [5+],
        protocol_name: Option<String> [5+],
        #[serde(with = "hex::never_null")]
        assignment: Bytes [0+],
    }
}
