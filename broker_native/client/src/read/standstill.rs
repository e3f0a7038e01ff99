//! What a reader does when an answer brings nothing new: whether it may go on behind a gap, how long it waits, when it gives up.
//!
//! Silence proves nothing. A broker that gives no batch although records are visible further on may have lost them, or may lie;
//! only a batch that is stored further on proves that nothing lies before it (compaction took it, or it holds no records). A
//! reader of committed data is not given a batch that begins at the last stable offset, so the log is looked at as it is stored.
use std::time::{Duration, Instant};

use super::fetcher::{Fetched, Fetcher};
use crate::config::millis;
use crate::error::Result;

/// One stretch of answers without progress. Not for several threads.
#[derive(Debug)]
pub(crate) struct Standstill {
    since: Instant,
    /// Answers without progress since then.
    answers: u32,
}

impl Standstill {
    /// Begins now, with progress.
    pub fn new() -> Self {
        Self { since: Instant::now(), answers: 0 }
    }

    /// Something came.
    pub fn end(&mut self) {
        *self = Self::new();
    }

    /// Nothing came for a range that ends at `end`, or that has no end. The offset before which nothing is stored, when there
    /// is one; else the next fetch may be sent, after a pause for a broker that answers too soon.
    ///
    /// # Errors
    /// `TIMED_OUT` after `default.api.timeout.ms`, for a range with an end; those of [`Fetcher::fetch`].
    pub fn look(
        &mut self,
        fetcher: &mut Fetcher,
        fetched: &Fetched,
        end: Option<i64>,
    ) -> Result<Option<i64>> {
        let position = fetcher.position();
        let behind = fetched.visible_end > position;
        if let (Some(end), true) = (end, behind) {
            let stored = fetcher.first_stored()?;
            let proven = stored.map(|stored| stored.min(fetched.visible_end).min(end));
            if proven.is_some_and(|proven| proven > position) {
                return Ok(proven);
            }
        }
        if let Some(end) = end.filter(|_| self.since.elapsed() > fetcher.timeout()) {
            return Err(fetcher.short(fetched.visible_end, end));
        }
        fetcher.pause(self.pause(fetcher, behind));
        self.answers += 1;
        Ok(None)
    }

    /// A broker that has nothing yet answers after `fetch.max.wait.ms`, and needs no pause.
    fn pause(&self, fetcher: &Fetcher, behind: bool) -> Duration {
        let settings = fetcher.settings();
        let backoff = settings.backoff(self.answers);
        let least = if behind { backoff } else { backoff.min(millis(settings.fetch_max_wait_ms)) };
        least.saturating_sub(fetcher.took())
    }
}
