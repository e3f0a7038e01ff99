//! A data directory read without its broker: what its broker would have after a start, or an error; never a wrong record.
//!
//! `PROPTEST_CASES` sets the number of cases.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use pylog_record::batches;
use pylog_storage::TopicPartition;
use pylog_storage::directory::cursor::Cursor;
use pylog_storage::directory::error::DirectoryError;
use pylog_storage::directory::found::LogDirectory;
use pylog_storage::directory::partition::PartitionFiles;

use crate::fuzz::{Damage, accepted_by_a_reader, config, damage};
use crate::support::{Broker, TOPIC, fill, small_segments, values};

const RECORDS: i64 = 60;

/// A directory with one partition of several segments, whose broker was stopped, or killed.
fn filled(dir: &Path, clean: bool) {
    let broker = Broker::real(dir, small_segments()).unwrap();
    while broker.log.offsets().log_end_offset < RECORDS {
        fill(&broker.log, 3, 150).unwrap();
    }
    broker.manager.run_maintenance();
    if clean {
        broker.manager.close().unwrap();
    }
}

/// The files of a directory and of those in it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn harm(file: &Path, damages: &[Damage]) {
    let mut bytes = fs::read(file).unwrap();
    damages.iter().for_each(|damage| damage.apply(&mut bytes));
    fs::write(file, bytes).unwrap();
}

fn partition(dir: &Path, skip_damaged: bool) -> Result<Arc<PartitionFiles>, DirectoryError> {
    let found = LogDirectory::open(dir, skip_damaged)?;
    Ok(Arc::new(found.partition(&TopicPartition::new(TOPIC, 0))?))
}

/// `(offset, value)` of all that is read, what is said of gaps, and the error that ended it.
fn read(files: &Arc<PartitionFiles>) -> (Vec<(i64, String)>, usize, Option<DirectoryError>) {
    let bounds = match files.bounds() {
        Ok(bounds) => bounds,
        Err(error) => return (Vec::new(), 0, Some(error)),
    };
    let mut cursor = Cursor::new(Arc::clone(files), &(bounds.log_start_offset..bounds.log_end_offset));
    let (mut seen, mut piece) = (Vec::new(), Vec::new());
    loop {
        match cursor.next_piece(&mut piece) {
            Ok(true) => seen.extend(batches(&piece).flat_map(|view| values(view.unwrap().1))),
            Ok(false) => return (seen, cursor.take_skipped().len(), None),
            Err(error) => return (seen, cursor.take_skipped().len(), Some(error)),
        }
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn whatever_is_damaged_no_wrong_and_no_doubled_record_is_read(
        clean in any::<bool>(),
        skip in any::<bool>(),
        harmed in proptest::collection::vec((any::<usize>(), damage()), 1..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), clean);
        let all = files(dir.path());
        for (which, damage) in &harmed {
            harm(&all[which % all.len()], std::slice::from_ref(damage));
        }
        let Ok(files) = partition(dir.path(), skip) else { return Ok(()) };
        let (seen, _, error) = read(&files);
        prop_assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "offsets grow");
        for (offset, value) in seen {
            prop_assert_eq!(value, offset.to_string());
        }
        let damaged = matches!(error, Some(DirectoryError::Damaged(_)));
        prop_assert!(!(skip && damaged), "damage is left out where that is wanted: {error:?}");
        // Times and aborted transactions are looked for in what is there.
        let _ = files.first_at(crate::support::NOW_MS + 7);
        let _ = files.aborted(&(0..RECORDS));
    }

    #[test]
    fn a_directory_is_read_as_its_broker_would_recover_it(
        which in any::<usize>(),
        damages in proptest::collection::vec(damage(), 1..4),
        synced in (0..=RECORDS / 3).prop_map(|batches| batches * 3),
    ) {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), false);
        fs::write(dir.path().join("recovery-point-offset-checkpoint"), format!("0\n1\n{TOPIC} 0 {synced}\n")).unwrap();
        let of_log = |path: &PathBuf| path.parent() != Some(dir.path()) && !path.ends_with("partition.metadata");
        let logs: Vec<PathBuf> = files(dir.path()).into_iter().filter(of_log).collect();
        harm(&logs[which % logs.len()], &damages);
        let (seen, gaps, error) = read(&partition(dir.path(), false).unwrap());
        // The broker changes what it recovers, so it comes second.
        match Broker::real(dir.path(), small_segments()) {
            Ok(broker) => {
                let recovered = accepted_by_a_reader(&broker.log, broker.log.offsets().log_start_offset);
                if gaps > 0 {
                    // A whole file is gone or empty: its broker ends the log there, Apache Kafka does not.
                    prop_assert!(seen.starts_with(&recovered));
                } else {
                    prop_assert_eq!(seen, recovered, "{:?}", error);
                }
            }
            // It refuses a log that lacks what was synced, which a reader of the directory is told.
            Err(refused) => prop_assert!(error.is_some() || seen.len() < RECORDS as usize, "{refused}"),
        }
    }
}

/// Retention writes down where a log begins before it removes files, and `DeleteRecords` may remove none.
#[test]
fn what_lies_before_the_begin_of_the_log_is_removed_also_while_its_file_is_there() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), true);
    let first = RECORDS / 2;
    fs::write(dir.path().join("log-start-offset-checkpoint"), format!("0\n1\n{TOPIC} 0 {first}\n")).unwrap();
    let files = partition(dir.path(), false).unwrap();
    let mut cursor = Cursor::new(Arc::clone(&files), &(first - 1..RECORDS));
    match cursor.next_piece(&mut Vec::new()) {
        Err(DirectoryError::Removed { offset, first: said, .. }) => {
            assert_eq!((offset, said), (first - 1, first))
        }
        other => panic!("read what its broker refuses: {other:?}"),
    }
    assert_eq!(read(&files).0.last().unwrap().0, RECORDS - 1);
}
