//! Logs that several brokers have: roles, the high watermark from outside, what a follower writes and gives up.
use std::path::Path;
use std::sync::{Arc, Mutex};

use pylog_record::control::Marker;
use pylog_record::{BatchBuilder, Codec};
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, Durability, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo, RealDisk, Role,
    StorageError, TxnMarker,
};
use uuid::Uuid;

use crate::support::{
    NOW_MS, TOPIC, append, batch, counted, durable, fill, manager_config, read_all, scratch, small_segments,
    values,
};

/// One broker's replica, whose leader has epoch `epoch`.
struct Replica {
    manager: LogManager,
    log: Arc<PartitionLog>,
}

impl Replica {
    fn open(dir: &Path, role: Role, epoch: i32, config: LogConfig) -> Self {
        let clock = Arc::new(ManualClock::at(NOW_MS));
        let config_of_all =
            ManagerConfig { replica_high_watermark_checkpoint_interval_ms: 0, ..manager_config() };
        let manager = LogManager::open(Arc::new(RealDisk), clock, dir, config_of_all).unwrap();
        let log = manager.open_partition(TOPIC, 0, Uuid::from_u128(7), config, role, epoch).unwrap();
        Self { manager, log }
    }
}

fn open(dir: &tempfile::TempDir, role: Role, epoch: i32) -> Replica {
    Replica::open(dir.path(), role, epoch, small_segments())
}

/// What a follower at `offset` would get.
fn fetch(log: &PartitionLog, offset: i64, max_bytes: usize) -> Vec<u8> {
    log.read(offset, max_bytes, true, ReadUpTo::LogEnd).unwrap().read().unwrap()
}

/// Lets `follower` copy all that `leader` has; gives the number of fetches.
fn copy_all(leader: &PartitionLog, follower: &PartitionLog, max_bytes: usize) -> usize {
    let mut fetches = 0;
    while follower.offsets().log_end_offset < leader.offsets().log_end_offset {
        let end = follower.offsets().log_end_offset;
        let done = follower.append_replica(&fetch(leader, end, max_bytes)).unwrap();
        assert!(done.log_end_offset > end && done.batches > 0);
        fetches += 1;
    }
    fetches
}

/// All bytes of the log's batches.
fn bytes_of(log: &PartitionLog) -> Vec<u8> {
    let offsets = log.offsets();
    let mut bytes = Vec::new();
    let mut at = offsets.log_start_offset;
    while at < offsets.log_end_offset {
        let slice = log.read(at, 1 << 20, true, ReadUpTo::LogEnd).unwrap();
        bytes.extend(slice.read().unwrap());
        at = slice.next_offset;
    }
    bytes
}

/// Where the outcome of a wait ends up.
type Outcome = Arc<Mutex<Option<Result<(), StorageError>>>>;

fn committed(log: &PartitionLog, last_offset: i64) -> Outcome {
    let outcome = Outcome::default();
    let outcome_seen = outcome.clone();
    log.wait_committed(
        i32::MAX,
        last_offset,
        Box::new(move |done| *outcome_seen.lock().unwrap() = Some(done)),
    );
    outcome
}

fn flushed() -> LogConfig {
    LogConfig { durability: Durability::Flushed, ..small_segments() }
}

#[test]
fn a_leader_that_has_written_nothing_yet_keeps_its_epoch_when_the_log_gets_a_later_start() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 1);
    fill(&replica.log, 4, 10).unwrap();
    replica.log.move_high_watermark(4);
    replica.log.set_role(Role::Leader, 2).unwrap();
    replica.log.delete_records_before(2).unwrap();
    replica.log.append(&mut batch(4, 1, 10), AppendOptions::client(2)).unwrap();
    assert_eq!(replica.log.epoch_end_offset(2), Some((2, 5)));
    assert_eq!(replica.log.epoch_end_offset(1), Some((1, 4)));
}

#[test]
fn a_follower_holds_the_leaders_bytes_whatever_the_fetches_cut() {
    let (dirs, mut leader_epoch) = ([scratch(), scratch()], 3);
    let leader = open(&dirs[0], Role::Leader, leader_epoch);
    for i in 0..60 {
        if i % 20 == 19 {
            leader_epoch += 2;
            leader.log.set_role(Role::Leader, leader_epoch).unwrap();
        }
        fill(&leader.log, 1 + i % 4, (i * 13 % 200) as usize).unwrap();
    }
    let follower = open(&dirs[1], Role::Follower, leader_epoch);
    // Odd sizes: each fetch is cut in the middle of a batch, and brings some that are there already.
    let whole = bytes_of(&leader.log);
    let mut sent = 0;
    for (i, size) in (2_000..).step_by(101).enumerate() {
        let part = whole.get(sent..(sent + size).min(whole.len())).unwrap();
        let before = follower.log.offsets().log_end_offset;
        let done = follower.log.append_replica(part).unwrap();
        assert!(done.log_end_offset > before || part.is_empty(), "fetch {i} brought nothing");
        let held = bytes_of(&follower.log).len();
        if held == whole.len() {
            break;
        }
        // One batch again.
        sent = held - fetch(&leader.log, done.log_end_offset - 1, 1).len();
    }
    assert!(bytes_of(&follower.log) == whole);
    for epoch in 0..12 {
        assert_eq!(follower.log.epoch_end_offset(epoch), leader.log.epoch_end_offset(epoch), "epoch {epoch}");
    }
    assert_eq!(follower.log.latest_epoch(), Some(leader_epoch));
    assert_eq!(follower.log.offsets().high_watermark, 0, "the leader has said nothing of it");
}

#[test]
fn one_fetch_becomes_few_writes_and_rolls_where_segments_are_full() {
    let dirs = [scratch(), scratch()];
    let leader = open(&dirs[0], Role::Leader, 0);
    for _ in 0..200 {
        fill(&leader.log, 2, 50).unwrap();
    }
    let follower = open(&dirs[1], Role::Follower, 0);
    let done = follower.log.append_replica(&bytes_of(&leader.log)).unwrap();
    assert_eq!((done.log_end_offset, done.batches), (400, 200));
    let logs = |dir: &tempfile::TempDir| {
        let names = std::fs::read_dir(dir.path().join("flights-0")).unwrap();
        let mut names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".log"));
        names.sort();
        names
    };
    assert!(logs(&dirs[0]).len() > 10);
    assert_eq!(logs(&dirs[0]), logs(&dirs[1]), "segments begin where the leader's do");
}

#[test]
fn only_a_follower_takes_batches_and_only_a_leader_appends() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 1);
    fill(&replica.log, 3, 10).unwrap();
    let bytes = bytes_of(&replica.log);
    assert!(matches!(replica.log.append_replica(&bytes), Err(StorageError::NotFollower { .. })));
    assert!(matches!(replica.log.truncate_to(0), Err(StorageError::NotFollower { .. })));
    assert!(matches!(replica.log.restart_at(0), Err(StorageError::NotFollower { .. })));
    replica.log.set_role(Role::Follower, 2).unwrap();
    let refused = append(&replica.log, batch(3, 1, 10));
    assert!(matches!(refused, Err(StorageError::NotLeader { .. })), "{refused:?}");
    // What was checked for epoch 1 counts for nothing in epoch 4.
    replica.log.set_role(Role::Leader, 4).unwrap();
    let late = replica.log.append(&mut batch(3, 1, 10), AppendOptions::client(1));
    assert!(matches!(late, Err(StorageError::NotLeader { .. })), "{late:?}");
    replica.log.append(&mut batch(3, 1, 10), AppendOptions::client(4)).unwrap();
    assert_eq!(replica.log.epoch_end_offset(1), Some((1, 3)));
}

#[test]
fn a_damaged_batch_is_refused_and_what_came_before_it_is_kept() {
    let dirs = [scratch(), scratch()];
    let leader = open(&dirs[0], Role::Leader, 0);
    for _ in 0..4 {
        fill(&leader.log, 2, 20).unwrap();
    }
    let follower = open(&dirs[1], Role::Follower, 0);
    let mut bytes = bytes_of(&leader.log);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(follower.log.append_replica(&bytes).unwrap().log_end_offset, 6);
    let tail = fetch(&leader.log, 6, 10_000);
    let mut bad = tail.clone();
    bad[70] ^= 1;
    let refused = follower.log.append_replica(&bad);
    assert!(matches!(refused, Err(StorageError::InvalidBatch { .. })), "{refused:?}");
    assert_eq!(follower.log.append_replica(&tail).unwrap().log_end_offset, 8);
    // A batch that the log's end lies in is of another log.
    let other = scratch();
    let other = open(&other, Role::Leader, 0);
    fill(&other.log, 9, 20).unwrap();
    let overlaps = follower.log.append_replica(&bytes_of(&other.log));
    assert!(matches!(overlaps, Err(StorageError::InvalidBatch { .. })), "{overlaps:?}");
    assert_eq!(read_all(&follower.log, 0, 10_000, ReadUpTo::LogEnd).unwrap(), counted(0, 8));
}

#[test]
fn the_high_watermark_of_a_leader_moves_only_from_outside_and_rounds_down_to_a_batch() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 0);
    let log = &replica.log;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (seen_by_listener, seen_by_append) = (seen.clone(), seen.clone());
    log.on_advance(Arc::new(move |offset| seen_by_listener.lock().unwrap().push(("high watermark", offset))));
    log.on_append(Arc::new(move |offset| seen_by_append.lock().unwrap().push(("end", offset))));
    for _ in 0..3 {
        fill(log, 10, 10).unwrap();
    }
    assert_eq!(
        (log.offsets().high_watermark, log.offsets().log_end_offset, log.replicated_end()),
        (0, 30, 30)
    );
    assert!(read_all(log, 0, 10_000, ReadUpTo::HighWatermark).unwrap().is_empty());
    let waits = [committed(log, 9), committed(log, 19)];
    assert!(!log.move_high_watermark(9), "no batch ends there");
    assert!(log.move_high_watermark(15));
    assert_eq!(log.offsets().high_watermark, 10);
    assert!(matches!(*waits[0].lock().unwrap(), Some(Ok(()))) && waits[1].lock().unwrap().is_none());
    assert!(!log.move_high_watermark(3), "never back");
    assert!(log.move_high_watermark(99));
    assert_eq!(log.offsets().high_watermark, 30);
    assert!(matches!(*waits[1].lock().unwrap(), Some(Ok(()))));
    let expected = [("end", 10), ("end", 20), ("end", 30), ("high watermark", 10), ("high watermark", 30)];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(read_all(log, 0, 10_000, ReadUpTo::HighWatermark).unwrap(), counted(0, 30));
}

#[test]
fn a_high_watermark_far_behind_is_found_by_the_index() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 0);
    for _ in 0..6_000 {
        fill(&replica.log, 2, 1).unwrap();
    }
    for offset in [1, 2, 3, 1_001, 1_002, 4_000, 11_999, 12_000] {
        replica.log.move_high_watermark(offset);
        let now = replica.log.offsets().high_watermark;
        assert_eq!(now, offset / 2 * 2);
        let seen = read_all(&replica.log, now - 2.min(now), 10_000, ReadUpTo::HighWatermark).unwrap();
        assert_eq!(seen, counted(now - 2.min(now), now));
    }
}

#[test]
fn who_waits_for_other_replicas_is_told_when_this_broker_leads_no_more_or_stops() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 0);
    let log = &replica.log;
    fill(log, 1, 10).unwrap();
    let waits = committed(log, 0);
    log.set_role(Role::Leader, 1).unwrap();
    assert!(waits.lock().unwrap().is_none(), "a new epoch of the same leader: it goes on waiting");
    log.set_role(Role::Follower, 2).unwrap();
    assert!(matches!(*waits.lock().unwrap(), Some(Err(StorageError::NotLeader { .. }))));
    assert!(matches!(*committed(log, 0).lock().unwrap(), Some(Err(StorageError::NotLeader { .. }))));
    log.set_role(Role::Leader, 3).unwrap();
    let late = Outcome::default();
    let outcome_seen = late.clone();
    log.wait_committed(1, 0, Box::new(move |done| *outcome_seen.lock().unwrap() = Some(done)));
    assert!(matches!(*late.lock().unwrap(), Some(Err(StorageError::NotLeader { .. }))), "of an earlier time");
    let waits = committed(log, 0);
    replica.manager.close().unwrap();
    assert!(matches!(*waits.lock().unwrap(), Some(Err(StorageError::Closed { .. }))));
    assert!(matches!(*committed(log, 0).lock().unwrap(), Some(Err(StorageError::Closed { .. }))));
}

#[test]
fn a_flushed_leader_counts_what_is_on_its_device_and_acks_1_waits_for_no_other() {
    let dir = scratch();
    let replica = Replica::open(dir.path(), Role::Leader, 0, flushed());
    let log = &replica.log;
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen_by_listener = ends.clone();
    log.on_append(Arc::new(move |end| seen_by_listener.lock().unwrap().push(end)));
    fill(log, 5, 10).unwrap();
    assert_eq!((log.replicated_end(), ends.lock().unwrap().len()), (0, 0));
    durable(log, 4).unwrap();
    assert_eq!((log.replicated_end(), log.offsets().high_watermark), (5, 0));
    fill(log, 5, 10).unwrap();
    let waits = committed(log, 9);
    assert_eq!((log.replicated_end(), ends.lock().unwrap().clone()), (10, vec![5, 10]));
    assert!(waits.lock().unwrap().is_none());
    log.move_high_watermark(10);
    assert!(matches!(*waits.lock().unwrap(), Some(Ok(()))));
    // Alone again: all that is on the device counts.
    fill(log, 1, 10).unwrap();
    log.set_role(Role::Alone, 1).unwrap();
    assert_eq!(log.offsets().high_watermark, 11);
}

#[test]
fn a_truncation_takes_whole_batches_their_epochs_and_segments_and_the_log_goes_on() {
    for cut in [0, 1, 37, 38, 80, 119, 120, 121, 500] {
        let dirs = [scratch(), scratch()];
        let old = open(&dirs[0], Role::Leader, 1);
        for i in 0..60 {
            if i == 40 {
                old.log.set_role(Role::Leader, 5).unwrap();
            }
            fill(&old.log, 2, 60).unwrap();
        }
        let follower = open(&dirs[1], Role::Follower, 5);
        copy_all(&old.log, &follower.log, 900);
        follower.log.move_high_watermark(60);
        let slice = follower.log.read(36, 10_000, true, ReadUpTo::LogEnd).unwrap();
        follower.log.set_role(Role::Follower, 7).unwrap();
        let end = follower.log.truncate_to(cut).unwrap();
        assert_eq!(end, cut.min(120) / 2 * 2, "cut at {cut}");
        let offsets = follower.log.offsets();
        assert_eq!((offsets.log_end_offset, offsets.high_watermark), (end, end.min(60)));
        assert_eq!(follower.log.latest_epoch(), [(80, 5), (0, 1)].iter().find(|e| end > e.0).map(|e| e.1));
        assert_eq!(read_all(&follower.log, 0, 500, ReadUpTo::LogEnd).unwrap(), counted(0, end));
        // A new leader's records, which are others.
        let dir = scratch();
        let new = open(&dir, Role::Follower, 7);
        new.log.append_replica(&bytes_of(&follower.log)).unwrap();
        new.log.set_role(Role::Leader, 7).unwrap();
        for i in 0..30 {
            new.log.append(&mut batch(10_000 + i, 1, 30), AppendOptions::client(7)).unwrap();
        }
        copy_all(&new.log, &follower.log, 700);
        assert!(bytes_of(&new.log) == bytes_of(&follower.log), "cut at {cut}");
        assert_eq!(follower.log.epoch_end_offset(6), new.log.epoch_end_offset(6));
        // Who still holds a slice of what was cut never reads new bytes in it.
        if let Ok(bytes) = slice.read() {
            assert_eq!(values(&bytes)[0].1, "36");
        }
        follower.manager.close().unwrap();
        let again = open(&dirs[1], Role::Follower, 7);
        assert!(bytes_of(&new.log) == bytes_of(&again.log), "cut at {cut}, after a restart");
        assert_eq!(again.log.latest_epoch(), Some(7));
    }
}

#[test]
fn a_log_that_is_begun_anew_takes_a_batch_that_its_start_lies_in() {
    let dirs = [scratch(), scratch()];
    let leader = open(&dirs[0], Role::Leader, 1);
    for _ in 0..8 {
        fill(&leader.log, 10, 30).unwrap();
    }
    leader.log.move_high_watermark(80);
    leader.log.delete_records_before(45).unwrap();
    let follower = open(&dirs[1], Role::Follower, 1);
    follower.log.restart_at(45).unwrap();
    let offsets = follower.log.offsets();
    assert_eq!((offsets.log_start_offset, offsets.high_watermark, offsets.log_end_offset), (45, 45, 45));
    copy_all(&leader.log, &follower.log, 900);
    assert_eq!(follower.log.offsets().log_start_offset, 45);
    assert!(bytes_of(&leader.log) == bytes_of(&follower.log));
    follower.log.move_high_watermark(80);
    follower.log.follow_log_start(60).unwrap();
    assert_eq!(follower.log.offsets().log_start_offset, 60);
    // The leader's log goes on from before this one begins: nothing here is of use.
    assert_eq!(follower.log.truncate_to(20).unwrap(), 20);
    let offsets = follower.log.offsets();
    assert_eq!((offsets.log_start_offset, offsets.high_watermark, offsets.log_end_offset), (20, 20, 20));
    assert_eq!(follower.log.latest_epoch(), None);
    follower.manager.close().unwrap();
    let again = open(&dirs[1], Role::Follower, 1);
    assert_eq!(again.log.offsets(), offsets);
}

#[test]
fn offsets_that_compaction_took_away_may_be_missing_and_still_are_after_a_restart() {
    let dirs = [scratch(), scratch()];
    let leader = open(&dirs[0], Role::Leader, 1);
    for _ in 0..30 {
        fill(&leader.log, 2, 60).unwrap();
    }
    let follower = open(&dirs[1], Role::Follower, 1);
    for offset in (0..60).filter(|offset| offset % 8 == 0) {
        follower.log.append_replica(&fetch(&leader.log, offset, 1)).unwrap();
    }
    let held = values(&bytes_of(&follower.log));
    assert_eq!(held.len(), 16);
    assert_eq!(follower.log.offsets().log_end_offset, 58);
    follower.log.move_high_watermark(30);
    assert!((26..=30).contains(&follower.log.offsets().high_watermark));
    assert_eq!(follower.log.truncate_to(31).unwrap(), 26);
    drop((follower.log, follower.manager));
    let again = open(&dirs[1], Role::Follower, 1);
    assert_eq!(values(&bytes_of(&again.log)), held[..8]);
}

#[test]
fn the_high_watermark_is_where_it_was_after_a_restart_and_never_beyond_a_truncation() {
    let dir = scratch();
    let replica = open(&dir, Role::Leader, 1);
    for _ in 0..10 {
        fill(&replica.log, 10, 10).unwrap();
    }
    replica.log.move_high_watermark(70);
    assert!(replica.manager.run_maintenance().is_empty());
    let text = std::fs::read_to_string(dir.path().join("replication-offset-checkpoint")).unwrap();
    assert_eq!(text, "0\n1\nflights 0 70\n");
    replica.log.move_high_watermark(90);
    drop((replica.log, replica.manager));
    let killed = open(&dir, Role::Follower, 2);
    assert_eq!((killed.log.offsets().high_watermark, killed.log.offsets().log_end_offset), (70, 100));
    assert_eq!(killed.log.truncate_to(50).unwrap(), 50);
    drop((killed.log, killed.manager));
    let killed = open(&dir, Role::Leader, 3);
    assert_eq!(killed.log.offsets().high_watermark, 50);
    for _ in 0..10 {
        killed.log.append(&mut batch(0, 10, 10), AppendOptions::client(3)).unwrap();
    }
    drop((killed.log, killed.manager));
    let killed = open(&dir, Role::Leader, 3);
    assert_eq!((killed.log.offsets().high_watermark, killed.log.offsets().log_end_offset), (50, 150));
    drop((killed.log, killed.manager));
    let alone = open(&dir, Role::Alone, 4);
    assert_eq!(alone.log.offsets().high_watermark, 150);
}

fn transactional(producer_id: i64, sequence: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_producer(producer_id, 0, sequence);
    builder.set_transactional(true);
    builder.append(NOW_MS, None, Some(b"x"), &[]).unwrap();
    builder.finish(Codec::None).unwrap()
}

fn begin(log: &PartitionLog, producer_id: i64) -> i64 {
    let verified = log.begin_verification(producer_id, 0, 0, false).unwrap();
    let how = AppendOptions { verified, ..AppendOptions::client(1) };
    log.append(&mut transactional(producer_id, 0), how).unwrap().base_offset
}

fn end(log: &PartitionLog, producer_id: i64, marker: Marker) -> i64 {
    let marker =
        TxnMarker { producer_id, producer_epoch: 0, marker, coordinator_epoch: 0, transaction_version: 0 };
    log.append_marker(marker, AppendOptions::coordinator(1)).unwrap().base_offset
}

#[test]
fn transactions_end_when_their_markers_are_committed_on_leader_and_follower() {
    let dirs = [scratch(), scratch()];
    let leader = open(&dirs[0], Role::Leader, 1);
    for _ in 0..3 {
        fill(&leader.log, 5, 10).unwrap();
    }
    begin(&leader.log, 7);
    begin(&leader.log, 8);
    end(&leader.log, 8, Marker::Abort);
    end(&leader.log, 7, Marker::Commit);
    fill(&leader.log, 5, 10).unwrap();
    let follower = open(&dirs[1], Role::Follower, 1);
    copy_all(&leader.log, &follower.log, 200);
    let stable = |log: &PartitionLog| log.offsets().last_stable_offset;
    for log in [&leader.log, &follower.log] {
        for (high_watermark, last_stable) in [(15, 15), (16, 15), (17, 15), (18, 15), (19, 19), (24, 24)] {
            log.move_high_watermark(high_watermark);
            assert_eq!(stable(log), last_stable, "at {high_watermark}");
        }
        let slice = log.read(15, 10_000, true, ReadUpTo::LastStable).unwrap();
        assert_eq!(slice.aborted.iter().map(|txn| txn.producer_id).collect::<Vec<_>>(), [8]);
        let mut producers = log.producers();
        producers.iter_mut().for_each(|p| p.last_timestamp = 0);
        assert!(producers.iter().all(|p| p.txn_first_offset.is_none()));
    }
    assert_eq!(leader.log.producers(), follower.log.producers());
    // The markers go; the transactions are open again.
    assert_eq!(follower.log.truncate_to(17).unwrap(), 17);
    assert_eq!((stable(&follower.log), follower.log.open_transaction(8)), (15, Some(16)));
    copy_all(&leader.log, &follower.log, 200);
    follower.log.move_high_watermark(18);
    assert_eq!(stable(&follower.log), 15);
    assert!(follower.manager.run_maintenance().is_empty());
    drop((follower.log, follower.manager));
    let again = open(&dirs[1], Role::Follower, 1);
    assert_eq!((again.log.offsets().high_watermark, stable(&again.log)), (18, 15));
    again.log.move_high_watermark(24);
    assert_eq!(stable(&again.log), 24);
}
