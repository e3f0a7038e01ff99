//! What is lost, emptied, exchanged or put into a data directory while its broker is stopped cleanly: the log is as it was, with a
//! line for what was mended, or it is refused by name, at this start and at later ones. Never other data without a word.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pylog_storage::clock::ManualClock;
use pylog_storage::{AppendOptions, LogManager, PartitionLog, ReadUpTo, RealDisk, Role, StorageError};
use uuid::Uuid;

use crate::support::{
    Broker, CLEAN_STOP, NOW_MS, TOPIC, append, batch_at, counted, fill, manager_config, read_all, scratch,
    set_modified, small_segments,
};
use crate::transactions::{Writers, abort, check_reads};

const RECORDS: i64 = 120;
const TOPIC_ID: Uuid = Uuid::from_u128(7);

fn open(broker: &LogManager, partition: i32) -> Result<Arc<PartitionLog>, StorageError> {
    broker.open_partition(TOPIC, partition, TOPIC_ID, small_segments(), Role::Alone, 0)
}

/// A data directory that was closed cleanly, with two partitions of several segments that hold as many bytes.
fn stopped() -> tempfile::TempDir {
    let dir = scratch();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    for log in [Arc::clone(&broker.log), open(&broker.manager, 1).unwrap()] {
        while log.offsets().log_end_offset < RECORDS {
            fill(&log, 3, 30 + log.topic_partition().partition as usize % 2).unwrap();
        }
    }
    broker.manager.close().unwrap();
    dir
}

/// A data directory none of whose logs is opened yet.
fn directory(dir: &Path) -> LogManager {
    let clock = Arc::new(ManualClock::at(NOW_MS));
    LogManager::open(Arc::new(RealDisk), clock, dir, manager_config()).unwrap()
}

/// All of a log that was opened again, which goes on where it ended.
fn whole(log: &PartitionLog) {
    assert_eq!(read_all(log, 0, 700, ReadUpTo::HighWatermark).unwrap(), counted(0, RECORDS));
    assert_eq!(fill(log, 1, 1).unwrap().base_offset, RECORDS);
}

/// The files of the first partition with that ending, in their order.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("flights-0")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
    found.sort();
    found
}

/// The sentence with which the first partition is refused; the second one is served.
fn refusal(dir: &Path) -> String {
    let error = Broker::real(dir, small_segments()).err().expect("it was opened");
    assert!(matches!(error, StorageError::ChangedWhileStopped { .. }), "{error}");
    error.to_string()
}

/// What it is called, what it does to a data directory, and what the refusal says of it.
type Damage = (&'static str, Box<dyn Fn(&Path)>, &'static str);

fn damages() -> Vec<Damage> {
    let log = |dir: &Path, number: usize| files(dir, ".log").swap_remove(number);
    let last = |dir: &Path| files(dir, ".log").pop().unwrap();
    vec![
        ("the folder is gone", Box::new(|dir| fs::remove_dir_all(dir.join("flights-0")).unwrap()), "is gone"),
        (
            "the folder is empty",
            Box::new(|dir| {
                fs::remove_dir_all(dir.join("flights-0")).unwrap();
                fs::create_dir(dir.join("flights-0")).unwrap();
            }),
            "is gone",
        ),
        ("the first segment is gone", Box::new(move |dir| fs::remove_file(log(dir, 0)).unwrap()), "is gone"),
        ("a segment is gone", Box::new(move |dir| fs::remove_file(log(dir, 1)).unwrap()), "is gone"),
        ("the last segment is gone", Box::new(move |dir| fs::remove_file(last(dir)).unwrap()), "is gone"),
        ("a segment is empty", Box::new(move |dir| fs::write(log(dir, 1), "").unwrap()), "has 0 bytes"),
        (
            "the last segment is longer",
            Box::new(move |dir| {
                let path = last(dir);
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, [&bytes[..], &bytes[..]].concat()).unwrap();
            }),
            "bytes, not",
        ),
        (
            "a segment came from somewhere",
            Box::new(move |dir| {
                fs::copy(last(dir), dir.join("flights-0/00000000000000009999.log")).map(drop).unwrap();
            }),
            "was not there",
        ),
    ]
}

#[test]
fn what_is_missing_or_other_than_at_the_clean_stop_is_refused_by_name_until_it_is_put_back() {
    for (what, damage, words) in damages() {
        let dir = stopped();
        let kept = scratch();
        for path in files(dir.path(), "") {
            fs::copy(&path, kept.path().join(path.file_name().unwrap())).unwrap();
        }
        damage(dir.path());
        // The first start stopped as if it had been killed: nothing says any more that the stop before was clean.
        for start in ["first", "second"] {
            let sentence = refusal(dir.path());
            assert!(
                sentence.contains("flights-0") && sentence.contains(words),
                "{what}, {start}: {sentence}"
            );
        }
        let _ = fs::remove_dir_all(dir.path().join("flights-0"));
        fs::create_dir(dir.path().join("flights-0")).unwrap();
        for entry in fs::read_dir(kept.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, dir.path().join("flights-0").join(path.file_name().unwrap())).unwrap();
        }
        whole(&Broker::real(dir.path(), small_segments()).unwrap().log);
    }
}

#[test]
fn the_other_partitions_of_a_damaged_directory_are_served() {
    let dir = stopped();
    fs::remove_dir_all(dir.path().join("flights-0")).unwrap();
    let manager = directory(dir.path());
    assert!(open(&manager, 0).is_err());
    whole(&open(&manager, 1).unwrap());
}

#[test]
fn a_clean_stop_with_a_refused_partition_does_not_forget_it() {
    let dir = stopped();
    fs::remove_dir_all(dir.path().join("flights-0")).unwrap();
    let manager = directory(dir.path());
    assert!(open(&manager, 0).is_err());
    open(&manager, 1).unwrap();
    manager.close().unwrap();
    drop(manager);
    assert!(refusal(dir.path()).contains("is gone"));
}

#[test]
fn two_folders_that_were_exchanged_are_refused_though_they_are_as_long() {
    let dir = scratch();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let other = open(&broker.manager, 1).unwrap();
    for number in 0..10 {
        fill(&broker.log, 3, 30).unwrap();
        let batch = batch_at(other.offsets().log_end_offset, 3, 30, NOW_MS + 1 + number);
        append(&other, batch).unwrap();
    }
    broker.manager.close().unwrap();
    drop((broker, other));
    let place = |name: &str| dir.path().join(name);
    fs::rename(place("flights-0"), place("between")).unwrap();
    fs::rename(place("flights-1"), place("flights-0")).unwrap();
    fs::rename(place("between"), place("flights-1")).unwrap();
    assert!(refusal(dir.path()).contains("another partition"));
}

#[test]
fn a_loss_is_accepted_by_taking_the_partition_out_of_the_list() {
    let dir = stopped();
    fs::remove_dir_all(dir.path().join("flights-0")).unwrap();
    let sentence = refusal(dir.path());
    let list = dir.path().join("clean-stop-inventory");
    assert!(sentence.contains(list.to_str().unwrap()), "{sentence}");
    fs::remove_file(list).unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    assert_eq!(broker.log.offsets().log_end_offset, 0);
}

#[test]
fn a_topic_that_is_made_anew_is_not_taken_for_the_one_that_was_lost() {
    let dir = stopped();
    fs::remove_dir_all(dir.path().join("flights-0")).unwrap();
    let manager = directory(dir.path());
    let other_id = Uuid::from_u128(8);
    let log = manager.open_partition(TOPIC, 0, other_id, small_segments(), Role::Alone, 0).unwrap();
    assert_eq!(log.offsets().log_end_offset, 0);
}

#[test]
fn a_directory_that_was_copied_without_its_times_is_opened_as_it_is() {
    let dir = stopped();
    fs::remove_dir_all(dir.path().join("flights-1")).unwrap();
    set_modified(&dir.path().join(CLEAN_STOP), std::time::SystemTime::UNIX_EPOCH);
    whole(&Broker::real(dir.path(), small_segments()).unwrap().log);
}

/// A log with aborted transactions in several segments, closed cleanly.
fn with_aborted() -> tempfile::TempDir {
    let dir = scratch();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let mut writers = Writers::default();
    for round in 0..12 {
        writers.write(&broker.log, 1, 3).unwrap();
        fill(&broker.log, 3, 40 + round).unwrap();
        broker.log.append_marker(abort(1), AppendOptions::coordinator(0)).unwrap();
    }
    broker.manager.close().unwrap();
    dir
}

#[test]
fn an_index_of_aborted_transactions_that_is_lost_emptied_or_cut_is_made_anew_with_a_line() {
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 3] = [
        ("lost", |path| fs::remove_file(path).unwrap()),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("cut", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 34]).unwrap();
        }),
    ];
    for (what, damage) in damages {
        for number in 0..files(with_aborted().path(), ".txnindex").len() {
            let dir = with_aborted();
            let index = files(dir.path(), ".txnindex").swap_remove(number);
            let before = fs::read(&index).unwrap();
            damage(&index);
            let broker = Broker::real(dir.path(), small_segments()).unwrap();
            assert!(check_reads(&broker.log) > 0);
            assert_eq!(fs::read(&index).unwrap(), before, "{what}, {number}");
            let notes = broker.log.notes();
            assert!(notes.iter().any(|note| note.contains(index.to_str().unwrap())), "{what}: {notes:?}");
        }
    }
}

#[test]
fn a_foreign_swap_file_takes_the_place_of_nothing() {
    let dir = stopped();
    let log = files(dir.path(), ".log").swap_remove(1);
    let mut swap = log.clone().into_os_string();
    swap.push(".swap");
    fs::write(&swap, "").unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    whole(&broker.log);
    let notes = broker.log.notes();
    assert!(notes.iter().any(|note| note.contains(swap.to_str().unwrap())), "{notes:?}");
}

/// Closes a log that begins at offset 51 in the middle of a segment.
fn begun_later() -> tempfile::TempDir {
    let dir = stopped();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    assert_eq!(broker.log.delete_records_before(51).unwrap(), 51);
    broker.manager.close().unwrap();
    dir
}

#[test]
fn the_log_begins_where_it_did_whatever_its_checkpoint_says() {
    for text in ["0\n0\n", "0\n1\nflights 0 70\n", "0\n1\nflights 0 10000\n"] {
        let dir = begun_later();
        fs::write(dir.path().join("log-start-offset-checkpoint"), text).unwrap();
        let broker = Broker::real(dir.path(), small_segments()).unwrap();
        let (offsets, notes) = (broker.log.offsets(), broker.log.notes());
        assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (51, RECORDS), "{text:?}");
        assert!(notes.iter().any(|note| note.contains("begins at offset")), "{text:?}: {notes:?}");
        assert_eq!(read_all(&broker.log, 51, 700, ReadUpTo::HighWatermark).unwrap(), counted(51, RECORDS));
    }
}

#[test]
fn without_the_list_a_start_behind_the_end_is_refused_and_nothing_is_removed() {
    let dir = stopped();
    fs::remove_file(dir.path().join("clean-stop-inventory")).unwrap();
    fs::write(dir.path().join("log-start-offset-checkpoint"), "0\n1\nflights 0 10000\n").unwrap();
    let before = files(dir.path(), ".log");
    let error = Broker::real(dir.path(), small_segments()).err().expect("it was opened").to_string();
    assert!(error.contains("log-start-offset-checkpoint") && error.contains("10000"), "{error}");
    assert_eq!(files(dir.path(), ".log"), before);
}
