//! Many partitions and many segments: open files and starting times stay small.
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pylog_storage::Role;
use pylog_storage::clock::ManualClock;
use pylog_storage::{LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo, RealDisk};
use uuid::Uuid;

use crate::support::{NOW_MS, counted, fill, manager_config, read_all, small_segments};

const PARTITIONS: i32 = 300;

fn open_all(dir: &Path, config: ManagerConfig) -> (LogManager, Vec<Arc<PartitionLog>>) {
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let manager = LogManager::open(Arc::new(RealDisk), clock, dir, config).unwrap();
    let open =
        |i| manager.open_partition("t", i, Uuid::from_u128(1), LogConfig::default(), Role::Alone, 0).unwrap();
    let logs = (0..PARTITIONS).map(open).collect();
    (manager, logs)
}

/// Files below `dir` that this process has open.
fn open_files(dir: &Path) -> usize {
    let links =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    links.filter(|file| file.starts_with(dir)).count()
}

#[test]
fn hundreds_of_partitions_open_fast_after_a_clean_stop_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (manager, logs) = open_all(dir.path(), manager_config());
    for log in &logs {
        fill(log, 5, 100).unwrap();
    }
    manager.close().unwrap();
    drop((manager, logs));
    for clean in [true, false, false] {
        let begun = Instant::now();
        let (manager, logs) = open_all(dir.path(), manager_config());
        let took = begun.elapsed();
        println!("{PARTITIONS} partitions in {took:?}, clean: {clean}");
        assert_eq!(manager.was_clean(), clean);
        assert!(logs.iter().all(|log| log.offsets().log_end_offset == 5));
        // Far above what it takes (0.1 ms each), so that a busy machine does not fail it.
        assert!(took.as_millis() < 2_000, "{took:?}");
    }
}

#[test]
fn thousands_of_segments_do_not_use_up_the_open_files() {
    let dir = tempfile::tempdir().unwrap();
    let config = ManagerConfig { max_open_files: 40, ..manager_config() };
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let manager = LogManager::open(Arc::new(RealDisk), clock, dir.path(), config).unwrap();
    let small = LogConfig { segment_bytes: 300, ..small_segments() };
    let open = |i| manager.open_partition("t", i, Uuid::from_u128(1), small.clone(), Role::Alone, 0).unwrap();
    let logs: Vec<_> = (0..20).map(open).collect();
    for _ in 0..60 {
        for log in &logs {
            fill(log, 2, 100).unwrap();
        }
    }
    for log in &logs {
        assert_eq!(read_all(log, 0, 1_000, ReadUpTo::HighWatermark).unwrap(), counted(0, 120));
    }
    // The lock is one more.
    assert!((2..=41).contains(&open_files(dir.path())), "{} files are open", open_files(dir.path()));
    manager.close().unwrap();
}
