//! Answers that wait until the records before them are acknowledged, and how long they wait at most.
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::waiting::Sender;
use pylog_wire::ErrorCode;

/// How long an answer waits for the in-sync replicas, as in Kafka (`offsets.commit.timeout.ms`).
pub const COMMIT_TIMEOUT_MS: i64 = 5_000;

/// Answers that wait for the same record, and are sent together.
pub struct Unanswered<R>(Mutex<Vec<(Sender<R>, R)>>);

impl<R> Unanswered<R> {
    /// Answers to be sent.
    pub fn new(replies: Vec<(Sender<R>, R)>) -> Self {
        Self(Mutex::new(replies))
    }

    fn take(&self) -> Vec<(Sender<R>, R)> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Sends them.
    pub fn answer(&self) {
        for (sender, reply) in self.take() {
            // The receiver may have gone away: nobody waits for the answer then.
            let _ = sender.send(Ok(reply));
        }
    }

    /// Drops the answers: the requests are answered NOT_COORDINATOR.
    pub fn forget(&self) {
        drop(self.take());
    }

    /// Answers COORDINATOR_NOT_AVAILABLE: it did not happen in time, but still may.
    fn give_up(&self) {
        for (sender, _reply) in self.take() {
            // The receiver may have gone away: nobody waits for the answer then.
            let _ = sender.send(Err(ErrorCode::CoordinatorNotAvailable));
        }
    }
}

/// All answers that wait, oldest first. Those that were sent meanwhile are removed when they are the oldest.
pub struct CommitTimeouts<R>(Mutex<VecDeque<(i64, Weak<Unanswered<R>>)>>);

impl<R> Default for CommitTimeouts<R> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<R> CommitTimeouts<R> {
    /// `unanswered` begins to wait; gives until when, by the clock of `now_ms`.
    pub fn begin(&self, unanswered: &Arc<Unanswered<R>>, now_ms: i64) -> i64 {
        let until_ms = now_ms.saturating_add(COMMIT_TIMEOUT_MS);
        let mut waiting = self.0.lock();
        while waiting.front().is_some_and(|(_, oldest)| oldest.strong_count() == 0) {
            waiting.pop_front();
        }
        waiting.push_back((until_ms, Arc::downgrade(unanswered)));
        until_ms
    }

    /// When [`CommitTimeouts::end_overdue`] has something to do.
    pub fn next_ms(&self) -> Option<i64> {
        self.0.lock().front().map(|(until_ms, _)| *until_ms)
    }

    /// Answers all requests whose time is over.
    pub fn end_overdue(&self, now_ms: i64) {
        loop {
            let overdue = {
                let mut waiting = self.0.lock();
                match waiting.front() {
                    Some((until_ms, _)) if *until_ms <= now_ms => waiting.pop_front(),
                    _ => None,
                }
            };
            let Some((_, overdue)) = overdue else { return };
            if let Some(overdue) = overdue.upgrade() {
                overdue.give_up();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    type Answer = oneshot::Receiver<Result<i32, ErrorCode>>;

    fn unanswered_reply() -> (Arc<Unanswered<i32>>, Answer) {
        let (sender, answer) = oneshot::channel();
        (Arc::new(Unanswered::new(vec![(sender, 7)])), answer)
    }

    #[test]
    fn a_request_whose_time_is_over_is_answered_once() {
        let timeouts = CommitTimeouts::default();
        let (unanswered, mut answer) = unanswered_reply();
        let until_ms = timeouts.begin(&unanswered, 1_000);
        timeouts.end_overdue(until_ms - 1);
        assert!(answer.try_recv().is_err(), "there is time left");
        timeouts.end_overdue(until_ms);
        assert_eq!(answer.try_recv(), Ok(Err(ErrorCode::CoordinatorNotAvailable)));
        unanswered.answer();
        assert_eq!(timeouts.next_ms(), None);
    }

    #[test]
    fn answers_that_were_sent_are_not_kept() {
        let timeouts = CommitTimeouts::default();
        for at_ms in 0..100 {
            let (unanswered, mut answer) = unanswered_reply();
            timeouts.begin(&unanswered, at_ms);
            unanswered.answer();
            assert_eq!(answer.try_recv(), Ok(Ok(7)));
        }
        assert_eq!(timeouts.0.lock().len(), 1);
    }
}
