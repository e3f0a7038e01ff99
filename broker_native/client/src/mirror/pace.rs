//! How many bytes a second all lanes of a mirror may take together.
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::net::stop::Stop;

/// A limited mirror fetches about a quarter of a second's bytes at once.
const PARTS: u64 = 4;
/// Not less, however narrow the limit is.
const FETCH_BYTES_MIN: u64 = 64 << 10;

/// A limit, or none.
#[derive(Debug)]
pub struct Pace {
    bytes_per_second: Option<u64>,
    /// When all that was taken so far may have passed.
    free_at: Mutex<Instant>,
}

impl Pace {
    /// At most `bytes_per_second`, more than 0; any number without one.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second, free_at: Mutex::new(Instant::now()) }
    }

    /// The largest fetch where the settings allow `most` bytes.
    pub fn fetch_bytes(&self, most: u64) -> u64 {
        self.bytes_per_second.map_or(most, |rate| most.min((rate / PARTS).max(FETCH_BYTES_MIN)))
    }

    /// Waits until `bytes` that were fetched may have passed, or until stopped.
    pub fn take(&self, bytes: u64, stop: &Stop) {
        let Some(rate) = self.bytes_per_second else { return };
        let now = Instant::now();
        let until = {
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(now) + Duration::from_secs_f64(bytes as f64 / rate as f64);
            *free_at
        };
        stop.pause(until.saturating_duration_since(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_by_all_passes_no_faster_than_the_limit() {
        let pace = Pace::new(Some(1_000_000));
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| pace.take(10_000, &Stop::default())));
            }
        });
        assert!(started.elapsed() >= Duration::from_millis(199), "{:?}", started.elapsed());
        assert_eq!((pace.fetch_bytes(8 << 20), pace.fetch_bytes(1)), (250_000, 1));
    }

    #[test]
    fn without_a_limit_nothing_waits_and_a_stop_ends_a_wait() {
        assert_eq!(Pace::new(None).fetch_bytes(7), 7);
        Pace::new(None).take(u64::MAX, &Stop::default());
        let stop = Stop::default();
        stop.stop();
        Pace::new(Some(1)).take(3_600, &stop);
    }
}
