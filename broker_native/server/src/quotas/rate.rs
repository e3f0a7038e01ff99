//! A rate over the last seconds, and how long somebody must pause until it is within a limit. Pure.
//!
//! As Kafka's `Rate` over `SampledStat`: the last `samples` windows are kept, each of `window_ms`; what was not observed yet counts as
//! windows without use, so that the first request of a client is not measured over an instant.
use std::collections::VecDeque;

/// How long is measured.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// How many windows are kept (`quota.window.num`).
    pub samples: u32,
    /// How long one is (`quota.window.size.seconds`).
    pub window_ms: i64,
}

impl Windows {
    /// How long use counts.
    pub fn all_ms(self) -> i64 {
        i64::from(self.samples) * self.window_ms
    }
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    began_ms: i64,
    last_ms: i64,
    sum: f64,
}

/// What somebody used.
#[derive(Debug, Default)]
pub struct Rate {
    samples: VecDeque<Sample>,
}

impl Rate {
    /// Adds `amount` of use.
    pub fn record(&mut self, amount: f64, windows: Windows, now_ms: i64) {
        self.forget_old(windows, now_ms);
        match self.samples.back_mut() {
            Some(newest) if now_ms - newest.began_ms < windows.window_ms => {
                newest.sum += amount;
                newest.last_ms = now_ms;
            }
            _ => self.samples.push_back(Sample { began_ms: now_ms, last_ms: now_ms, sum: amount }),
        }
    }

    /// How long to pause, in milliseconds, until the rate is down to `limit` a second, if `more` is used now as well; 0 when it is
    /// within the limit.
    pub fn pause_ms(&mut self, more: f64, limit: f64, windows: Windows, now_ms: i64) -> i64 {
        self.forget_old(windows, now_ms);
        let measured_ms = self.measured_ms(windows, now_ms);
        let used = self.samples.iter().map(|sample| sample.sum).sum::<f64>() + more;
        let rate = used / (measured_ms as f64 / 1000.0);
        if rate <= limit {
            return 0;
        }
        // Infinite for a limit of 0: as long as a time can be.
        ((rate - limit) / limit * measured_ms as f64).round() as i64
    }

    /// Whether nothing of it counts any more.
    pub fn is_over(&self, windows: Windows, now_ms: i64) -> bool {
        self.samples.back().is_none_or(|newest| is_old(newest, windows, now_ms))
    }

    fn forget_old(&mut self, windows: Windows, now_ms: i64) {
        while self.samples.front().is_some_and(|oldest| is_old(oldest, windows, now_ms)) {
            self.samples.pop_front();
        }
    }

    /// The time that the samples stand for.
    fn measured_ms(&self, windows: Windows, now_ms: i64) -> i64 {
        let since = now_ms - self.samples.front().map_or(now_ms, |oldest| oldest.began_ms);
        let whole = since / windows.window_ms;
        let least = i64::from(windows.samples) - 1;
        (since + (least - whole).max(0) * windows.window_ms).max(1)
    }
}

fn is_old(sample: &Sample, windows: Windows, now_ms: i64) -> bool {
    now_ms - sample.last_ms >= windows.all_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOWS: Windows = Windows { samples: 11, window_ms: 1000 };

    #[test]
    fn a_first_burst_of_ten_seconds_worth_is_within_the_limit_and_a_byte_more_is_not() {
        let mut rate = Rate::default();
        assert_eq!(rate.pause_ms(10_000.0, 1000.0, WINDOWS, 5), 0);
        assert!(rate.pause_ms(10_002.0, 1000.0, WINDOWS, 5) > 0);
    }

    #[test]
    fn the_pause_is_the_time_after_which_the_rate_is_the_limit() {
        let mut rate = Rate::default();
        rate.record(20_000.0, WINDOWS, 0);
        // 20,000 in 10 s are 2,000 a second: at 1,000 a second they take 10 s more.
        assert_eq!(rate.pause_ms(0.0, 1000.0, WINDOWS, 0), 10_000);
        assert_eq!(rate.pause_ms(0.0, 1000.0, WINDOWS, 10_000), 10_000);
        assert_eq!(rate.pause_ms(0.0, 1000.0, WINDOWS, 11_000), 0);
    }

    #[test]
    fn what_is_older_than_all_windows_does_not_count() {
        let mut rate = Rate::default();
        rate.record(1e9, WINDOWS, 0);
        assert!(!rate.is_over(WINDOWS, 10_999));
        assert!(rate.is_over(WINDOWS, 11_000));
        assert_eq!(rate.pause_ms(1.0, 1.0, WINDOWS, 11_000), 0);
    }

    #[test]
    fn a_limit_of_nothing_pauses_as_long_as_can_be() {
        assert_eq!(Rate::default().pause_ms(1.0, 0.0, WINDOWS, 0), i64::MAX);
    }

    proptest! {
        /// Windows without use count as measured, so each burst after a long pause has ten of them free, as in Kafka: at worst a client
        /// gets twice its limit in the long run.
        #[test]
        fn who_pauses_as_asked_stays_within_twice_the_limit(
            amounts in prop::collection::vec(1.0..50_000.0f64, 50..200),
            limit in 100.0..5_000.0f64,
        ) {
            let (mut rate, mut now_ms, mut used) = (Rate::default(), 0, 0.0);
            for amount in &amounts {
                rate.record(*amount, WINDOWS, now_ms);
                used += amount;
                now_ms += rate.pause_ms(0.0, limit, WINDOWS, now_ms) + 1;
            }
            let burst = limit * 11.0 + 50_000.0;
            prop_assert!(used <= 2.0 * limit * now_ms as f64 / 1000.0 + burst, "{used} in {now_ms} ms");
        }

        /// Few samples are kept, however often something is recorded.
        #[test]
        fn no_more_samples_are_kept_than_windows(steps in prop::collection::vec(0i64..3_000, 0..500)) {
            let (mut rate, mut now_ms) = (Rate::default(), 0);
            for step in steps {
                now_ms += step;
                rate.record(1.0, WINDOWS, now_ms);
                prop_assert!(rate.samples.len() <= 13, "{}", rate.samples.len());
            }
        }
    }
}
