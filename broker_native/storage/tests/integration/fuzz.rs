//! Random damage to every file that recovery reads: the log opens with true records, or says what is wrong.
//!
//! `PROPTEST_CASES` sets the number of cases.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use pylog_record::batches;
use pylog_storage::{Disk, PartitionLog, ReadUpTo};
use pylog_testkit::sim::SimDisk;

use crate::support::{Broker, fill, small_segments, values};

const CASES: u32 = 64;
const RECORDS: i64 = 60;

/// Every file of a data directory with one partition of several segments.
fn files(disk: &SimDisk, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            found.extend(files(disk, &path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn filled(disk: &SimDisk, dir: &Path, clean: bool) {
    let broker = Broker::on(Arc::new(disk.clone()), dir, small_segments()).unwrap();
    while broker.log.offsets().log_end_offset < RECORDS {
        fill(&broker.log, 3, 150).unwrap();
    }
    broker.manager.run_maintenance();
    if clean {
        broker.manager.close().unwrap();
    }
    drop(broker);
    disk.crash_processes();
}

/// `(offset, value)` as far as a client reads them: it refuses a batch whose checksum is wrong, and stops.
pub fn accepted_by_a_reader(log: &PartitionLog, mut offset: i64) -> Vec<(i64, String)> {
    let mut seen = Vec::new();
    while let Ok(slice) = log.read(offset, 1 << 20, true, ReadUpTo::LogEnd) {
        let bytes = slice.read().unwrap_or_default();
        for found in batches(&bytes) {
            let Ok((header, batch)) = found else { return seen };
            if header.verify_crc(batch).is_err() {
                return seen;
            }
            seen.extend(values(batch));
        }
        if slice.len == 0 || slice.next_offset <= offset {
            break;
        }
        offset = slice.next_offset;
    }
    seen
}

/// One change of a file's bytes.
#[derive(Debug, Clone)]
pub enum Damage {
    Byte { at: usize, value: u8 },
    Cut { to: usize },
    Behind { bytes: Vec<u8> },
    Instead { bytes: Vec<u8> },
}

impl Damage {
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len().max(1);
        match self {
            Self::Byte { at, value } => {
                if let Some(byte) = bytes.get_mut(at % len) {
                    *byte = *value;
                }
            }
            Self::Cut { to } => bytes.truncate(to % len),
            Self::Behind { bytes: more } => bytes.extend_from_slice(more),
            Self::Instead { bytes: other } => bytes.clone_from(other),
        }
    }
}

pub fn damage() -> impl Strategy<Value = Damage> {
    let some_bytes = || proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, value)| Damage::Byte { at, value }),
        any::<usize>().prop_map(|to| Damage::Cut { to }),
        some_bytes().prop_map(|bytes| Damage::Behind { bytes }),
        some_bytes().prop_map(|bytes| Damage::Instead { bytes }),
    ]
}

pub fn config() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(given.unwrap_or(CASES))
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn fuzz_every_file_that_recovery_reads(
        clean in any::<bool>(),
        which in any::<usize>(),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let (disk, dir) = (SimDisk::new(), Path::new("/data"));
        filled(&disk, dir, clean);
        let files = files(&disk, dir);
        let file = &files[which % files.len()];
        disk.damage(file, |bytes| damages.iter().for_each(|damage| damage.apply(bytes))).unwrap();
        // An error is an answer; a wrong or doubled record is none.
        if let Ok(broker) = Broker::on(Arc::new(disk.clone()), dir, small_segments()) {
            let from = broker.log.offsets().log_start_offset;
            for (offset, value) in accepted_by_a_reader(&broker.log, from) {
                prop_assert_eq!(value, offset.to_string(), "in {}", file.display());
            }
        }
    }
}
