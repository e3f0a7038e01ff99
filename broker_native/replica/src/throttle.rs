//! How fast replicas may be copied: `leader.replication.throttled.rate` for those that a broker leads,
//! `follower.replication.throttled.rate` for those that it follows.
//!
//! Bytes that were copied are owed and paid back by the time. While more than a second's worth is owed, nothing more is copied
//! of partitions whose topic lists them. Those that are in sync always are: a throttle must not drive a replica out of the ISR.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Bytes in a second; shared by all threads.
#[derive(Debug)]
pub struct Throttle {
    began: Instant,
    on: AtomicBool,
    state: Mutex<ThrottleState>,
}

#[derive(Debug, Default)]
struct ThrottleState {
    /// `None`: no limit.
    rate: Option<u64>,
    owed: u64,
    at_ms: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { began: Instant::now(), on: AtomicBool::new(false), state: Mutex::default() }
    }
}

impl Throttle {
    /// A throttle of `bytes_per_second`, as in [`Throttle::set`].
    pub fn new(bytes_per_second: i64) -> Self {
        let throttle = Self::default();
        throttle.set(bytes_per_second);
        throttle
    }

    /// Sets the bytes per second from now on; `i64::MAX` or a negative number is no limit.
    pub fn set(&self, bytes_per_second: i64) {
        let rate = u64::try_from(bytes_per_second).ok().filter(|_| bytes_per_second < i64::MAX);
        self.on.store(rate.is_some(), Ordering::Relaxed);
        self.state.lock().set(rate, self.now_ms());
    }

    /// Whether there is a limit at all.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Counts bytes that were copied.
    pub fn record(&self, bytes: usize) {
        self.state.lock().record(bytes, self.now_ms());
    }

    /// Whether nothing more may be copied now.
    pub fn is_exceeded(&self) -> bool {
        self.is_on() && self.state.lock().is_exceeded(self.now_ms())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl ThrottleState {
    fn set(&mut self, rate: Option<u64>, now_ms: u64) {
        if self.rate != rate {
            *self = Self { rate, owed: 0, at_ms: now_ms };
        }
    }

    fn record(&mut self, bytes: usize, now_ms: u64) {
        if let Some(rate) = self.rate {
            self.pay(rate, now_ms);
            self.owed = self.owed.saturating_add(bytes as u64);
        }
    }

    fn is_exceeded(&mut self, now_ms: u64) -> bool {
        let Some(rate) = self.rate else { return false };
        self.pay(rate, now_ms);
        self.owed > rate
    }

    fn pay(&mut self, rate: u64, now_ms: u64) {
        let paid = now_ms.saturating_sub(self.at_ms).saturating_mul(rate) / 1_000;
        // Time that pays for less than a byte is kept.
        if paid > 0 {
            self.owed = self.owed.saturating_sub(paid);
            self.at_ms = now_ms;
        }
    }
}

/// Whether `list` (`*`, or `partition:broker,...`) names this replica.
pub fn names(list: &str, partition: i32, broker_id: i32) -> bool {
    let is_this = |one: &str| {
        let (number, id) = one.split_once(':')?;
        Some(number.trim().parse() == Ok(partition) && id.trim().parse() == Ok(broker_id))
    };
    list.trim() == "*" || list.split(',').any(|one| is_this(one).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttled(rate: u64) -> ThrottleState {
        ThrottleState { rate: Some(rate), ..ThrottleState::default() }
    }

    #[test]
    fn without_a_rate_nothing_is_slowed_down() {
        let throttle = Throttle::default();
        throttle.record(usize::MAX);
        assert!(!throttle.is_on() && !throttle.is_exceeded());
        throttle.set(i64::MAX);
        assert!(!throttle.is_on());
    }

    #[test]
    fn in_the_long_run_no_more_comes_than_the_rate_allows() {
        let mut state = throttled(1_000);
        let (mut came, mut now_ms) = (0, 0);
        while now_ms < 100_000 {
            if !state.is_exceeded(now_ms) {
                state.record(700, now_ms);
                came += 700;
            }
            now_ms += 7;
        }
        assert!((98_000..=103_000).contains(&came), "{came} bytes in 100 s");
    }

    #[test]
    fn a_debt_is_paid_before_more_is_given() {
        let mut state = throttled(100);
        state.record(250, 0);
        assert!(state.is_exceeded(1_000));
        assert!(!state.is_exceeded(2_000));
    }

    #[test]
    fn a_rate_of_zero_stops_what_is_throttled_after_the_first_byte() {
        let mut state = throttled(0);
        assert!(!state.is_exceeded(0));
        state.record(1, 0);
        assert!(state.is_exceeded(1_000_000));
    }

    #[test]
    fn a_changed_rate_forgets_the_debt_and_the_same_one_does_not() {
        let throttle = Throttle::default();
        throttle.set(1);
        throttle.record(1_000_000);
        throttle.set(1);
        assert!(throttle.is_on() && throttle.is_exceeded());
        throttle.set(100);
        assert!(throttle.is_on() && !throttle.is_exceeded());
    }

    #[test]
    fn replicas_are_named_by_partition_and_broker_or_all_at_once() {
        assert!(names("*", 3, 1));
        assert!(names("0:1, 3:1", 3, 1));
        assert!(!names("0:1,3:2", 3, 1));
        assert!(!names("", 3, 1));
        assert!(!names("nonsense", 3, 1));
    }
}
