//! Append, read, roll, reopen.
use std::sync::atomic::{AtomicBool, Ordering};

use pylog_storage::{LogConfig, ReadUpTo, StorageError};

use crate::support::{Broker, append, batch, counted, fill, manager_config, read_all, small_segments};

const UPTO: ReadUpTo = ReadUpTo::HighWatermark;

#[test]
fn what_is_appended_is_read_from_every_offset_at_every_size() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    for count in [1, 3, 2, 7, 1, 1, 5, 4].iter().cycle().take(60) {
        fill(&broker.log, *count, 20).unwrap();
    }
    let end = broker.log.offsets().log_end_offset;
    assert_eq!(end, 181);
    for offset in 0..end {
        for max_bytes in [1, 150, 700, 1 << 20] {
            let seen = read_all(&broker.log, offset, max_bytes, UPTO).unwrap();
            let from = seen.iter().position(|(found, _)| *found == offset).unwrap();
            assert_eq!(seen[from..], counted(offset, end), "from {offset} by {max_bytes}");
        }
    }
}

#[test]
fn a_log_is_the_same_after_a_clean_stop_and_after_none() {
    for clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..5 {
            let broker = Broker::real(dir.path(), small_segments()).unwrap();
            assert_eq!(broker.manager.was_clean(), clean && round > 0);
            assert_eq!(read_all(&broker.log, 0, 500, UPTO).unwrap(), counted(0, round * 60));
            for _ in 0..20 {
                fill(&broker.log, 3, 30).unwrap();
            }
            if clean {
                broker.manager.close().unwrap();
                assert!(matches!(fill(&broker.log, 1, 1), Err(StorageError::Closed { .. })));
            }
        }
    }
}

#[test]
fn an_offset_outside_the_log_is_an_error_and_its_end_is_an_empty_read() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), LogConfig::default()).unwrap();
    fill(&broker.log, 5, 1).unwrap();
    let outside = broker.log.read(6, 100, true, UPTO);
    assert!(matches!(outside, Err(StorageError::OffsetOutOfRange { offset: 6, log_end_offset: 5, .. })));
    assert!(broker.log.read(-1, 100, true, UPTO).is_err());
    assert_eq!(broker.log.read(5, 100, true, UPTO).unwrap().len, 0);
    assert_eq!(broker.log.read(0, 10, false, UPTO).unwrap().len, 0, "the first batch is larger");
}

#[test]
fn the_headers_of_what_was_read_are_those_of_its_batches_up_to_the_first_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::real(dir.path(), LogConfig::default()).unwrap();
    for count in [3, 1, 2] {
        fill(&broker.log, count, 30).unwrap();
    }
    let slice = broker.log.read(0, 10_000, true, UPTO).unwrap();
    let ends = |most| -> Vec<i64> {
        slice.headers(most).unwrap().iter().map(|header| header.last_offset()).collect()
    };
    assert_eq!((ends(10), ends(2), ends(0)), (vec![2, 3, 5], vec![2, 3], vec![]));
    let third = slice.headers(2).unwrap().iter().map(|header| header.size() as u64).sum::<u64>();
    let file = dir.path().join("flights-0/00000000000000000000.log");
    let damage = |position: u64| {
        let file = std::fs::File::options().write(true).open(&file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0; 61], position).unwrap();
    };
    damage(third);
    assert_eq!(ends(10), [2, 3]);
    damage(0);
    assert_eq!(slice.headers(10).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn a_second_user_of_the_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = Broker::real(dir.path(), LogConfig::default()).unwrap();
    assert!(matches!(Broker::real(dir.path(), LogConfig::default()), Err(StorageError::Locked { .. })));
    first.manager.close().unwrap();
    assert!(Broker::real(dir.path(), LogConfig::default()).is_ok());
}

#[test]
fn a_batch_larger_than_allowed_or_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { max_message_bytes: 200, ..LogConfig::default() };
    let broker = Broker::real(dir.path(), config).unwrap();
    let large = append(&broker.log, batch(0, 10, 100));
    assert!(matches!(large, Err(StorageError::RecordTooLarge { limit: 200, .. })), "{large:?}");
    let mut cut = batch(0, 1, 1);
    cut.pop();
    assert!(matches!(append(&broker.log, cut), Err(StorageError::InvalidBatch { .. })));
    assert_eq!(broker.log.offsets().log_end_offset, 0);
}

#[test]
fn checkpoints_and_new_segments_at_the_same_offset_do_not_harm_each_other() {
    let dir = tempfile::tempdir().unwrap();
    // Each batch begins a segment, and each checkpoint finds something new.
    let broker = Broker::real(dir.path(), LogConfig { segment_bytes: 100, ..small_segments() }).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let maintenance = scope.spawn(|| {
            let mut errors = Vec::new();
            while !done.load(Ordering::Acquire) {
                broker.clock.advance_ms(manager_config().checkpoint_interval_ms);
                errors.extend(broker.manager.run_maintenance());
            }
            errors
        });
        let appended: Result<Vec<_>, _> =
            (0..300).map(|first| append(&broker.log, batch(first, 1, 20))).collect();
        done.store(true, Ordering::Release);
        assert!(appended.is_ok(), "{appended:?}");
        let errors = maintenance.join().unwrap();
        assert!(errors.is_empty(), "{errors:?}");
    });
    assert_eq!(read_all(&broker.log, 0, 1 << 20, UPTO).unwrap(), counted(0, 300));
}
