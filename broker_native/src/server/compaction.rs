//! The threads that compact logs. They start with the listener, and stop in the middle of a cleaning, which then begins
//! anew after the next start.
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::notice::notice;
use super::shared::Shared;
use crate::storage::{Cleaning, Pace};

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
    pub fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let settings = &shared.settings;
        let brake = Arc::new(Brake::new(settings.log_cleaner_io_max_bytes_per_second));
        let mut compaction = Self { brake, threads: Vec::new() };
        let count = if settings.log_cleaner_enable { settings.log_cleaner_threads } else { 0 };
        for i in 0..count {
            let (shared, brake) = (Arc::clone(shared), Arc::clone(&compaction.brake));
            let name = format!("pylog-cleaner-{i}");
            compaction
                .threads
                .push(std::thread::Builder::new().name(name).spawn(move || work(&shared, &brake))?);
        }
        Ok(compaction)
    }

    /// Stops at the next batch.
    pub fn stop(&mut self) {
        self.brake.stop();
        for thread in self.threads.drain(..) {
            // A panic inside was printed by the hook; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(shared: &Shared, brake: &Brake) {
    let memory = shared.settings.cleaner_config();
    let backoff = Duration::from_millis(shared.settings.log_cleaner_backoff_ms);
    while !brake.is_stopped() {
        match shared.logs.clean_dirtiest(&memory, brake) {
            Cleaning::Done(..) => {}
            Cleaning::Nothing | Cleaning::Interrupted(_) => brake.wait(backoff),
            Cleaning::Failed(at, error) => {
                notice(&format!("{at} is not compacted any more until the broker is restarted: {error}"));
            }
        }
    }
}

/// What slows the threads down, and stops them.
struct Brake {
    state: Mutex<State>,
    stopped: Condvar,
    bytes_per_second: f64,
}

struct State {
    stopped: bool,
    /// When what was moved so far may have been moved.
    free_at: Instant,
}

impl Brake {
    fn new(bytes_per_second: f64) -> Self {
        let state = State { stopped: false, free_at: Instant::now() };
        Self {
            state: Mutex::new(state),
            stopped: Condvar::new(),
            bytes_per_second: bytes_per_second.max(1.0),
        }
    }

    fn stop(&self) {
        self.state.lock().stopped = true;
        self.stopped.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    fn wait(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.stopped {
            let until = Instant::now().checked_add(time);
            match until {
                Some(until) => drop(self.stopped.wait_until(&mut state, until)),
                None => self.stopped.wait(&mut state),
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
                self.stopped.wait_until(&mut state, until.min(Instant::now() + LONGEST_PAUSE));
            }
        }
        !state.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_back_and_a_stop_lets_nobody_wait() {
        let brake = Brake::new(10_000.0);
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
        let brake = Brake::new(f64::MAX);
        assert!((0..100_000).all(|_| brake.step(1 << 20)));
        assert!(brake.state.lock().free_at <= Instant::now());
    }
}
