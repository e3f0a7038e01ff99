//! Lines that wait for their host. Who puts one in never waits; one thread takes them out.
//!
//! Bounded: a line that finds no room is counted, and the count comes out with the next ones. The last places are for errors.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing::Level;

use crate::record::Record;

/// Most lines that wait.
pub const RECORDS_MAX: usize = 4_096;
/// Of these, so many are for errors only.
pub const ERRORS_RESERVED: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    came: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Record>,
    lost: u64,
    /// Lines that came since the start, those that are lost left out.
    put: u64,
    /// Of these, those that are written.
    done: u64,
    closed: bool,
}

/// What one thread takes out at once.
#[derive(Debug)]
pub struct Batch {
    /// The lines, oldest first.
    pub records: Vec<Record>,
    /// How many lines found no room since the last batch.
    pub lost: u64,
    /// Nothing more will come.
    pub is_last: bool,
}

impl Queue {
    /// Puts a line in, or counts it.
    pub fn put(&self, record: Record) {
        let room = if record.level == Level::ERROR { RECORDS_MAX } else { RECORDS_MAX - ERRORS_RESERVED };
        let mut state = self.state.lock();
        if state.closed || state.waiting.len() >= room {
            state.lost += 1;
            return;
        }
        state.waiting.push_back(record);
        state.put += 1;
        self.came.notify_one();
    }

    /// Takes all that waits; waits until `deadline` when there is nothing.
    pub fn take(&self, deadline: Instant) -> Batch {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.closed {
            if self.came.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        Batch {
            records: state.waiting.drain(..).collect(),
            lost: std::mem::take(&mut state.lost),
            is_last: state.closed,
        }
    }

    /// So many lines that were taken are written.
    pub fn done(&self, count: usize) {
        let mut state = self.state.lock();
        state.done += count as u64;
        self.written.notify_all();
    }

    /// Waits until all that is in it now is written, `timeout` at most; whether it is.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        let until = state.put;
        while state.done < until {
            if self.written.wait_until(&mut state, deadline).timed_out() {
                return state.done >= until;
            }
        }
        true
    }

    /// Takes no more lines: what waits is the last batch.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.came.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::loggers;

    fn record(level: Level) -> Record {
        Record {
            time: SystemTime::now(),
            level,
            logger: loggers::BROKER,
            broker: None,
            thread: None,
            file: "",
            line: 0,
            message: String::new(),
            fields: Vec::new(),
        }
    }

    #[test]
    fn a_full_queue_counts_what_it_does_not_take_and_keeps_places_for_errors() {
        let queue = Queue::default();
        (0..RECORDS_MAX).for_each(|_| queue.put(record(Level::WARN)));
        (0..ERRORS_RESERVED + 1).for_each(|_| queue.put(record(Level::ERROR)));
        let batch = queue.take(Instant::now());
        assert_eq!(batch.records.len(), RECORDS_MAX);
        assert_eq!(batch.lost, ERRORS_RESERVED as u64 + 1);
        assert_eq!(queue.take(Instant::now()).lost, 0, "each is counted once");
    }

    #[test]
    fn a_flush_waits_for_what_was_taken_and_not_yet_written() {
        let queue = Arc::new(Queue::default());
        queue.put(record(Level::WARN));
        let taken = queue.take(Instant::now()).records.len();
        assert!(!queue.flush(Duration::from_millis(1)));
        let other = Arc::clone(&queue);
        let flushing = std::thread::spawn(move || other.flush(Duration::from_secs(60)));
        queue.done(taken);
        assert!(flushing.join().unwrap());
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
        let queue = Queue::default();
        queue.put(record(Level::WARN));
        queue.close();
        queue.put(record(Level::WARN));
        let batch = queue.take(Instant::now() + Duration::from_secs(60));
        assert_eq!((batch.records.len(), batch.lost, batch.is_last), (1, 1, true));
    }
}
