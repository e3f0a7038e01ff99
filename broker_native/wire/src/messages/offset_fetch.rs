//! OffsetFetch (9): the committed offsets of groups.
use uuid::Uuid;

use crate::schema::messages;

messages! {
    /// `groups` from version 8 on, the other fields before. Null topics stand for all.
    OffsetFetchRequest of OffsetFetch {
        group_id: String [0-7],
        topics: Option<Vec<OffsetFetchRequestTopic>> [0-7 null 2+] = Some(Vec::new()),
        groups: Vec<OffsetFetchRequestGroup> [8+],
        /// Offsets that an open transaction may change are refused.
        require_stable: bool [7+],
    }

    /// The partitions of a topic.
    OffsetFetchRequestTopic {
        name: String [0-7],
        partition_indexes: Vec<i32> [0-7],
    }

    /// A group, and what is wanted of it.
    OffsetFetchRequestGroup {
        group_id: String [8+],
        member_id: Option<String> [9+],
        member_epoch: i32 [9+] = -1,
        topics: Option<Vec<OffsetFetchRequestTopics>> [8+] = Some(Vec::new()),
    }

    /// The partitions of a topic.
    OffsetFetchRequestTopics {
        name: String [8-9],
        topic_id: Uuid [10+],
        partition_indexes: Vec<i32> [8+],
    }

    /// `groups` from version 8 on, the other fields before.
    OffsetFetchResponse of OffsetFetch {
        throttle_time_ms: i32 [3+],
        topics: Vec<OffsetFetchResponseTopic> [0-7],
        error_code: i16 [2-7],
        groups: Vec<OffsetFetchResponseGroup> [8+],
    }

    /// The partitions of a topic.
    OffsetFetchResponseTopic {
        name: String [0-7],
        partitions: Vec<OffsetFetchResponsePartition> [0-7],
    }

    /// An offset, -1 when there is none.
    OffsetFetchResponsePartition {
        partition_index: i32 [0-7],
        committed_offset: i64 [0-7],
        committed_leader_epoch: i32 [5-7] = -1,
        metadata: Option<String> [0-7] = Some(String::new()),
        error_code: i16 [0-7],
    }

    /// The offsets of a group.
    OffsetFetchResponseGroup {
        group_id: String [8+],
        topics: Vec<OffsetFetchResponseTopics> [8+],
        error_code: i16 [8+],
    }

    /// The partitions of a topic.
    OffsetFetchResponseTopics {
        name: String [8-9],
        topic_id: Uuid [10+],
        partitions: Vec<OffsetFetchResponsePartitions> [8+],
    }

    /// An offset, -1 when there is none.
    OffsetFetchResponsePartitions {
        partition_index: i32 [8+],
        committed_offset: i64 [8+],
        committed_leader_epoch: i32 [8+] = -1,
        metadata: Option<String> [8+] = Some(String::new()),
        error_code: i16 [8+],
    }
}
