//! DescribeGroups (15): classic groups and their members.
use bytes::Bytes;

use super::hex;
use super::metadata::OPERATIONS_NOT_ASKED;
use crate::schema::messages;

messages! {
    /// Which groups.
    DescribeGroupsRequest of DescribeGroups {
        groups: Vec<String> [0+],
        include_authorized_operations: bool [3+],
    }

    /// The groups.
    DescribeGroupsResponse of DescribeGroups {
        throttle_time_ms: i32 [1+],
        groups: Vec<DescribedGroup> [0+],
    }

    /// A group.
    DescribedGroup {
        error_code: i16 [0+],
        error_message: Option<String> [6+],
        group_id: String [0+],
        group_state: String [0+],
        protocol_type: String [0+],
        /// The name of the protocol that the members agreed upon; only of a stable group.
        protocol_data: String [0+],
        members: Vec<DescribedGroupMember> [0+],
        authorized_operations: i32 [3+] = OPERATIONS_NOT_ASKED,
    }

    /// A member of a group.
    DescribedGroupMember {
        member_id: String [0+],
        group_instance_id: Option<String> [4+],
        client_id: String [0+],
        client_host: String [0+],
        /// Only of a stable group.
        #[serde(with = "hex::never_null")]
        member_metadata: Bytes [0+],
        #[serde(with = "hex::never_null")]
        member_assignment: Bytes [0+],
    }
}
