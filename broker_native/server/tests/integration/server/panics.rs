//! Panics of the broker itself: the request that met one gets an error, the log that may be half-changed takes nothing more, all others
//! go on.
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pylog_server::call::{Later, Reply, poll_reply};
use pylog_server::settings::Settings;
use pylog_storage::disk::{DirEntry, DiskFile, DiskLock, FileIdentity, OpenMode};
use pylog_storage::{Disk, Durability, RealDisk};
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_topics::CreatableTopic;
use pylog_wire::messages::{CreateTopicsRequest, FetchResponse};

use crate::server::support::{Broker, fetch_request, topic};

/// A record with this in it panics when it is written.
const MISTAKE: &str = "a planted mistake";

/// The disk of this machine, but for [`MISTAKE`] and what is planted.
#[derive(Default, Clone)]
struct Mined(Arc<Planted>);

/// What panics the next time.
#[derive(Default)]
struct Planted {
    /// A sync of a file of topic `mined`.
    sync: AtomicBool,
    /// A look into a file of topic `mined`.
    read: AtomicBool,
    /// The writing of a checkpoint.
    checkpoint: AtomicBool,
    /// How many checkpoints were written.
    checkpoints: AtomicUsize,
}

fn step_on(mine: &AtomicBool) {
    assert!(!mine.swap(false, Ordering::SeqCst), "{MISTAKE}");
}

struct MinedFile {
    file: Arc<dyn DiskFile>,
    planted: Arc<Planted>,
    is_mined: bool,
}

impl Disk for Mined {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let (file, planted) = (RealDisk.open(path, mode)?, Arc::clone(&self.0));
        Ok(Arc::new(MinedFile { file, planted, is_mined: path.to_string_lossy().contains("mined-0") }))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        RealDisk.file_len(path)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        RealDisk.modified_ms(path)
    }

    fn is_link(&self, path: &Path) -> bool {
        RealDisk.is_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        RealDisk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if to.ends_with("recovery-point-offset-checkpoint") {
            step_on(&self.0.checkpoint);
            self.0.checkpoints.fetch_add(1, Ordering::SeqCst);
        }
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
        self.file.write_all_at(bytes, position)
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        if self.is_mined {
            step_on(&self.planted.read);
        }
        self.file.read_at(buf, position)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_mined {
            step_on(&self.planted.sync);
        }
        self.file.sync_data()
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.file.reserve(len)
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.file.drop_cache()
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.file.identity()
    }

    fn as_raw_fd(&self) -> Option<RawFd> {
        self.file.as_raw_fd()
    }
}

#[test]
fn a_panic_while_a_batch_is_appended_is_told_and_ends_that_log_only() {
    let mut broker = Broker::on(Arc::new(Mined::default()), Settings::default());
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

#[test]
fn a_panic_of_a_fetch_that_waited_is_told_and_harms_nobody() {
    let mined = Mined::default();
    let broker = Broker::on(Arc::new(mined.clone()), Settings::default());
    broker.server.apply_topics(vec![topic("mined", 1)]).unwrap();
    let (mut unlucky, mut other) = (broker.client(), broker.client());
    unlucky.send(&fetch_request("mined", 0, /* max_wait_ms */ 60_000, /* min_bytes */ 1), 12, 1);
    broker.wait_for("long_polls", 1);
    mined.0.read.store(true, Ordering::SeqCst);
    assert_eq!(other.produce("mined", &["wakes it"]).error_code, 0);
    let (_, answer): (i32, FetchResponse) = unlucky.receive(12);
    assert_eq!(answer.error_code, ErrorCode::UnknownServerError.code());
    assert!(!mined.0.read.load(Ordering::SeqCst), "something else is wrong");
    assert_eq!(broker.count("panics"), 1);
    for client in [&mut unlucky, &mut other] {
        assert_eq!(client.fetch("mined", 0).high_watermark, 1);
    }
}

#[test]
fn a_panic_of_a_reply_that_no_handler_catches_closes_the_connection_and_is_counted() {
    let broker = Broker::start();
    let mut mistaken: Later = Box::pin(async { panic!("{MISTAKE}") });
    let polled = poll_reply(broker.server.shared(), &mut mistaken, &mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Reply::Close(_))));
    assert_eq!(broker.count("panics"), 1);
}

#[test]
fn a_panic_of_a_sync_ends_that_log_and_those_of_other_topics_are_synced_on() {
    let mined = Mined::default();
    let broker = Broker::on(Arc::new(mined.clone()), Settings::default());
    let specs = ["mined", "sound"].map(|name| {
        let mut spec = topic(name, 1);
        spec.config.durability = Durability::Flushed;
        spec
    });
    broker.server.apply_topics(specs.to_vec()).unwrap();
    let mut client = broker.client();
    mined.0.sync.store(true, Ordering::SeqCst);
    assert_eq!(client.produce("mined", &["not synced"]).error_code, ErrorCode::KafkaStorageError.code());
    for turn in 0..20 {
        assert_eq!(client.produce("sound", &["on"]).error_code, 0, "{turn}");
    }
    assert!(broker.server.close(Duration::from_secs(5)).is_err(), "the stop is not a clean one");
}

#[test]
fn maintenance_goes_on_after_a_panic() {
    let mined = Mined::default();
    let settings = Settings { log_flush_offset_checkpoint_interval_ms: 5, ..Settings::default() };
    let broker = Broker::on(Arc::new(mined.clone()), settings);
    broker.server.apply_topics(vec![topic("sound", 1)]).unwrap();
    let mut client = broker.client();
    mined.0.checkpoint.store(true, Ordering::SeqCst);
    let begins = mined.0.checkpoints.load(Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(30);
    while mined.0.checkpoint.load(Ordering::SeqCst) || mined.0.checkpoints.load(Ordering::SeqCst) == begins {
        assert!(Instant::now() < deadline, "no checkpoint within 30 s");
        assert_eq!(client.produce("sound", &["on"]).error_code, 0);
    }
}
