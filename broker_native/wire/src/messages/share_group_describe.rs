//! ShareGroupDescribe (77): share groups with their members and what each of them reads.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// Which groups.
    ShareGroupDescribeRequest of ShareGroupDescribe {
        group_ids: Vec<String> [0+],
        include_authorized_operations: bool [0+],
    }

    /// The groups, in the order of the request.
    ShareGroupDescribeResponse of ShareGroupDescribe {
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
        authorized_operations: i32 [0+] = i32::MIN,
    }

    /// A member.
    Member {
        member_id: String [0+],
        rack_id: Option<String> [0+],
        member_epoch: i32 [0+],
        client_id: String [0+],
        client_host: String [0+],
        subscribed_topic_names: Vec<String> [0+],
        assignment: Assignment [0+],
    }

    /// What a member reads.
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
