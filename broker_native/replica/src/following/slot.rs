//! One followed partition as threads share it.
//!
//! Its fetcher works on it under a lock; to let go of it takes the lock once, and from then on no fetcher touches the log.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;

use super::machine::Following;
use super::session::Key;
use pylog_storage::PartitionLog;

/// Not known yet.
const UNKNOWN_LAG: i64 = -1;

/// See the module.
pub struct Slot {
    /// The partition.
    pub key: Key,
    /// The broker that leads it.
    pub leader: i32,
    /// In which epoch.
    pub leader_epoch: i32,
    /// The copy.
    pub log: Arc<PartitionLog>,
    /// `None` once it was let go of.
    following: Mutex<Option<Following>>,
    lag: AtomicI64,
    failed: AtomicBool,
    /// Whether catching up is slowed down.
    throttled: AtomicBool,
}

impl Slot {
    /// A partition to follow from now on.
    pub fn new(key: Key, leader: i32, following: Following, log: Arc<PartitionLog>) -> Self {
        Self {
            key,
            leader,
            leader_epoch: following.leader_epoch(),
            log,
            following: Mutex::new(Some(following)),
            lag: AtomicI64::new(UNKNOWN_LAG),
            failed: AtomicBool::new(false),
            throttled: AtomicBool::new(false),
        }
    }

    /// Works on it unless it was let go of.
    pub fn with<T>(&self, work: impl FnOnce(&mut Following, &PartitionLog) -> T) -> Option<T> {
        let mut following = self.following.lock();
        let following = following.as_mut()?;
        let done = work(following, &self.log);
        self.lag.store(following.lag().unwrap_or(UNKNOWN_LAG), Ordering::Relaxed);
        self.failed.store(following.is_failed(), Ordering::Relaxed);
        Some(done)
    }

    /// No thread works on it when this returns, nor later.
    pub fn let_go(&self) {
        *self.following.lock() = None;
    }

    /// Records that the leader has committed and that are not here; `None` when unknown.
    pub fn lag(&self) -> Option<i64> {
        Some(self.lag.load(Ordering::Relaxed)).filter(|lag| *lag != UNKNOWN_LAG)
    }

    /// See [`Following::is_failed`].
    pub fn is_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether catching up is slowed down.
    pub fn is_throttled(&self) -> bool {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Slows catching up down, or not.
    pub fn throttle(&self, throttled: bool) {
        self.throttled.store(throttled, Ordering::Relaxed);
    }
}
