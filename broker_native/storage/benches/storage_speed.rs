//! What the log costs besides the system call: appends and reads of small batches, starts with many partitions.
//!
//! `cargo bench -p pylog-storage --bench storage_speed -- [DIR]`; DIR in memory (`/dev/shm`) leaves the disk out.
#![allow(clippy::unwrap_used)]
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use pylog_record::{BatchBuilder, Codec};
use pylog_storage::Role;
use pylog_storage::{AppendOptions, LogConfig, LogManager, ManagerConfig, ReadUpTo, RealDisk, SystemClock};
use uuid::Uuid;

const APPENDS: usize = 300_000;
const PARTITIONS: i32 = 1_000;

fn main() {
    let parent = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(parent).unwrap();
    for records in [1, 50] {
        appends_and_reads(&dir.path().join(records.to_string()), records);
    }
    starts(&dir.path().join("many"));
}

fn manager(dir: &std::path::Path) -> LogManager {
    LogManager::open(Arc::new(RealDisk), Arc::new(SystemClock), dir, ManagerConfig::default()).unwrap()
}

fn nanos(begun: Instant, count: usize) -> u128 {
    begun.elapsed().as_nanos() / count as u128
}

fn appends_and_reads(dir: &std::path::Path, records: i32) {
    let manager = manager(dir);
    let log = manager.open_partition("t", 0, Uuid::nil(), LogConfig::default(), Role::Alone, 0).unwrap();
    let mut builder = BatchBuilder::new();
    let now_ms = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    (0..records).for_each(|_| builder.append(now_ms, None, Some(&[7; 200]), &[]).unwrap());
    let mut batch = builder.finish(Codec::None).unwrap();
    let begun = Instant::now();
    for _ in 0..APPENDS {
        log.append(&mut batch, AppendOptions::client(0)).unwrap();
    }
    let append = nanos(begun, APPENDS);
    let bare = std::fs::File::create(dir.join("bare")).unwrap();
    let begun = Instant::now();
    for i in 0..APPENDS {
        bare.write_all_at(&batch, (i * batch.len()) as u64).unwrap();
    }
    let write = nanos(begun, APPENDS);
    println!("append of {} B: {append} ns, the write alone {write} ns", batch.len());
    let (mut offset, mut reads) = (0, 0);
    let begun = Instant::now();
    while offset < log.offsets().log_end_offset {
        offset = log.read(offset, 64 << 10, true, ReadUpTo::HighWatermark).unwrap().next_offset;
        reads += 1;
    }
    println!("read on, 64 KiB each: {} ns", nanos(begun, reads));
    let end = log.offsets().log_end_offset;
    let begun = Instant::now();
    for i in 0..10_000 {
        log.read(i * 7_919 % end, 64 << 10, true, ReadUpTo::HighWatermark).unwrap();
    }
    println!("read anywhere: {} ns", nanos(begun, 10_000));
    manager.close().unwrap();
}

fn starts(dir: &std::path::Path) {
    for what in ["made", "after a clean stop", "after a kill"] {
        let begun = Instant::now();
        let manager = manager(dir);
        let open =
            |i| manager.open_partition("t", i, Uuid::nil(), LogConfig::default(), Role::Alone, 0).unwrap();
        let logs: Vec<_> = (0..PARTITIONS).map(open).collect();
        println!("{} partitions {what}: {:?}", logs.len(), begun.elapsed());
        if what != "after a clean stop" {
            let begun = Instant::now();
            manager.close().unwrap();
            println!("closed: {:?}", begun.elapsed());
        }
    }
}
