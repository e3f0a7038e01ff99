//! What waits for the next client of this process: a worker of Spark's runs one small task after the other, each with a client of its own,
//! and a TLS handshake and a login can take longer than such a task.
//!
//! Only clients that were made to ([`crate::config::Settings::keeping_connections`]) leave connections here and take them from here, and
//! only such as took a handshake or a login. A connection is given to who has the very same settings of security, buffers and time-outs.
//! It is looked at before: one that the broker closed, or that says something unasked, is dropped. What breaks later is tried again by
//! the client as with any connection. At most [`KEPT_MAX`] wait, the oldest goes first, and none is taken after [`KEPT_FOR`]. A forked
//! process begins with none. Thread-safe; who finds the store in use goes without it.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How many of a process may wait.
pub const KEPT_MAX: usize = 16;
/// How long one may wait: less than brokers let a connection be idle (`connections.max.idle.ms`, ten minutes by default).
pub const KEPT_FOR: Duration = Duration::from_secs(60);

/// What waits, the oldest first.
#[derive(Debug)]
pub struct Kept<T>(Mutex<Waiting<T>>);

#[derive(Debug)]
struct Waiting<T> {
    process: u32,
    all: VecDeque<(Instant, T)>,
}

impl<T> Waiting<T> {
    /// Without what waited too long, or in the process that this one was forked from.
    fn fresh(&mut self) -> &mut VecDeque<(Instant, T)> {
        let process = std::process::id();
        if self.process != process {
            self.all.clear();
            self.process = process;
        }
        self.all.retain(|(since, _)| since.elapsed() < KEPT_FOR);
        &mut self.all
    }
}

impl<T> Kept<T> {
    /// Nothing.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Waiting { process: 0, all: VecDeque::new() }))
    }

    /// Lets `item` wait.
    pub fn put(&self, item: T) {
        let Some(mut waiting) = self.0.try_lock() else { return };
        let all = waiting.fresh();
        if all.len() >= KEPT_MAX {
            all.pop_front();
        }
        all.push_back((Instant::now(), item));
    }

    /// Of those that fit, the one that waited least and is still of use; those found useless are dropped.
    pub fn take(&self, fits: impl Fn(&T) -> bool, is_good: impl Fn(&mut T) -> bool) -> Option<T> {
        let mut waiting = self.0.try_lock()?;
        let all = waiting.fresh();
        loop {
            let found = all.iter().rposition(|(_, item)| fits(item))?;
            let (_, mut item) = all.remove(found)?;
            if is_good(&mut item) {
                return Some(item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_waited_least_is_taken_and_useless_ones_are_dropped() {
        let kept = Kept::new();
        [1, 2, 3, 4].into_iter().for_each(|item| kept.put(item));
        assert_eq!(kept.take(|item| item % 2 == 0, |item| *item != 4), Some(2));
        assert_eq!(kept.take(|item| item % 2 == 0, |_| true), None);
        assert_eq!(kept.take(|_| true, |_| true), Some(3));
    }

    #[test]
    fn no_more_than_the_bound_wait_and_the_oldest_goes_first() {
        let kept = Kept::new();
        (0..=KEPT_MAX).for_each(|item| kept.put(item));
        assert_eq!(kept.take(|item| *item == 0, |_| true), None);
        assert_eq!(kept.take(|item| *item == 1, |_| true), Some(1));
    }
}
