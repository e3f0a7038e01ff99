//! When a record that was appended is acknowledged.
use pylog_storage::{DurableCallback, PartitionLog};

/// Whether the record at `last_offset` is acknowledged already: on all in-sync replicas, and as durable as the topic
/// promises.
pub fn is_acknowledged(log: &PartitionLog, last_offset: i64) -> bool {
    log.offsets().high_watermark > last_offset
}

/// Calls `done` when the record at `last_offset`, which was appended in `leader_epoch`, is acknowledged, or never can be by
/// this broker. `done` may run in another thread, which may hold the lock of a machine whose append moved the high watermark:
/// it must take no lock of a machine.
pub fn when_acknowledged(log: &PartitionLog, leader_epoch: i32, last_offset: i64, done: DurableCallback) {
    log.wait_committed(leader_epoch, last_offset, done);
}
