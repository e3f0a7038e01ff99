//! The threads that compact logs. They start with the listener, and stop in the middle of a cleaning, which then begins
//! anew after the next start.
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::background::keep_running;
use crate::settings::Settings;
use pylog_log::broker::carried;
use pylog_log::error;
use pylog_log::loggers::STORAGE;
use pylog_storage::{CleanerConfig, Cleaning, LogManager, Pace};

/// Longest wait for `log.cleaner.io.max.bytes.per.second` before the rate is looked at again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The threads; they stop when [`Compaction::stop`] is called or this is dropped.
pub struct Compaction {
    brake: Arc<Brake>,
    threads: Vec<JoinHandle<()>>,
}

impl Compaction {
    /// Starts `log.cleaner.threads` threads, none with `log.cleaner.enable=false`.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(logs: &Arc<LogManager>, settings: &Settings) -> std::io::Result<Self> {
        let memory = CleanerConfig::from(settings);
        let backoff = Duration::from_millis(settings.log_cleaner_backoff_ms);
        let brake = Arc::new(Brake::new(settings.log_cleaner_io_max_bytes_per_second, backoff));
        let mut compaction = Self { brake, threads: Vec::new() };
        let count = if settings.log_cleaner_enable { settings.log_cleaner_threads } else { 0 };
        for i in 0..count {
            let (logs, brake) = (Arc::clone(logs), Arc::clone(&compaction.brake));
            let name = format!("pylog-cleaner-{i}");
            compaction.threads.push(
                std::thread::Builder::new()
                    .name(name)
                    .spawn(carried(move || keep_running("compaction", || work(&logs, &memory, &brake))))?,
            );
        }
        Ok(compaction)
    }

    /// Sets `log.cleaner.backoff.ms`, also for threads that wait already.
    pub fn set_backoff(&self, backoff: Duration) {
        self.brake.set_backoff(backoff);
    }

    /// Stops at the next batch.
    pub fn stop(&mut self) {
        self.brake.stop();
        for thread in self.threads.drain(..) {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(logs: &LogManager, memory: &CleanerConfig, brake: &Brake) {
    while !brake.is_stopped() {
        match logs.clean_dirtiest(memory, brake) {
            Cleaning::Done(..) => {}
            Cleaning::Nothing | Cleaning::Interrupted(_) => brake.rest(),
            Cleaning::Failed(at, error) => {
                error!(
                    target: STORAGE, partition = %at,
                    "{at} is not compacted any more until the broker is restarted: {error}"
                );
            }
        }
    }
}

/// What slows the threads down, and stops them.
struct Brake {
    state: Mutex<State>,
    changed: Condvar,
    bytes_per_second: f64,
}

struct State {
    stopped: bool,
    /// How long a thread waits that found nothing to do.
    backoff: Duration,
    /// When what was moved so far may have been moved.
    free_at: Instant,
}

impl Brake {
    fn new(bytes_per_second: f64, backoff: Duration) -> Self {
        let state = State { stopped: false, backoff, free_at: Instant::now() };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bytes_per_second: bytes_per_second.max(1.0),
        }
    }

    fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    fn set_backoff(&self, backoff: Duration) {
        self.state.lock().backoff = backoff;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Waits for the back-off as it is now, or becomes meanwhile.
    fn rest(&self) {
        let begun = Instant::now();
        let mut state = self.state.lock();
        while !state.stopped {
            match begun.checked_add(state.backoff) {
                Some(until) if until <= Instant::now() => return,
                Some(until) => drop(self.changed.wait_until(&mut state, until)),
                None => self.changed.wait(&mut state),
            }
        }
    }
}

impl Pace for Brake {
    fn step(&self, bytes: u64) -> bool {
        let cost = bytes as f64 / self.bytes_per_second;
        let mut state = self.state.lock();
        // Below a microsecond the clock costs more than what it would hold back.
        if cost > 1e-6 {
            let now = Instant::now();
            let cost = Duration::try_from_secs_f64(cost).unwrap_or(LONGEST_PAUSE);
            state.free_at = state.free_at.max(now).checked_add(cost).unwrap_or(now);
            let until = state.free_at;
            while !state.stopped && Instant::now() < until {
                self.changed.wait_until(&mut state, until.min(Instant::now() + LONGEST_PAUSE));
            }
        }
        !state.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_shorter_back_off_ends_a_longer_one_that_has_begun() {
        let brake = Brake::new(f64::MAX, HOUR);
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| brake.rest());
            brake.set_backoff(HOUR * 2);
            brake.set_backoff(Duration::ZERO);
            resting.join().unwrap();
            brake.set_backoff(HOUR);
            let resting = scope.spawn(|| brake.rest());
            brake.stop();
            resting.join().unwrap();
        });
    }

    #[test]
    fn a_rate_holds_back_and_a_stop_lets_nobody_wait() {
        let brake = Brake::new(10_000.0, HOUR);
        let begun = Instant::now();
        assert!((0..10).all(|_| brake.step(100)));
        assert!(begun.elapsed() >= Duration::from_millis(90), "{:?}", begun.elapsed());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| brake.step(u64::MAX / 2));
            brake.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(!brake.step(1));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let brake = Brake::new(f64::MAX, HOUR);
        assert!((0..100_000).all(|_| brake.step(1 << 20)));
        assert!(brake.state.lock().free_at <= Instant::now());
    }
}
