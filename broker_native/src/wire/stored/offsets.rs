//! `__consumer_offsets`: a committed offset.
use super::Stored;
use crate::wire::schema::messages;

messages! {
    /// Whose offset of what. Types 0 (of Kafka 0.8) and 1 are the same; 1 is written.
    OffsetCommitKey {
        group: String [0+],
        topic: String [0+],
        partition: i32 [0+],
    }

    /// The offset.
    OffsetCommitValue {
        offset: i64 [0+],
        leader_epoch: i32 [3+] = -1,
        metadata: String [0+],
        /// Milliseconds since the epoch.
        commit_timestamp: i64 [0+],
        /// Milliseconds since the epoch; -1: by the broker's retention.
        expire_timestamp: i64 [1-1] = -1,
    }
}

impl Stored for OffsetCommitKey {
    const NAME: &'static str = "OffsetCommitKey";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 1;
}

impl Stored for OffsetCommitValue {
    const NAME: &'static str = "OffsetCommitValue";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 4;
    const FLEXIBLE_FROM: i16 = 4;
}
