//! AlterReplicaLogDirs (34): replicas of one broker move to another of its directories.
use crate::schema::messages;

messages! {
    /// Which replicas go where.
    AlterReplicaLogDirsRequest of AlterReplicaLogDirs {
        dirs: Vec<AlterReplicaLogDir> [0+],
    }

    /// What goes to a directory.
    AlterReplicaLogDir {
        path: String [0+],
        topics: Vec<AlterReplicaLogDirTopic> [0+],
    }

    /// The partitions of a topic.
    AlterReplicaLogDirTopic {
        name: String [0+],
        partitions: Vec<i32> [0+],
    }

    /// What became of each.
    AlterReplicaLogDirsResponse of AlterReplicaLogDirs {
        throttle_time_ms: i32 [0+],
        results: Vec<AlterReplicaLogDirTopicResult> [0+],
    }

    /// Of the partitions of a topic.
    AlterReplicaLogDirTopicResult {
        topic_name: String [0+],
        partitions: Vec<AlterReplicaLogDirPartitionResult> [0+],
    }

    /// Of a partition.
    AlterReplicaLogDirPartitionResult {
        partition_index: i32 [0+],
        error_code: i16 [0+],
    }
}
