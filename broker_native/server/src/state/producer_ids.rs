//! Ids for idempotent producers, in blocks of which nobody else has any.
//!
//! A broker that is alone reserves blocks of [`BLOCK_IDS`] by a small file that is synced before the first id of a block is
//! handed out, so that a crash wastes ids but never repeats one: they are unique over the life of the data directory.
//!
//! In a cluster the block is asked for ([`Kind::AllocateProducerIds`]), and the next one before the last is used up. Nobody
//! blocks on the answer: a request that finds no id left is answered with a retriable error.
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::decide::{Decider, Kind, ask};
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_storage::disk::{Disk, OpenMode};

/// Ids reserved by one write, as in Kafka.
const BLOCK_IDS: i64 = 1000;
/// In the data directory; holds the first id that was never reserved, in decimal.
const FILE: &str = "producer-ids";
/// Written first, then renamed.
const FILE_TMP: &str = "producer-ids.tmp";
/// No reservation is longer.
const FILE_MAX_BYTES: usize = 32;
/// The next block is asked for when less than this part of a block is left.
const ASK_BELOW: i64 = 10;
/// Pause after a question without an answer before the next one.
const ASK_PAUSE: Duration = Duration::from_millis(200);

/// Why there is no id.
#[derive(Debug, thiserror::Error)]
pub enum NoId {
    /// The reservation could not be read or written durably.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// The next block has been asked for and is not here yet.
    #[error("the next block of producer ids has not arrived yet; try again")]
    Asked,
}

/// The source of ids.
pub struct ProducerIds {
    me: Weak<Self>,
    source: Source,
    block: Mutex<Block>,
}

enum Source {
    File { disk: Arc<dyn Disk>, dir: PathBuf },
    Asked { decider: Arc<dyn Decider>, runtime: OnceLock<Handle> },
}

/// `[next, end)` can be handed out, then `[0, 1)` of `following`; empty until the first is asked for.
#[derive(Default)]
struct Block {
    next: i64,
    end: i64,
    following: Option<(i64, i64)>,
    is_asked: bool,
}

/// The answer to [`Kind::AllocateProducerIds`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allocated {
    first: i64,
    count: i64,
}

impl ProducerIds {
    /// Ids of the data directory `dir`. Touches nothing yet.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Arc<Self> {
        Self::from(Source::File { disk, dir })
    }

    /// Ids of a cluster. Asks nobody before [`ProducerIds::start`].
    pub fn asked(decider: Arc<dyn Decider>) -> Arc<Self> {
        Self::from(Source::Asked { decider, runtime: OnceLock::new() })
    }

    fn from(source: Source) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { me: Weak::clone(me), source, block: Mutex::default() })
    }

    /// Questions are asked in the runtime of the caller from now on; the first one now.
    pub fn start(&self) {
        let Source::Asked { runtime, .. } = &self.source else { return };
        // The first one stays.
        let _ = runtime.set(Handle::current());
        self.ask_unless_asked(&mut self.block.lock());
    }

    /// An id that nobody had before.
    ///
    /// # Errors
    /// [`NoId`].
    pub fn next(&self) -> Result<i64, NoId> {
        let mut block = self.block.lock();
        if block.next == block.end {
            let (next, end) = match (&self.source, block.following.take()) {
                (_, Some(following)) => following,
                (Source::File { disk, dir }, None) => reserve_block(&**disk, dir)?,
                (Source::Asked { .. }, None) => {
                    self.ask_unless_asked(&mut block);
                    return Err(NoId::Asked);
                }
            };
            (block.next, block.end) = (next, end);
        }
        block.next += 1;
        let id = block.next - 1;
        if block.following.is_none() && block.end - block.next < BLOCK_IDS / ASK_BELOW {
            self.ask_unless_asked(&mut block);
        }
        Ok(id)
    }

    fn ask_unless_asked(&self, block: &mut Block) {
        let Source::Asked { decider, runtime } = &self.source else { return };
        let (Some(runtime), Some(me)) = (runtime.get(), self.me.upgrade()) else { return };
        if std::mem::replace(&mut block.is_asked, true) {
            return;
        }
        let decider = Arc::clone(decider);
        runtime.spawn(async move {
            let answer = ask(decider.as_ref(), Kind::AllocateProducerIds, "{}".into(), 0).await;
            let answer = answer.map_err(|error| error.to_string());
            let allocated = answer.and_then(|json| read(&json));
            if let Err(why) = &allocated {
                warn!(target: COORDINATOR, "no producer ids were allocated; asking again: {why}");
                tokio::time::sleep(ASK_PAUSE).await;
            }
            me.take_in(allocated.ok());
        });
    }

    fn take_in(&self, allocated: Option<(i64, i64)>) {
        let mut block = self.block.lock();
        block.is_asked = false;
        if allocated.is_some() {
            block.following = allocated;
        }
    }
}

/// First id, and one past the last.
fn read(json: &str) -> Result<(i64, i64), String> {
    let Allocated { first, count } =
        serde_json::from_str(json).map_err(|error| format!("{json}: {error}"))?;
    let end = first.checked_add(count).filter(|_| first >= 0 && count > 0);
    Ok((first, end.ok_or_else(|| format!("{json} is no block of ids"))?))
}

/// Reserves the next block in the file.
fn reserve_block(disk: &dyn Disk, dir: &std::path::Path) -> io::Result<(i64, i64)> {
    let next = reserved(disk, dir)?;
    let end = next + BLOCK_IDS;
    let tmp = dir.join(FILE_TMP);
    let file = disk.open(&tmp, OpenMode::CreateEmpty)?;
    file.write_all_at(format!("{end}\n").as_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(&tmp, &dir.join(FILE))?;
    disk.sync_dir(dir)?;
    Ok((next, end))
}

/// The first id that was never reserved.
fn reserved(disk: &dyn Disk, dir: &std::path::Path) -> io::Result<i64> {
    let file = match disk.open(&dir.join(FILE), OpenMode::Read) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut text = [0; FILE_MAX_BYTES];
    let len = file.read_at(&mut text, 0)?;
    std::str::from_utf8(text.get(..len).unwrap_or_default())
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} holds no number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_storage::RealDisk;

    #[test]
    fn no_id_comes_twice_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _restart in 0..3 {
            let ids = ProducerIds::new(Arc::new(RealDisk), dir.path().into());
            for _ in 0..BLOCK_IDS + 7 {
                assert!(seen.insert(ids.next().unwrap()));
            }
        }
        assert_eq!(seen.len() as i64, 3 * (BLOCK_IDS + 7));
    }

    #[test]
    fn a_damaged_reservation_is_an_error_not_an_old_id() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "12x").unwrap();
        let ids = ProducerIds::new(Arc::new(RealDisk), dir.path().into());
        let NoId::Disk(error) = ids.next().unwrap_err() else { panic!("nobody is asked") };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    /// Gives out blocks of 150 ids, the first at 5000; refuses while `refuses`.
    #[derive(Default)]
    struct Allocator {
        asked: std::sync::atomic::AtomicI64,
        refuses: std::sync::atomic::AtomicBool,
    }

    impl Decider for Allocator {
        fn ask(&self, question: crate::decide::Question) {
            use std::sync::atomic::Ordering::SeqCst;
            assert_eq!(question.kind, Kind::AllocateProducerIds);
            let nth = self.asked.fetch_add(1, SeqCst);
            if !self.refuses.load(SeqCst) {
                let json = format!(r#"{{"first": {}, "count": 150}}"#, 5000 + 150 * nth);
                question.reply.send(json).unwrap();
            }
        }
    }

    async fn next_soon(ids: &ProducerIds) -> i64 {
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            match ids.next() {
                Ok(id) => return id,
                Err(NoId::Asked) => assert!(std::time::Instant::now() < deadline, "no id comes"),
                Err(error) => panic!("{error}"),
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn in_a_cluster_ids_come_from_allocated_blocks_without_a_gap_or_a_repetition() {
        let allocator = Arc::new(Allocator::default());
        let ids = ProducerIds::asked(Arc::clone(&allocator) as _);
        assert!(matches!(ids.next(), Err(NoId::Asked)), "nobody was asked yet");
        ids.start();
        for expected in 5000..5600 {
            assert_eq!(next_soon(&ids).await, expected);
        }
        assert!(allocator.asked.load(std::sync::atomic::Ordering::SeqCst) <= 5);
    }

    #[tokio::test]
    async fn a_request_without_an_id_fails_and_gets_one_when_the_allocator_is_back() {
        let allocator = Arc::new(Allocator::default());
        allocator.refuses.store(true, std::sync::atomic::Ordering::SeqCst);
        let ids = ProducerIds::asked(Arc::clone(&allocator) as _);
        ids.start();
        tokio::task::yield_now().await;
        assert!(matches!(ids.next(), Err(NoId::Asked)));
        allocator.refuses.store(false, std::sync::atomic::Ordering::SeqCst);
        assert!(next_soon(&ids).await >= 5000);
    }
}
