//! What share groups did with records in `__share_group_state`: key 0, the whole state of one share partition. Key 1, which Kafka
//! writes for what changed since, is not written here: a compacted topic keeps the last record of a key only.
use uuid::Uuid;

use super::Stored;
pub use crate::messages::read_share_group_state::StateBatch;
use crate::schema::messages;

/// Key of [`ShareSnapshotValue`].
pub const SHARE_SNAPSHOT: i16 = 0;

messages! {
    /// A share partition.
    ShareSnapshotKey {
        group_id: String [0+],
        topic_id: Uuid [0+],
        partition: i32 [0+],
    }

    /// Which of its records are done with, and how often the others were delivered.
    ShareSnapshotValue {
        /// Counts the snapshots.
        snapshot_epoch: i32 [0+],
        /// Counts how often an administrator set the start offset.
        state_epoch: i32 [0+],
        leader_epoch: i32 [0+],
        start_offset: i64 [0+],
        /// Offsets behind the start that are done with.
        delivery_complete_count: i32 [0+ tag 0] = -1,
        create_timestamp: i64 [0+],
        write_timestamp: i64 [0+],
        state_batches: Vec<StateBatch> [0+],
    }
}

impl Stored for ShareSnapshotKey {
    const NAME: &'static str = "ShareSnapshotKey";
    const OLDEST: i16 = SHARE_SNAPSHOT;
    const NEWEST: i16 = SHARE_SNAPSHOT;
}

impl Stored for ShareSnapshotValue {
    const NAME: &'static str = "ShareSnapshotValue";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 0;
    const FLEXIBLE_FROM: i16 = 0;
}
