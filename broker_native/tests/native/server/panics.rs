//! Mistakes of the broker itself: who met one is told, the log that may be half-changed takes nothing more, all others go on.
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use broker_native::server::settings::Settings;
use broker_native::storage::disk::{DirEntry, DiskFile, DiskLock, OpenMode};
use broker_native::storage::{Disk, RealDisk};
use broker_native::wire::ErrorCode;
use broker_native::wire::messages::CreateTopicsRequest;
use broker_native::wire::messages::create_topics::CreatableTopic;

use crate::server::support::{Broker, topic};

/// A record with this in it panics when it is written.
const MISTAKE: &str = "a planted mistake";

/// The disk of this machine, but for [`MISTAKE`].
struct Mined;

struct MinedFile(Arc<dyn DiskFile>);

impl Disk for Mined {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(MinedFile(RealDisk.open(path, mode)?)))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        RealDisk.file_len(path)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        RealDisk.modified_ms(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        RealDisk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.remove_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        RealDisk.lock(path)
    }
}

impl DiskFile for MinedFile {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let is_mistake = bytes.windows(MISTAKE.len()).any(|part| part == MISTAKE.as_bytes());
        assert!(!is_mistake, "{MISTAKE}");
        self.0.write_all_at(bytes, position)
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.0.read_at(buf, position)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.0.reserve(len)
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.0.drop_cache()
    }

    fn as_raw_fd(&self) -> Option<RawFd> {
        self.0.as_raw_fd()
    }
}

#[test]
fn a_panic_while_a_batch_is_appended_is_told_and_ends_that_log_only() {
    let mut broker = Broker::on(Arc::new(Mined), Settings::default());
    let topics = vec![topic("mined", 1), topic("sound", 1)];
    broker.server.apply_topics(topics.clone()).unwrap();
    let mut client = broker.client();
    assert_eq!(client.produce("mined", &["before"]).error_code, 0);
    assert_eq!(client.produce("mined", &[MISTAKE]).error_code, ErrorCode::UnknownServerError.code());
    assert_eq!(client.produce("mined", &["behind"]).error_code, ErrorCode::KafkaStorageError.code());
    assert_eq!(client.produce("sound", &["on"]).error_code, 0);
    assert_eq!(broker.client().fetch("sound", 0).high_watermark, 1);
    assert_eq!(broker.count("panics"), 1);
    assert!(broker.server.close(Duration::from_secs(5)).is_err(), "the stop is not a clean one");
    broker.restart();
    broker.server.apply_topics(topics).unwrap();
    assert_eq!(broker.client().produce("mined", &["after"]).base_offset, 1);
}

#[test]
fn a_panic_of_a_request_that_takes_time_is_told_and_harms_nobody() {
    let broker = Broker::start();
    broker.server.apply_topics(vec![topic("sound", 1)]).unwrap();
    broker.decisions.panics.store(true, Ordering::SeqCst);
    let (mut unlucky, mut other) = (broker.client(), broker.client());
    let topics = vec![CreatableTopic { name: "never".into(), ..Default::default() }];
    let answer = unlucky.call(&CreateTopicsRequest { topics, timeout_ms: 1000, ..Default::default() }, 5);
    assert_eq!(answer.topics[0].error_code, ErrorCode::UnknownServerError.code());
    for client in [&mut unlucky, &mut other] {
        assert_eq!(client.produce("sound", &["on"]).error_code, 0);
    }
    assert_eq!(broker.count("panics"), 1);
}
