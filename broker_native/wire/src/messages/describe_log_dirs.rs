//! DescribeLogDirs (35): how large each partition is on disk, and how much room there is.
use crate::schema::messages;

/// `total_bytes` and `usable_bytes` when they are not known.
pub const UNKNOWN_BYTES: i64 = -1;

messages! {
    /// Partitions to describe; null stands for all.
    DescribeLogDirsRequest of DescribeLogDirs {
        topics: Option<Vec<DescribableLogDirTopic>> [0+] = Some(Vec::new()),
    }

    /// The partitions of a topic.
    DescribableLogDirTopic {
        topic: String [0+],
        partitions: Vec<i32> [0+],
    }

    /// The directories.
    DescribeLogDirsResponse of DescribeLogDirs {
        throttle_time_ms: i32 [0+],
        error_code: i16 [3+],
        results: Vec<DescribeLogDirsResult> [0+],
    }

    /// A directory and the volume it is on.
    DescribeLogDirsResult {
        error_code: i16 [0+],
        log_dir: String [0+],
        topics: Vec<DescribeLogDirsTopic> [0+],
        total_bytes: i64 [4+] = UNKNOWN_BYTES,
        usable_bytes: i64 [4+] = UNKNOWN_BYTES,
    }

    /// The partitions of a topic.
    DescribeLogDirsTopic {
        name: String [0+],
        partitions: Vec<DescribeLogDirsPartition> [0+],
    }

    /// A partition's size.
    DescribeLogDirsPartition {
        partition_index: i32 [0+],
        partition_size: i64 [0+],
        /// How far the log's end is ahead of the high watermark.
        offset_lag: i64 [0+],
        is_future_key: bool [0+],
    }
}
