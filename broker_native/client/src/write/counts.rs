//! How many rows a writer took, by topic and by window of their timestamps: what an audit compares the log with. No socket, no lock.
//!
//! Rows mostly come in the order of time, so all rows of one topic and window that follow each other are one run, and a row costs two
//! comparisons. Windows begin at multiples of their length since 1970.
use std::collections::BTreeMap;

use crate::error::{ClientError, Result};

/// Most windows that are counted until they are taken: a write whose rows lie in more is refused.
pub const WINDOWS_MAX: usize = 100_000;

/// Rows of one topic in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Topic.
    pub topic: String,
    /// Where the window begins, in milliseconds since the epoch.
    pub start_ms: i64,
    /// How many.
    pub records: u64,
}

/// The counters of one writer.
#[derive(Debug)]
pub struct Counts {
    window_ms: i64,
    /// By the writer's handle of the topic, and the window's start.
    windows: BTreeMap<(usize, i64), u64>,
    names: BTreeMap<usize, String>,
    run: Option<Run>,
}

/// Rows that came one after the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    topic: usize,
    start_ms: i64,
    last_ms: i64,
    records: u64,
}

impl Counts {
    /// Nothing counted, in windows of `window_ms`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for windows shorter than a millisecond.
    pub fn new(window_ms: i64) -> Result<Self> {
        if window_ms < 1 {
            return Err(ClientError::invalid("a window of counts has at least one millisecond"));
        }
        Ok(Self { window_ms, windows: BTreeMap::new(), names: BTreeMap::new(), run: None })
    }

    /// Counts a row of the topic that the writer knows by the handle `topic`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there are more than [`WINDOWS_MAX`] windows.
    #[inline]
    pub fn add(&mut self, topic: usize, name: &str, timestamp_ms: i64) -> Result<()> {
        match &mut self.run {
            Some(run)
                if run.topic == topic && run.start_ms <= timestamp_ms && timestamp_ms <= run.last_ms =>
            {
                run.records += 1;
                Ok(())
            }
            _ => self.begin_run(topic, name, timestamp_ms),
        }
    }

    #[cold]
    fn begin_run(&mut self, topic: usize, name: &str, timestamp_ms: i64) -> Result<()> {
        self.end_run()?;
        self.names.entry(topic).or_insert_with(|| name.to_owned());
        let start_ms = timestamp_ms.div_euclid(self.window_ms).saturating_mul(self.window_ms);
        let last_ms = start_ms.saturating_add(self.window_ms - 1);
        self.run = Some(Run { topic, start_ms, last_ms, records: 1 });
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let key = (run.topic, run.start_ms);
        if self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&key) {
            return Err(ClientError::invalid(format!(
                "the rows lie in more than {WINDOWS_MAX} windows of {} ms that are counted for the audit; make the windows longer \
                 (auditWindow)",
                self.window_ms
            )));
        }
        *self.windows.entry(key).or_insert(0) += run.records;
        Ok(())
    }

    /// What was counted since the last call, by topic in the order of its first row, and by window.
    ///
    /// # Errors
    /// As [`Counts::add`].
    pub fn take(&mut self) -> Result<Vec<Counted>> {
        self.end_run()?;
        let counted = std::mem::take(&mut self.windows).into_iter();
        let named = |((topic, start_ms), records)| {
            Some(Counted { topic: self.names.get(&topic)?.clone(), start_ms, records })
        };
        Ok(counted.filter_map(named).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn counted(topic: &str, start_ms: i64, records: u64) -> Counted {
        Counted { topic: topic.to_owned(), start_ms, records }
    }

    #[test]
    fn every_row_is_counted_in_the_window_of_its_time_whatever_the_order() {
        let mut counts = Counts::new(1000).unwrap();
        for (topic, name, time) in [
            (0, "a", 999),
            (0, "a", 1000),
            (1, "b", 1999),
            (0, "a", 1999),
            (0, "a", 0),
            (0, "a", -1),
            (0, "a", -1000),
        ] {
            counts.add(topic, name, time).unwrap();
        }
        let all = counts.take().unwrap();
        assert_eq!(
            all,
            [counted("a", -1000, 2), counted("a", 0, 2), counted("a", 1000, 2), counted("b", 1000, 1)]
        );
    }

    #[test]
    fn what_was_taken_is_not_counted_again() {
        let mut counts = Counts::new(60_000).unwrap();
        counts.add(0, "a", 5).unwrap();
        assert_eq!(counts.take().unwrap(), [counted("a", 0, 1)]);
        assert_eq!(counts.take().unwrap(), []);
        counts.add(0, "a", 6).unwrap();
        assert_eq!(counts.take().unwrap(), [counted("a", 0, 1)]);
    }

    #[test]
    fn more_windows_than_the_limit_are_refused_and_times_at_the_ends_of_time_are_not() {
        let mut counts = Counts::new(1).unwrap();
        let most = i64::try_from(WINDOWS_MAX).unwrap();
        for time in 0..most {
            counts.add(0, "a", time).unwrap();
        }
        counts.add(0, "a", 3).unwrap();
        counts.add(0, "a", most + 1).unwrap();
        let refused = counts.add(0, "a", most + 2).unwrap_err();
        assert!(refused.message.contains("auditWindow"), "{}", refused.message);
        assert!(Counts::new(0).is_err());
        let mut counts = Counts::new(7).unwrap();
        for time in [i64::MIN, i64::MAX] {
            counts.add(0, "a", time).unwrap();
        }
        assert_eq!(counts.take().unwrap().len(), 2);
    }
}
