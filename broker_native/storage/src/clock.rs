//! The clocks of a log, as a trait: tests bring their own.
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of time: of day, for what is written down, and a steady one, for deadlines.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the epoch. An operator, or the network, may set them back or forward.
    fn now_ms(&self) -> i64;

    /// Milliseconds since some moment; nobody sets them.
    fn steady_ms(&self) -> i64;
}

/// When this process first looked.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        since_epoch.map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
    }

    fn steady_ms(&self) -> i64 {
        i64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicI64,
    steady_ms: AtomicI64,
}

impl ManualClock {
    /// A clock showing `now_ms`.
    pub fn at(now_ms: i64) -> Self {
        Self { now_ms: AtomicI64::new(now_ms), steady_ms: AtomicI64::new(0) }
    }

    /// Lets time pass.
    pub fn advance_ms(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::Relaxed);
        self.steady_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn steady_ms(&self) -> i64 {
        self.steady_ms.load(Ordering::Relaxed)
    }
}
