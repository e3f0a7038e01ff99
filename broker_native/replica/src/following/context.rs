//! What the threads of all followers share: settings, the throttle, this broker's registration, a count of bytes.
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use super::exchange::Identity;
use crate::throttle::Throttle;
use pylog_settings::inter_broker::ClientTexts;

/// How a follower fetches. Names are Kafka's.
#[derive(Debug, Clone)]
pub struct FollowerSettings {
    /// This broker.
    pub node_id: i32,
    /// `num.replica.fetchers`: threads for each leader.
    pub fetchers: usize,
    /// `replica.fetch.wait.max.ms`.
    pub wait_max_ms: i32,
    /// `replica.fetch.max.bytes`.
    pub partition_max_bytes: i32,
    /// `replica.fetch.response.max.bytes`.
    pub response_max_bytes: i32,
    /// `replica.fetch.backoff.ms`.
    pub backoff_max_ms: u64,
    /// `replica.socket.timeout.ms`.
    pub socket_timeout_ms: u64,
    /// How leaders are reached.
    pub client: ClientTexts,
}

/// What the threads share.
pub struct FollowerContext {
    /// As the broker was started.
    pub settings: FollowerSettings,
    /// For partitions that are slowed down.
    pub throttle: Throttle,
    epoch: AtomicI64,
    bytes: AtomicU64,
    began: Instant,
}

impl FollowerContext {
    /// Of a broker that is not registered yet.
    pub fn new(settings: FollowerSettings) -> Self {
        Self {
            settings,
            throttle: Throttle::default(),
            epoch: AtomicI64::new(-1),
            bytes: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// Monotonic milliseconds.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// This broker and its registration.
    pub fn identity(&self) -> Identity {
        Identity { id: self.settings.node_id, epoch: self.epoch.load(Ordering::Acquire) }
    }

    /// Counts bytes of records that were copied.
    pub fn counted(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of records that were copied.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// This broker is registered under `epoch`.
    pub fn registered(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Release);
    }
}
