//! Heartbeat (12): a member of a classic group is alive.
use crate::schema::messages;

messages! {
    /// A member of a generation.
    HeartbeatRequest of Heartbeat {
        group_id: String [0+],
        generation_id: i32 [0+],
        member_id: String [0+],
        group_instance_id: Option<String> [3+],
    }

    /// Whether the generation is still the group's.
    HeartbeatResponse of Heartbeat {
        throttle_time_ms: i32 [1+],
        error_code: i16 [0+],
    }
}
