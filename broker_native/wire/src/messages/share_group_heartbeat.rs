//! ShareGroupHeartbeat (76): how a member of a share group (KIP-932) joins, stays and leaves.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What a member says; fields that did not change since its last request are null.
    ShareGroupHeartbeatRequest of ShareGroupHeartbeat {
        group_id: String [0+],
        /// Made by the member.
        member_id: String [0+],
        /// 0 joins, -1 leaves; else what the coordinator said last.
        member_epoch: i32 [0+],
        rack_id: Option<String> [0+],
        subscribed_topic_names: Option<Vec<String>> [0+],
    }

    /// What the member is to do.
    ShareGroupHeartbeatResponse of ShareGroupHeartbeat {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        member_id: Option<String> [0+],
        member_epoch: i32 [0+],
        heartbeat_interval_ms: i32 [0+],
        /// Null when it did not change.
        assignment: Option<Assignment> [0+],
    }

    /// All partitions that the member reads.
    Assignment {
        topic_partitions: Vec<TopicPartitions> [0+],
    }

    /// Partitions of a topic.
    TopicPartitions {
        topic_id: Uuid [0+],
        partitions: Vec<i32> [0+],
    }
}
