//! ConsumerGroupHeartbeat (68): how a member of the KIP-848 protocol joins, stays, reconciles and leaves.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// What a member says; fields that did not change since its last request are null (or -1).
    ConsumerGroupHeartbeatRequest of ConsumerGroupHeartbeat {
        group_id: String [0+],
        /// Made by the member; in version 0 empty when it joins, and the coordinator makes one.
        member_id: String [0+],
        /// 0 joins, -1 leaves, -2 leaves for a while (static members); else what the coordinator said last.
        member_epoch: i32 [0+],
        instance_id: Option<String> [0+],
        rack_id: Option<String> [0+],
        /// How long the member may take to give partitions back.
        rebalance_timeout_ms: i32 [0+] = -1,
        subscribed_topic_names: Option<Vec<String>> [0+],
        /// In RE2's syntax; must match whole names.
        subscribed_topic_regex: Option<String> [1+],
        server_assignor: Option<String> [0+],
        /// What the member owns.
        topic_partitions: Option<Vec<TopicPartitions>> [0+],
    }

    /// What the member is to do.
    ConsumerGroupHeartbeatResponse of ConsumerGroupHeartbeat {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        member_id: Option<String> [0+],
        member_epoch: i32 [0+],
        heartbeat_interval_ms: i32 [0+],
        /// Null when it did not change.
        assignment: Option<Assignment> [0+],
    }

    /// All partitions that the member may own.
    Assignment {
        topic_partitions: Vec<TopicPartitions> [0+],
    }

    /// Partitions of a topic.
    TopicPartitions {
        topic_id: Uuid [0+],
        partitions: Vec<i32> [0+],
    }
}
