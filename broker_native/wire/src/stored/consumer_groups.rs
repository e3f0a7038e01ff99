//! Groups of the KIP-848 protocol in `__consumer_offsets`: keys 3 to 8 and 16. Values are of version 0, flexible.
//!
//! Key 4 (partition metadata) is read only: Kafka stopped writing it in 4.1, a hash in [`GroupMetadataValue`] replaced it.
use uuid::Uuid;

use super::Stored;
use crate::schema::messages;

/// Key of [`GroupMetadataValue`].
pub const GROUP_METADATA: i16 = 3;
/// Key of what Kafka wrote before 4.1 about the subscribed topics.
pub const PARTITION_METADATA: i16 = 4;
/// Key of [`MemberMetadataValue`].
pub const MEMBER_METADATA: i16 = 5;
/// Key of [`TargetAssignmentMetadataValue`].
pub const TARGET_ASSIGNMENT_METADATA: i16 = 6;
/// Key of [`TargetAssignmentMemberValue`].
pub const TARGET_ASSIGNMENT_MEMBER: i16 = 7;
/// Key of [`CurrentMemberAssignmentValue`].
pub const CURRENT_MEMBER_ASSIGNMENT: i16 = 8;
/// Key of [`RegularExpressionValue`].
pub const REGULAR_EXPRESSION: i16 = 16;

messages! {
    /// Key of records of a group.
    GroupKey {
        group_id: String [0+],
    }

    /// Key of records of a member.
    MemberKey {
        group_id: String [0+],
        member_id: String [0+],
    }

    /// Key of a regular expression.
    RegularExpressionKey {
        group_id: String [0+],
        regular_expression: String [0+],
    }

    /// The group's epoch, and a hash over the topics that it is subscribed to.
    GroupMetadataValue {
        epoch: i32 [0+],
        metadata_hash: i64 [0+ tag 0],
    }

    /// What a member subscribes to, and who it is. Tag 0 (a member of the classic protocol) is not read: there is none.
    MemberMetadataValue {
        instance_id: Option<String> [0+],
        rack_id: Option<String> [0+],
        client_id: String [0+],
        client_host: String [0+],
        subscribed_topic_names: Vec<String> [0+],
        subscribed_topic_regex: Option<String> [0+],
        rebalance_timeout_ms: i32 [0+] = -1,
        server_assignor: Option<String> [0+],
    }

    /// The epoch that the target assignment was made for.
    TargetAssignmentMetadataValue {
        assignment_epoch: i32 [0+],
        assignment_timestamp: i64 [0+ tag 0],
    }

    /// What a member shall own.
    TargetAssignmentMemberValue {
        topic_partitions: Vec<TargetTopicPartitions> [0+],
    }

    /// Partitions of a topic.
    TargetTopicPartitions {
        topic_id: Uuid [0+],
        partitions: Vec<i32> [0+],
    }

    /// What a member owns and how far it is.
    CurrentMemberAssignmentValue {
        member_epoch: i32 [0+],
        previous_member_epoch: i32 [0+],
        /// 0: stable, 1: has partitions to revoke, 2: waits for partitions of others.
        state: i8 [0+],
        assigned_partitions: Vec<OwnedTopicPartitions> [0+],
        partitions_pending_revocation: Vec<OwnedTopicPartitions> [0+],
    }

    /// Partitions of a topic, and the epochs since which the member has them (KIP-1251).
    OwnedTopicPartitions {
        topic_id: Uuid [0+],
        partitions: Vec<i32> [0+],
        assignment_epochs: Option<Vec<i32>> [0+ tag 0],
    }

    /// The topics that a regular expression matched.
    RegularExpressionValue {
        topics: Vec<String> [0+],
        version: i64 [0+],
        timestamp: i64 [0+],
    }
}

/// A key: not flexible, of one of the types above.
macro_rules! keys {
    ($($name:ident),*) => {$(
        impl Stored for $name {
            const NAME: &'static str = stringify!($name);
            const OLDEST: i16 = GROUP_METADATA;
            const NEWEST: i16 = REGULAR_EXPRESSION;
        }
    )*};
}
keys!(GroupKey, MemberKey, RegularExpressionKey);

/// A value: version 0, flexible.
macro_rules! values {
    ($($name:ident),* $(,)?) => {$(
        impl Stored for $name {
            const NAME: &'static str = stringify!($name);
            const OLDEST: i16 = 0;
            const NEWEST: i16 = 0;
            const FLEXIBLE_FROM: i16 = 0;
        }
    )*};
}
values!(
    GroupMetadataValue,
    MemberMetadataValue,
    TargetAssignmentMetadataValue,
    TargetAssignmentMemberValue,
    CurrentMemberAssignmentValue,
    RegularExpressionValue,
);
