//! The threads that run fdatasync for logs with a due flush. One flush serves every producer that waits for the log
//! (group commit): while one runs, the next one gathers.
//!
//! A log is queued at most once per due time it asked for; a flush that finds nothing unflushed costs nothing.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use pylog_log::broker::carried;

/// What is flushed: a partition's log.
pub(super) trait Flushable: Send + Sync {
    /// Syncs all that is written. Producers that wait, and the next append, get its error.
    fn flush_when_due(&self);

    /// The flush panicked: what it synced is unknown.
    fn flush_panicked(&self);
}

/// The threads, started when the first log is queued.
pub(super) struct Flusher {
    threads: usize,
    state: Arc<FlushQueue>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct FlushQueue {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    due: BinaryHeap<Reverse<Due>>,
    /// Breaks ties, so that the queue is fair.
    asked: u64,
    stopped: bool,
}

struct Due {
    when: Instant,
    number: u64,
    log: Weak<dyn Flushable>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.when, self.number).cmp(&(other.when, other.number))
    }
}

impl Flusher {
    /// `threads` = 0: nothing is ever queued, the caller flushes.
    pub fn new(threads: usize) -> Self {
        Self { threads, state: Arc::default(), running: Mutex::default() }
    }

    /// Has `log` flushed after `delay`. `false` when the caller must do it: no threads, or stopped.
    pub fn schedule(&self, log: Weak<dyn Flushable>, delay: Duration) -> bool {
        if self.threads == 0 {
            return false;
        }
        let mut queue = self.state.queue.lock();
        if queue.stopped {
            return false;
        }
        queue.asked += 1;
        let number = queue.asked;
        queue.due.push(Reverse(Due { when: Instant::now() + delay, number, log }));
        drop(queue);
        self.state.wake.notify_one();
        self.start()
    }

    /// Starts the threads once; `false` when the machine gives none.
    fn start(&self) -> bool {
        let mut running = self.running.lock();
        if running.is_empty() {
            for i in 0..self.threads {
                let state = self.state.clone();
                let thread = std::thread::Builder::new().name(format!("log-flush-{i}"));
                running.extend(thread.spawn(carried(move || state.work())));
            }
        }
        !running.is_empty()
    }

    /// Ends the threads after the flush they are in. Logs that are queued are not flushed.
    pub fn stop(&self) {
        self.state.queue.lock().stopped = true;
        self.state.wake.notify_all();
        for thread in self.running.lock().drain(..) {
            // A flusher that drops the last reference to its manager must not wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl FlushQueue {
    fn work(&self) {
        while let Some(log) = self.next() {
            let Some(log) = log.upgrade() else { continue };
            // What it synced is unknown then, as after a failed sync; the other logs go on.
            if catch_unwind(AssertUnwindSafe(|| log.flush_when_due())).is_err() {
                log.flush_panicked();
            }
        }
    }

    /// Waits for a log to become due; `None` when stopped.
    fn next(&self) -> Option<Weak<dyn Flushable>> {
        let mut queue = self.queue.lock();
        loop {
            if queue.stopped {
                return None;
            }
            let now = Instant::now();
            match queue.due.peek() {
                Some(Reverse(due)) if due.when <= now => return queue.due.pop().map(|Reverse(due)| due.log),
                Some(Reverse(due)) => {
                    let when = due.when;
                    self.wake.wait_until(&mut queue, when);
                }
                None => self.wake.wait(&mut queue),
            }
        }
    }
}

/// A delay that is never waited for longer than Kafka's "never".
pub(super) fn delay_of(ms: i64) -> Duration {
    const NEVER: Duration = Duration::from_secs(/* 10 years */ 10 * 365 * 86_400);
    u64::try_from(ms).map_or(Duration::ZERO, |ms| Duration::from_millis(ms).min(NEVER))
}
