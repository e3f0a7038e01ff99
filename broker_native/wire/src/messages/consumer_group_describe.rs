//! ConsumerGroupDescribe (69): groups of the KIP-848 protocol with their members and assignments.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Groups to describe.
    ConsumerGroupDescribeRequest of ConsumerGroupDescribe {
        group_ids: Vec<String> [0+],
        include_authorized_operations: bool [0+],
    }

    /// The groups.
    ConsumerGroupDescribeResponse of ConsumerGroupDescribe {
        throttle_time_ms: i32 [0+],
        groups: Vec<DescribedGroup> [0+],
    }

    /// A group.
    DescribedGroup {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        group_id: String [0+],
        group_state: String [0+],
        group_epoch: i32 [0+],
        assignment_epoch: i32 [0+],
        assignor_name: String [0+],
        members: Vec<Member> [0+],
        /// A set of bits; the least number when it was not asked for.
        authorized_operations: i32 [0+] = i32::MIN,
    }

    /// A member.
    Member {
        member_id: String [0+],
        instance_id: Option<String> [0+],
        rack_id: Option<String> [0+],
        member_epoch: i32 [0+],
        client_id: String [0+],
        client_host: String [0+],
        subscribed_topic_names: Vec<String> [0+],
        subscribed_topic_regex: Option<String> [0+],
        /// What it owns.
        assignment: Assignment [0+],
        /// What it shall own.
        target_assignment: Assignment [0+],
        /// 0: of the classic protocol, 1: of the KIP-848 protocol, -1: unknown.
        member_type: i8 [1+] = -1,
    }

    /// Partitions of a member.
    Assignment {
        topic_partitions: Vec<TopicPartitions> [0+],
    }

    /// Partitions of a topic.
    TopicPartitions {
        topic_id: Uuid [0+],
        topic_name: String [0+],
        partitions: Vec<i32> [0+],
    }
}
