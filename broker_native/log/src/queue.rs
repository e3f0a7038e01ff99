//! Lines that wait for the program that hosts the broker. [`Queue::put`] never waits; one thread takes the lines out.
//!
//! Bounded: a line for which there is no room is dropped and counted, and the next batch says how many were. Some room is for errors only.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing::Level;

use crate::record::Record;

/// Most lines that wait.
pub const RECORDS_MAX: usize = 4_096;
/// How many of these are for errors only.
pub const ERRORS_RESERVED: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Record>,
    /// Lines that were dropped since the last batch.
    dropped: u64,
    /// Lines that were put in since the start.
    put: u64,
    /// How many of these are written.
    done: u64,
    closed: bool,
}

/// The lines that one call of [`Queue::take`] takes out.
#[derive(Debug)]
pub struct Batch {
    /// The lines, oldest first.
    pub records: Vec<Record>,
    /// How many lines were dropped since the last batch, because the queue was full or closed.
    pub dropped: u64,
    /// Whether the queue is closed: no line comes after these.
    pub is_last: bool,
}

impl Queue {
    /// Puts a line in, or drops it and counts it.
    pub fn put(&self, record: Record) {
        let room = if record.level == Level::ERROR { RECORDS_MAX } else { RECORDS_MAX - ERRORS_RESERVED };
        let mut state = self.state.lock();
        if state.closed || state.waiting.len() >= room {
            state.dropped += 1;
            return;
        }
        state.waiting.push_back(record);
        state.put += 1;
        self.arrived.notify_one();
    }

    /// Takes all lines. Waits until `deadline` when there is none.
    pub fn take(&self, deadline: Instant) -> Batch {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.closed {
            if self.arrived.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        Batch {
            records: state.waiting.drain(..).collect(),
            dropped: std::mem::take(&mut state.dropped),
            is_last: state.closed,
        }
    }

    /// Reports that `count` of the lines that were taken are written.
    pub fn done(&self, count: usize) {
        let mut state = self.state.lock();
        state.done += count as u64;
        self.written.notify_all();
    }

    /// Waits until all lines that were put in so far are written. Returns whether they are; `timeout` ends the wait.
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

    /// Closes the queue: it takes no more lines, and those in it are the last batch.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
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
    fn a_full_queue_counts_what_it_drops_and_keeps_room_for_errors() {
        let queue = Queue::default();
        (0..RECORDS_MAX).for_each(|_| queue.put(record(Level::WARN)));
        (0..ERRORS_RESERVED + 1).for_each(|_| queue.put(record(Level::ERROR)));
        let batch = queue.take(Instant::now());
        assert_eq!(batch.records.len(), RECORDS_MAX);
        assert_eq!(batch.dropped, ERRORS_RESERVED as u64 + 1);
        assert_eq!(queue.take(Instant::now()).dropped, 0, "each is counted once");
    }

    #[test]
    fn a_flush_waits_for_what_was_taken_and_not_yet_written() {
        let queue = Arc::new(Queue::default());
        queue.put(record(Level::WARN));
        let count = queue.take(Instant::now()).records.len();
        assert!(!queue.flush(Duration::from_millis(1)));
        let other = Arc::clone(&queue);
        let flushing = std::thread::spawn(move || other.flush(Duration::from_secs(60)));
        queue.done(count);
        assert!(flushing.join().unwrap());
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
        let queue = Queue::default();
        queue.put(record(Level::WARN));
        queue.close();
        queue.put(record(Level::WARN));
        let batch = queue.take(Instant::now() + Duration::from_secs(60));
        assert_eq!((batch.records.len(), batch.dropped, batch.is_last), (1, 1, true));
    }
}
