//! How long requests take, from when they are handed to their handler until their reply is ready: a histogram for each API.
//!
//! What a request waits for counts: a Fetch for records, a Produce with `acks=all` for the other replicas. What it takes to arrive and to
//! be sent does not. A request whose connection ends before is not counted.
use std::time::Duration;

use serde::Serialize;

use crate::metrics::Number;
use pylog_wire::ApiKey;
use pylog_wire::api::TABLE;

/// Upper bounds of the buckets, in microseconds; a last bucket has none.
const BOUNDS_US: [u64; 11] =
    [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000];

#[derive(Debug, Default)]
struct Histogram {
    buckets: [Number; BOUNDS_US.len() + 1],
    sum_us: Number,
}

/// The histograms of all APIs. Relaxed atomics: each number is right, two of them may be a moment apart.
#[derive(Debug)]
pub struct RequestTimes {
    /// By the number of the API.
    by_code: Box<[Histogram]>,
}

/// The requests of one API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiTimes {
    /// Kafka's name of the API.
    pub api: &'static str,
    /// How many took up to so many microseconds, and longer than the bucket before; without a bound at the end.
    pub buckets: Vec<(Option<u64>, u64)>,
    /// The sum of their times, in microseconds.
    pub sum_us: u64,
}

impl Default for RequestTimes {
    fn default() -> Self {
        let codes = TABLE.iter().map(|info| info.key.code()).max().unwrap_or(0);
        Self { by_code: (0..=codes).map(|_| Histogram::default()).collect() }
    }
}

impl RequestTimes {
    /// A request of `api` took `time`.
    pub fn observe(&self, api: ApiKey, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let place = usize::try_from(api.code()).unwrap_or(usize::MAX);
        if let Some(histogram) = self.by_code.get(place) {
            let bucket = BOUNDS_US.partition_point(|&bound| bound < us);
            histogram.buckets[bucket].increment();
            histogram.sum_us.add(us);
        }
    }

    /// The APIs that were asked for, in the order of their numbers.
    pub fn snapshot(&self) -> Vec<ApiTimes> {
        let bounds = || BOUNDS_US.into_iter().map(Some).chain([None]);
        let of = |(api, histogram): (ApiKey, &Histogram)| ApiTimes {
            api: api.name(),
            buckets: bounds().zip(histogram.buckets.iter().map(Number::get)).collect(),
            sum_us: histogram.sum_us.get(),
        };
        let known = TABLE
            .iter()
            .filter_map(|info| Some((info.key, self.by_code.get(usize::try_from(info.key.code()).ok()?)?)));
        known.map(of).filter(|times| times.buckets.iter().any(|&(_, count)| count > 0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_in_the_first_bucket_whose_bound_it_does_not_pass() {
        let times = RequestTimes::default();
        for us in [0, 100, 101, 10_000_000, 10_000_001] {
            times.observe(ApiKey::Fetch, Duration::from_micros(us));
        }
        let [fetch] = &times.snapshot()[..] else { panic!("only Fetch was asked for") };
        assert_eq!((fetch.api, fetch.sum_us), ("Fetch", 20_000_202));
        let counts: Vec<_> = fetch.buckets.iter().map(|&(_, count)| count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(fetch.buckets.last(), Some(&(None, 1)));
    }

    #[test]
    fn each_api_of_the_table_has_a_histogram_of_its_own() {
        let times = RequestTimes::default();
        TABLE.iter().for_each(|info| times.observe(info.key, Duration::from_micros(1)));
        let shown: Vec<_> = times.snapshot().iter().map(|each| (each.api, each.sum_us)).collect();
        assert_eq!(shown, TABLE.iter().map(|info| (info.key.name(), 1)).collect::<Vec<_>>());
    }
}
