//! JoinGroup (11): become or stay a member of a classic group.
use bytes::Bytes;

use super::hex;
use crate::schema::messages;

messages! {
    /// A member and the protocols it speaks.
    JoinGroupRequest of JoinGroup {
        group_id: String [0+],
        session_timeout_ms: i32 [0+],
        /// -1, as in version 0: the session time-out counts.
        rebalance_timeout_ms: i32 [1+] = -1,
        /// Empty for a new member.
        member_id: String [0+],
        group_instance_id: Option<String> [5+],
        protocol_type: String [0+],
        /// In the order of the member's preference.
        protocols: Vec<JoinGroupRequestProtocol> [0+],
        reason: Option<String> [8+],
    }

    /// A protocol and what the member says about itself to the leader under it.
    JoinGroupRequestProtocol {
        name: String [0+],
        #[serde(with = "hex::never_null")]
        metadata: Bytes [0+],
    }

    /// The generation that the member is part of.
    JoinGroupResponse of JoinGroup {
        throttle_time_ms: i32 [2+],
        error_code: i16 [0+],
        generation_id: i32 [0+] = -1,
        protocol_type: Option<String> [7+],
        /// Null, from version 7 on, when there is none.
        protocol_name: Option<String> [0+ null 7+] = Some(String::new()),
        leader: String [0+],
        /// The leader keeps the assignment that it made before and must not assign anew.
        skip_assignment: bool [9+],
        member_id: String [0+],
        /// Only for the leader.
        members: Vec<JoinGroupResponseMember> [0+],
    }

    /// A member, for the leader.
    JoinGroupResponseMember {
        member_id: String [0+],
        group_instance_id: Option<String> [5+],
        #[serde(with = "hex::never_null")]
        metadata: Bytes [0+],
    }
}
