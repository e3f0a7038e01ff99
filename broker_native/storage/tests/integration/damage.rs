//! Damage from outside: a clear error or a repaired log, never wrong data, never a panic.
//!
//! After a clean stop everything was on the device: nothing may be missing without an error. After an unclean one the
//! end may be cut, and the cut is reported.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pylog_storage::{LogConfig, ReadUpTo, StorageError};

use pylog_testkit::runs::is_long;

use crate::support::{
    Broker, CLEAN_STOP, NOW_MS, append, batch_at, counted, durable, fill, read_all, scratch, set_modified,
    small_segments,
};

const RECORDS: i64 = 120;
const BATCH: i64 = 3;

/// How the broker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Clean,
    /// Killed; nothing was ever flushed.
    Killed,
    /// Killed; everything was flushed and the recovery point is at the end.
    KilledAfterCheckpoint,
}

/// How far apart the bytes are that are flipped one after the other, in files of a few bytes to an entry: every one in a long run.
fn apart() -> usize {
    if is_long() { 1 } else { 3 }
}

const STOPS: [Stop; 3] = [Stop::Clean, Stop::Killed, Stop::KilledAfterCheckpoint];

/// A data directory with several segments of one partition.
fn make(stop: Stop) -> tempfile::TempDir {
    let dir = scratch();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    while broker.log.offsets().log_end_offset < RECORDS {
        fill(&broker.log, BATCH, 30).unwrap();
    }
    match stop {
        Stop::Clean => broker.manager.close().unwrap(),
        Stop::Killed => {}
        Stop::KilledAfterCheckpoint => {
            broker.clock.advance_ms(120_000);
            assert!(broker.manager.run_maintenance().is_empty());
        }
    }
    dir
}

/// A directory that was copied without its times: nobody compares it with what the last clean stop left.
fn copy_of(original: &Path) -> tempfile::TempDir {
    let copy = copied(original);
    let marker = copy.path().join(CLEAN_STOP);
    if marker.exists() {
        set_modified(&marker, SystemTime::UNIX_EPOCH);
    }
    copy
}

/// The same, and the marker of a clean stop has its time: what that stop left is looked for.
fn copy_with_times(original: &Path) -> tempfile::TempDir {
    let copy = copied(original);
    let modified = fs::metadata(original.join(CLEAN_STOP)).unwrap().modified().unwrap();
    set_modified(&copy.path().join(CLEAN_STOP), modified);
    copy
}

fn copied(original: &Path) -> tempfile::TempDir {
    let copy = scratch();
    for from in files(original) {
        let to = copy.path().join(from.strip_prefix(original).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&from, &to).unwrap();
    }
    copy
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn of_partition(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == suffix);
    files(&dir.join("flights-0")).into_iter().filter(wanted).collect()
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Whole,
    /// Records from here on were cut, and that was reported.
    Cut(i64),
    /// Records from here on are not there, and nobody could know.
    Shorter(i64),
    Refused(String),
}

/// Opens and reads everything; asserts all that must hold whatever was damaged.
fn outcome(dir: &Path, stop: Stop) -> Outcome {
    let broker = match Broker::real(dir, small_segments()) {
        Ok(broker) => broker,
        Err(error) => return refusal(error),
    };
    let offsets = broker.log.offsets();
    assert_eq!(offsets.log_start_offset, 0);
    let mut offset = 0;
    while offset < offsets.log_end_offset {
        match broker.log.read(offset, 700, true, ReadUpTo::HighWatermark) {
            Ok(slice) => {
                assert!(slice.len > 0, "nothing at {offset} of {offsets:?}");
                let seen = one_slice(&broker, offset, slice.next_offset);
                assert_eq!(seen, counted(offset, slice.next_offset), "wrong data");
                offset = slice.next_offset;
            }
            Err(error) => return refusal(error),
        }
    }
    let usable = fill(&broker.log, 1, 1).unwrap();
    assert_eq!(usable.base_offset, offset, "the log goes on where it ends");
    if offset == RECORDS {
        return Outcome::Whole;
    }
    assert_eq!(stop, Stop::Killed, "acknowledged and flushed records are missing from {offset} on");
    match broker.log.cut_tail() {
        Some(cut) => {
            assert_eq!(cut.offset, offset);
            Outcome::Cut(offset)
        }
        None => Outcome::Shorter(offset),
    }
}

fn one_slice(broker: &Broker, from: i64, to: i64) -> Vec<(i64, String)> {
    let slice = broker.log.read(from, 700, true, ReadUpTo::HighWatermark).unwrap();
    assert_eq!(slice.next_offset, to);
    let seen = read_all(&broker.log, from, 700, ReadUpTo::HighWatermark);
    let mut seen = seen.unwrap_or_else(|_| crate::support::values(&slice.read().unwrap()));
    seen.retain(|(offset, _)| (from..to).contains(offset));
    seen
}

fn refusal(error: StorageError) -> Outcome {
    let sentence = error.to_string();
    match error {
        StorageError::Corrupt { at, file, .. } => {
            assert_eq!(at.to_string(), "flights-0");
            assert!(sentence.contains("flights-0/") && file.exists(), "{sentence}");
        }
        StorageError::ChangedWhileStopped { at, what, .. } => {
            assert_eq!(at.to_string(), "flights-0");
            assert!(what.contains("/flights-0/") && sentence.contains(&what), "{sentence}");
        }
        StorageError::Malformed { file, .. } | StorageError::Mismatch { file, .. } => {
            assert!(sentence.contains(&*file.to_string_lossy()), "{sentence}");
        }
        other => panic!("not a clear error: {other}"),
    }
    Outcome::Refused(sentence)
}

fn flip(path: &Path, byte: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[byte] ^= 0x41;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_byte_at_200_places_of_the_logs_is_never_served() {
    for stop in STOPS {
        let original = make(stop);
        let logs = of_partition(original.path(), "log");
        let sizes: Vec<usize> = logs.iter().map(|log| fs::read(log).unwrap().len()).collect();
        let total: usize = sizes.iter().sum();
        let mut noticed = 0;
        for place in 0..200 {
            let (mut byte, mut file) = (place * total / 200, 0);
            while byte >= sizes[file] {
                byte -= sizes[file];
                file += 1;
            }
            let copy = copy_of(original.path());
            flip(&of_partition(copy.path(), "log")[file], byte);
            match outcome(copy.path(), stop) {
                // The leader epoch of a batch is covered by nothing, and is no data.
                Outcome::Whole => {}
                Outcome::Cut(_) | Outcome::Refused(_) => noticed += 1,
                Outcome::Shorter(offset) => panic!("{stop:?}: cut at {offset} without a word"),
            }
        }
        assert!(noticed >= 180, "{stop:?}: only {noticed} of 200 were noticed");
    }
}

#[test]
fn a_flipped_byte_of_an_index_changes_nothing_that_is_read() {
    for stop in STOPS {
        let original = make(stop);
        for suffix in ["index", "timeindex"] {
            for file in 0..of_partition(original.path(), suffix).len() {
                let len = fs::read(&of_partition(original.path(), suffix)[file]).unwrap().len();
                for byte in (0..len).step_by(apart()) {
                    let copy = copy_of(original.path());
                    flip(&of_partition(copy.path(), suffix)[file], byte);
                    assert_eq!(
                        outcome(copy.path(), stop),
                        Outcome::Whole,
                        "{stop:?} {suffix} {file} byte {byte}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_flipped_byte_of_a_small_file_changes_nothing_or_is_named() {
    for stop in STOPS {
        let original = make(stop);
        let small = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name != ".lock" && !name.ends_with("log") && !name.ends_with("index")
        };
        let paths: Vec<PathBuf> = files(original.path()).into_iter().filter(small).collect();
        assert!(paths.len() >= 4, "{paths:?}");
        for path in paths {
            for byte in (0..fs::read(&path).unwrap().len()).step_by(apart()) {
                let copy = copy_of(original.path());
                flip(&copy.path().join(path.strip_prefix(original.path()).unwrap()), byte);
                let end = outcome(copy.path(), stop);
                assert!(matches!(end, Outcome::Whole | Outcome::Refused(_)), "{path:?} byte {byte}: {end:?}");
            }
        }
    }
}

#[test]
fn a_tail_cut_at_every_length_of_the_last_batch_is_repaired_or_refused() {
    for stop in STOPS {
        let original = make(stop);
        let last = of_partition(original.path(), "log").pop().unwrap();
        let len = fs::metadata(&last).unwrap().len();
        let batch = batch_at(RECORDS - BATCH, BATCH, 30, NOW_MS).len() as u64;
        for cut in 1..=batch {
            let copy = copy_of(original.path());
            let path = of_partition(copy.path(), "log").pop().unwrap();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len - cut).unwrap();
            match (stop, outcome(copy.path(), stop)) {
                (Stop::Killed, Outcome::Cut(offset)) if cut < batch => assert_eq!(offset, RECORDS - BATCH),
                // Nothing tells a batch that was lost whole from one that was never written.
                (Stop::Killed, Outcome::Shorter(offset)) if cut == batch => {
                    assert_eq!(offset, RECORDS - BATCH)
                }
                (Stop::Clean | Stop::KilledAfterCheckpoint, Outcome::Refused(_)) => {}
                (_, other) => panic!("{stop:?}, cut by {cut}: {other:?}"),
            }
        }
    }
}

#[test]
fn an_emptied_missing_or_nonsense_index_is_rebuilt() {
    for stop in STOPS {
        let original = make(stop);
        for suffix in ["index", "timeindex"] {
            for damage in ["emptied", "missing", "nonsense", "odd length", "zeros"] {
                let copy = copy_of(original.path());
                for path in of_partition(copy.path(), suffix) {
                    match damage {
                        "emptied" => fs::write(&path, []).unwrap(),
                        "missing" => fs::remove_file(&path).unwrap(),
                        "nonsense" => fs::write(&path, [0xA7; 240]).unwrap(),
                        "zeros" => fs::write(&path, [0; 240]).unwrap(),
                        _ => fs::write(&path, [1, 2, 3, 4, 5]).unwrap(),
                    }
                }
                assert_eq!(outcome(copy.path(), stop), Outcome::Whole, "{stop:?} {suffix} {damage}");
                let offsets = times(copy.path(), stop);
                assert_eq!(offsets, times(original.path(), stop), "{stop:?} {suffix} {damage}");
            }
        }
    }
}

/// Where some timestamps lead, read from a copy.
fn times(dir: &Path, stop: Stop) -> Vec<Option<(i64, i64)>> {
    let copy = copy_of(dir);
    let broker = Broker::real(copy.path(), small_segments()).unwrap();
    let _ = stop;
    (0..5).map(|i| broker.log.offset_for_timestamp(NOW_MS + i).unwrap()).collect()
}

#[test]
fn nonsense_behind_the_last_batch_is_cut_or_refused() {
    for stop in STOPS {
        let original = make(stop);
        for nonsense in [vec![0; 1], vec![0; 4096], vec![0xFF; 100], (0..=255).collect::<Vec<u8>>()] {
            let copy = copy_of(original.path());
            let path = of_partition(copy.path(), "log").pop().unwrap();
            let mut bytes = fs::read(&path).unwrap();
            bytes.extend(&nonsense);
            fs::write(&path, bytes).unwrap();
            let end = outcome(copy.path(), stop);
            if stop == Stop::Clean {
                assert!(matches!(end, Outcome::Refused(_)), "a clean stop left nothing behind: {end:?}");
            } else {
                assert_eq!(end, Outcome::Whole, "{stop:?}");
            }
        }
    }
}

#[test]
fn a_duplicated_or_missing_segment_is_cut_or_refused() {
    for stop in STOPS {
        let original = make(stop);
        let logs = of_partition(original.path(), "log");
        for (from, log) in logs.iter().enumerate() {
            for offset in [1, 50, RECORDS, RECORDS + 7, 5_000_000_000] {
                let copy = copy_of(original.path());
                let to = copy.path().join(format!("flights-0/{offset:020}.log"));
                if !to.exists() {
                    fs::copy(log, to).unwrap();
                    outcome(copy.path(), stop);
                }
            }
            let copy = copy_of(original.path());
            fs::remove_file(&of_partition(copy.path(), "log")[from]).unwrap();
            if from > 0 {
                let end = outcome(copy.path(), stop);
                assert!(end != Outcome::Whole, "{stop:?}: segment {from} is not missed");
            }
        }
    }
}

#[test]
fn a_damaged_batch_of_a_flushed_log_is_named_and_the_rest_is_served() {
    let original = make(Stop::Clean);
    let first = &of_partition(original.path(), "log")[0];
    let middle = fs::read(first).unwrap().len() / 2;
    flip(first, middle);
    let broker = Broker::real(original.path(), small_segments()).unwrap();
    let upto = ReadUpTo::HighWatermark;
    let Err(StorageError::Corrupt { offset, .. }) = read_all(&broker.log, 0, 300, upto) else {
        panic!("the damage was not noticed")
    };
    assert!(offset > 0 && offset % BATCH == 0);
    let second =
        of_partition(original.path(), "log")[1].file_stem().unwrap().to_str().unwrap().parse().unwrap();
    assert_eq!(read_all(&broker.log, second, 300, upto).unwrap(), counted(second, RECORDS));
    let before = fs::read(first).unwrap();
    broker.manager.close().unwrap();
    assert_eq!(fs::read(first).unwrap(), before, "a damaged file is left as it is");
}

#[test]
fn a_batch_that_reaches_below_the_recovery_point_is_never_cut() {
    let config = LogConfig { durability: pylog_storage::Durability::Flushed, ..small_segments() };
    let dir = scratch();
    let broker = Broker::real(dir.path(), config.clone()).unwrap();
    for _ in 0..30 {
        let last = append(&broker.log, batch_at(broker.log.offsets().log_end_offset, 3, 9, NOW_MS)).unwrap();
        durable(&broker.log, last.last_offset).unwrap();
    }
    broker.clock.advance_ms(120_000);
    assert!(broker.manager.run_maintenance().is_empty());
    drop(broker);
    let last = of_partition(dir.path(), "log").pop().unwrap();
    let len = fs::read(&last).unwrap().len();
    flip(&last, len - 1);
    let damaged = fs::read(&last).unwrap();
    let refused = Broker::real(dir.path(), config).err().unwrap();
    assert!(matches!(refused, StorageError::Corrupt { offset: 87, .. }), "{refused}");
    assert_eq!(fs::read(&last).unwrap(), damaged, "nothing was changed");
}

/// What recovery kept beside the log: name and bytes.
fn kept(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    of_partition(dir, "cut").iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[test]
fn what_recovery_cuts_is_kept_beside_the_log_until_the_next_cut_needs_its_room() {
    let dir = make(Stop::Killed);
    let logs = of_partition(dir.path(), "log");
    let whole: Vec<Vec<u8>> = logs.iter().map(|log| fs::read(log).unwrap()).collect();
    assert!(logs.len() > 3);
    flip(&logs[1], whole[1].len() / 2);
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    let cut = broker.log.cut_tail().unwrap().clone();
    let beside = kept(dir.path());
    assert_eq!(beside[0].0, format!("{:020}.log.cut", cut.offset));
    let good = fs::read(&logs[1]).unwrap().len();
    let mut tail = whole[1][good..].to_vec();
    tail[whole[1].len() / 2 - good] ^= 0x41;
    let expected: Vec<Vec<u8>> = std::iter::once(tail).chain(whole[2..].iter().cloned()).collect();
    let found: Vec<Vec<u8>> = beside.iter().map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(found, expected, "from the damaged batch on, byte by byte");
    let bytes: usize = expected.iter().map(Vec::len).sum();
    assert_eq!((cut.bytes, cut.kept), (bytes as u64, bytes as u64));
    // They are there after another start, and no part of the log.
    broker.manager.close().unwrap();
    let broker = Broker::real(dir.path(), small_segments()).unwrap();
    assert_eq!((kept(dir.path()), broker.log.offsets().log_end_offset), (beside, cut.offset));
    assert!(broker.log.cut_tail().is_none());
}

#[test]
fn no_more_of_what_is_cut_is_kept_than_the_limit_says() {
    let original = make(Stop::Killed);
    let logs = of_partition(original.path(), "log");
    let last = fs::read(logs.last().unwrap()).unwrap().len() as u64;
    flip(&logs[1], 70);
    for (most, files) in [(0, 0), (last, 1), (u64::MAX, logs.len() - 1)] {
        let copy = copy_of(original.path());
        let broker = Broker::keeping(copy.path(), most).unwrap();
        let cut = broker.log.cut_tail().unwrap();
        let beside = kept(copy.path());
        assert_eq!(beside.len(), files, "at most {most} bytes");
        assert_eq!(cut.kept, beside.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
        assert!(cut.kept <= most && cut.bytes >= cut.kept);
    }
}

#[test]
fn a_link_in_place_of_a_partitions_folder_is_named_and_what_it_leads_to_stays_as_it_is() {
    for stop in [Stop::Clean, Stop::Killed] {
        let original = make(stop);
        let copy = copy_of(original.path());
        let log = of_partition(copy.path(), "log").pop().unwrap();
        let (folder, moved) = (log.parent().unwrap(), copy.path().join("somebody-elses"));
        fs::rename(folder, &moved).unwrap();
        let log = moved.join(log.file_name().unwrap());
        flip(&log, fs::metadata(&log).unwrap().len() as usize - 1);
        let before = fs::read(&log).unwrap();
        std::os::unix::fs::symlink(&moved, folder).unwrap();
        let refused = Broker::real(copy.path(), small_segments()).err().unwrap().to_string();
        assert!(
            refused.contains("it is a symbolic link") && refused.contains(&*folder.to_string_lossy()),
            "{stop:?}: {refused}"
        );
        assert_eq!(fs::read(&log).unwrap(), before, "{stop:?}");
    }
}

/// Puts something else in place of a file, which was moved to the second path.
type Damage = fn(&Path, &Path);

#[test]
fn a_link_a_pipe_or_a_folder_in_place_of_a_file_is_named_and_what_a_link_leads_to_stays_as_it_is() {
    type Copy = fn(&Path) -> tempfile::TempDir;
    let kinds: [(Stop, Copy); 3] =
        [(Stop::Clean, copy_of), (Stop::Clean, copy_with_times), (Stop::Killed, copy_of)];
    for (stop, copy) in kinds {
        let original = make(stop);
        let damages: [(&str, Damage); 3] = [
            ("it is a symbolic link", |log, beside| std::os::unix::fs::symlink(beside, log).unwrap()),
            ("it is no regular file", |log, _| {
                let made = std::process::Command::new("mkfifo").arg(log).status().unwrap();
                assert!(made.success());
            }),
            ("cannot", |log, _| fs::create_dir(log).unwrap()),
        ];
        for (wrong, damage) in damages {
            let copy = copy(original.path());
            let log = of_partition(copy.path(), "log").pop().unwrap();
            let beside = copy.path().join("somebody-elses");
            fs::rename(&log, &beside).unwrap();
            let len = fs::metadata(&beside).unwrap().len() as usize;
            flip(&beside, len - 1);
            let before = fs::read(&beside).unwrap();
            damage(&log, &beside);
            let refused = Broker::real(copy.path(), small_segments()).err().unwrap().to_string();
            assert!(
                refused.contains(wrong) && refused.contains(&*log.to_string_lossy()),
                "{stop:?}: {refused}"
            );
            assert_eq!(fs::read(&beside).unwrap(), before, "{stop:?}, {wrong}");
        }
    }
}
