//! `__consumer_offsets`: a group of the classic protocol.
use bytes::Bytes;

use super::Stored;
use crate::messages::hex;
use crate::schema::messages;

messages! {
    /// Which group. Type 2.
    GroupMetadataKey {
        group: String [0+],
    }

    /// The group as it is; without members it is empty.
    GroupMetadataValue {
        protocol_type: String [0+],
        generation: i32 [0+],
        protocol: Option<String> [0+],
        leader: Option<String> [0+],
        /// Since when it is in its state, milliseconds since the epoch; -1: unknown.
        current_state_timestamp: i64 [2+] = -1,
        members: Vec<MemberMetadata> [0+],
    }

    /// A member, and what it got.
    MemberMetadata {
        member_id: String [0+],
        group_instance_id: Option<String> [3+],
        client_id: String [0+],
        client_host: String [0+],
        /// -1: as the session time-out.
        rebalance_timeout: i32 [1+] = -1,
        session_timeout: i32 [0+],
        #[serde(with = "hex::never_null")]
        subscription: Bytes [0+],
        #[serde(with = "hex::never_null")]
        assignment: Bytes [0+],
    }
}

impl Stored for GroupMetadataKey {
    const NAME: &'static str = "GroupMetadataKey";
    const OLDEST: i16 = 2;
    const NEWEST: i16 = 2;
}

impl Stored for GroupMetadataValue {
    const NAME: &'static str = "GroupMetadataValue";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 4;
    const FLEXIBLE_FROM: i16 = 4;
}
