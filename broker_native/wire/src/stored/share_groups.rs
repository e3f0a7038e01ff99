//! Share groups in `__consumer_offsets`: keys 10 to 15. Values are of version 0, flexible. Key 15 (which share partitions have been
//! made) is not written: a share partition is made when it is read first.
use super::Stored;
use super::consumer_groups::{
    GroupKey, MemberKey, TargetAssignmentMemberValue, TargetAssignmentMetadataValue,
};
use crate::schema::messages;

/// Key of [`ShareMemberMetadataValue`].
pub const MEMBER_METADATA: i16 = 10;
/// Key of [`ShareGroupMetadataValue`].
pub const GROUP_METADATA: i16 = 11;
/// Key of [`ShareTargetMetadataValue`].
pub const TARGET_ASSIGNMENT_METADATA: i16 = 12;
/// Key of [`ShareTargetValue`].
pub const TARGET_ASSIGNMENT_MEMBER: i16 = 13;
/// Key of [`ShareCurrentValue`].
pub const CURRENT_MEMBER_ASSIGNMENT: i16 = 14;
/// Key of what Kafka writes about the share partitions that it made.
pub const STATE_PARTITION_METADATA: i16 = 15;

/// As a consumer group's.
pub type ShareTargetMetadataValue = TargetAssignmentMetadataValue;
/// As a consumer group's.
pub type ShareTargetValue = TargetAssignmentMemberValue;
/// As a consumer group's.
pub type ShareGroupKey = GroupKey;
/// As a consumer group's.
pub type ShareMemberKey = MemberKey;

messages! {
    /// The group's epoch, and a hash over the topics that it is subscribed to.
    ShareGroupMetadataValue {
        epoch: i32 [0+],
        metadata_hash: i64 [0+],
    }

    /// What a member subscribes to, and who it is.
    ShareMemberMetadataValue {
        rack_id: Option<String> [0+],
        client_id: String [0+],
        client_host: String [0+],
        subscribed_topic_names: Vec<String> [0+],
    }

    /// How far a member is and what it reads.
    ShareCurrentValue {
        member_epoch: i32 [0+],
        previous_member_epoch: i32 [0+],
        /// 0: stable; there is no other for members of share groups.
        state: i8 [0+],
        assigned_partitions: Vec<super::consumer_groups::TargetTopicPartitions> [0+],
    }
}

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
values!(ShareGroupMetadataValue, ShareMemberMetadataValue, ShareCurrentValue);
