//! Every doubt, over real directories.
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use pylog_record::{BatchBuilder, Codec};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::metadata::topic_id;

const NONCE: Uuid = Uuid::from_u128(11);
const TOPIC_ID: Uuid = Uuid::from_u128(7);
/// Of the batches in the log.
const EPOCH: i32 = 3;
/// Records of each batch.
const RECORDS: i64 = 10;

/// A data directory with one segment of one partition.
struct Disk {
    dir: TempDir,
    topic_partition: TopicPartition,
    /// Where each batch begins, and where the last one ends.
    bounds: Vec<usize>,
}

impl Disk {
    fn new(value_bytes: usize, batches: i64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("local-reads"), topic_id::text(NONCE)).unwrap();
        fs::create_dir(dir.path().join("t-0")).unwrap();
        let metadata = format!("version: 0\ntopic_id: {}", topic_id::text(TOPIC_ID));
        fs::write(dir.path().join("t-0/partition.metadata"), metadata).unwrap();
        let (mut log, mut bounds) = (Vec::new(), vec![0]);
        for number in 0..batches {
            let mut builder = BatchBuilder::new();
            builder.set_base_offset(number * RECORDS);
            for _ in 0..RECORDS {
                builder.append(1, None, Some(&vec![7; value_bytes]), &[]).unwrap();
            }
            let mut batch = builder.finish(Codec::None).unwrap();
            // Its place in the header; a broker writes it there, no CRC covers it.
            batch[12..16].copy_from_slice(&EPOCH.to_be_bytes());
            log.extend(batch);
            bounds.push(log.len());
        }
        let topic_partition = TopicPartition { topic: "t".into(), partition: 0, topic_id: TOPIC_ID };
        let disk = Self { dir, topic_partition, bounds };
        fs::write(disk.log(), log).unwrap();
        disk
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("t-0/00000000000000000000.log")
    }

    /// What a broker would say of the batches `from..to`.
    fn place(&self, from: usize, to: usize) -> InDirectory {
        let file = fs::metadata(self.log()).unwrap();
        InDirectory {
            directory: self.dir.path().to_str().unwrap().to_owned(),
            nonce: NONCE,
            segment: 0,
            inode: file.ino() as i64,
            made_ns: file.created().unwrap().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64,
            position: self.bounds[from] as i64,
            size: (self.bounds[to] - self.bounds[from]) as i32,
            next_offset: to as i64 * RECORDS,
        }
    }

    /// Opens what `place` names, asked for from `offset` on.
    fn open(&self, place: &InDirectory, offset: i64) -> Result<LocalRun, Doubt> {
        let mut directory = DataDirectory::prove(place)?;
        let file = directory.segment(&self.topic_partition, place)?;
        LocalRun::new(file, place, offset, EPOCH)
    }
}

/// The offset behind the last record of a run that is read to its end.
fn read(mut run: LocalRun) -> Result<(usize, i64), Doubt> {
    let (mut piece, mut bytes, mut last) = (Piece::default(), 0, -1);
    while run.next_piece(&mut piece)? {
        bytes += piece.bytes().len();
        last = pylog_record::batches(piece.bytes()).last().unwrap().unwrap().0.last_offset();
        assert_eq!(run.batch_epoch(), Some(EPOCH));
    }
    Ok((bytes, last + 1))
}

fn reason<T: std::fmt::Debug>(result: Result<T, Doubt>) -> String {
    result.unwrap_err().reason
}

#[test]
fn a_part_of_a_file_is_read_whole_whatever_the_size_of_its_batches() {
    for (value_bytes, batches) in [(10, 1), (1_000, 200), (100_000, 3)] {
        let disk = Disk::new(value_bytes, batches);
        let count = batches as usize;
        let all = read(disk.open(&disk.place(0, count), 0).unwrap()).unwrap();
        assert_eq!(all, (disk.bounds[count], batches * RECORDS));
        // From the middle of the last batch on.
        let last = read(disk.open(&disk.place(count - 1, count), batches * RECORDS - 5).unwrap()).unwrap();
        assert_eq!(last.1, batches * RECORDS);
    }
}

#[test]
fn a_directory_without_the_nonce_is_not_the_brokers() {
    let disk = Disk::new(10, 1);
    let place = disk.place(0, 1);
    let other = InDirectory { nonce: Uuid::from_u128(12), ..place.clone() };
    assert!(reason(DataDirectory::prove(&other)).contains("not that of the broker"));
    for directory in ["", "relative", "/no/such/directory"] {
        let doubt = DataDirectory::prove(&InDirectory { directory: directory.into(), ..place.clone() });
        assert!(doubt.unwrap_err().lasts, "{directory}");
    }
    fs::remove_file(disk.dir.path().join("local-reads")).unwrap();
    assert!(reason(DataDirectory::prove(&place)).contains("not to be seen here"));
}

#[test]
fn nothing_but_regular_files_is_opened_and_no_link_followed() {
    let disk = Disk::new(10, 1);
    let place = disk.place(0, 1);
    let moved = disk.dir.path().join("moved");
    fs::rename(disk.log(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, disk.log()).unwrap();
    assert!(reason(disk.open(&place, 0)).contains("cannot be read"));
    fs::remove_file(disk.log()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        disk.log(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(reason(disk.open(&place, 0)).contains("cannot be read"));
}

#[test]
fn another_topic_of_the_name_and_another_file_of_the_name_are_noticed() {
    let disk = Disk::new(10, 2);
    let place = disk.place(0, 2);
    let stranger = TopicPartition { topic_id: Uuid::from_u128(8), ..disk.topic_partition.clone() };
    let mut directory = DataDirectory::prove(&place).unwrap();
    assert!(reason(directory.segment(&stranger, &place)).contains("another topic"));
    let outside = TopicPartition { topic: "../t".into(), ..disk.topic_partition.clone() };
    assert!(reason(directory.segment(&outside, &place)).contains("no name of a directory"));
    let same = fs::read(disk.log()).unwrap();
    fs::rename(disk.log(), disk.dir.path().join("deleted")).unwrap();
    fs::write(disk.log(), &same).unwrap();
    assert!(reason(directory.segment(&disk.topic_partition, &place)).contains("was replaced"));
    // The file system gave the number again.
    let young = InDirectory { made_ns: place.made_ns, ..disk.place(0, 2) };
    assert!(reason(directory.segment(&disk.topic_partition, &young)).contains("was replaced"));
    assert_eq!(read(disk.open(&disk.place(0, 2), 0).unwrap()).unwrap().1, 20);
}

#[test]
fn a_file_that_is_cut_ends_and_a_changed_byte_is_noticed() {
    let disk = Disk::new(1_000, 100);
    let run = disk.open(&disk.place(0, 100), 0).unwrap();
    let file = fs::OpenOptions::new().write(true).open(disk.log()).unwrap();
    let mut bytes = fs::read(disk.log()).unwrap();
    file.set_len(disk.bounds[99] as u64 + 5).unwrap();
    assert!(reason(read(run.clone())).contains("was cut"));
    let place = disk.bounds[98] + 200;
    bytes[place] ^= 1;
    fs::write(disk.log(), &bytes).unwrap();
    assert!(reason(read(run)).contains("offset 980"));
}

#[test]
fn what_is_not_what_the_broker_named_is_a_doubt() {
    let disk = Disk::new(10, 4);
    let place = disk.place(1, 3);
    let cases = [
        // A batch of an election that the broker that answered knew nothing of.
        (place.clone(), 10, EPOCH - 1, "a later leader"),
        (place.clone(), 20, EPOCH, "offset 10 stands there"),
        (InDirectory { next_offset: 25, ..place.clone() }, 10, EPOCH, "offset 20 stands there"),
        (InDirectory { position: place.position + 1, ..place.clone() }, 10, EPOCH, "does not have offset 10"),
        (InDirectory { size: place.size - 1, ..place.clone() }, 10, EPOCH, "goes on behind"),
        (InDirectory { size: 40, ..place.clone() }, 10, EPOCH, "goes on behind"),
    ];
    for (place, offset, epoch, why) in cases {
        let mut directory = DataDirectory::prove(&place).unwrap();
        let file = directory.segment(&disk.topic_partition, &place).unwrap();
        let doubt = reason(read(LocalRun::new(file, &place, offset, epoch).unwrap()));
        assert!(doubt.contains(why), "{doubt}, not {why}");
    }
    for nothing in [InDirectory { size: 0, ..place.clone() }, InDirectory { next_offset: 10, ..place }] {
        assert!(reason(disk.open(&nothing, 10)).contains("no part of a file"));
    }
}
