//! The earliest deadline of all machines of a coordinator, by the steady clock, and one task that sleeps until then.
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

/// Stands for "no deadline".
pub const NEVER_MS: i64 = i64::MAX;

/// When the task is to wake.
#[derive(Debug)]
pub struct Alarm {
    at_ms: AtomicI64,
    earlier: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { at_ms: AtomicI64::new(NEVER_MS), earlier: Notify::new() }
    }
}

impl Alarm {
    /// There is something to do at `deadline_ms`; wakes the task when that is earlier than all
    /// it knows.
    pub fn note(&self, deadline_ms: i64) {
        if deadline_ms < self.at_ms.load(Ordering::SeqCst)
            && deadline_ms < self.at_ms.fetch_min(deadline_ms, Ordering::SeqCst)
        {
            self.earlier.notify_one();
        }
    }

    /// As [`Alarm::note`] by the task itself, which needs no waking.
    pub fn found(&self, deadline_ms: i64) {
        self.at_ms.fetch_min(deadline_ms, Ordering::SeqCst);
    }

    /// Forgets all deadlines; the task then looks at the machines and says what it found, so that a deadline set
    /// meanwhile is not lost.
    pub fn reset(&self) {
        self.at_ms.store(NEVER_MS, Ordering::SeqCst);
    }

    /// The earliest deadline noted since [`Alarm::reset`].
    pub fn at_ms(&self) -> i64 {
        self.at_ms.load(Ordering::SeqCst)
    }

    /// Waits for an earlier deadline.
    pub async fn earlier(&self) {
        self.earlier.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_woken(alarm: &Alarm) -> bool {
        tokio::select! {
            biased;
            () = alarm.earlier() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_task_sleeps_through_the_deadlines_that_it_found_itself_and_wakes_for_earlier_ones() {
        let alarm = Alarm::default();
        alarm.reset();
        alarm.found(500);
        alarm.found(700);
        assert!(!is_woken(&alarm).await, "it would never sleep");
        alarm.note(600);
        assert!(!is_woken(&alarm).await);
        alarm.note(400);
        assert!(is_woken(&alarm).await);
        assert_eq!(alarm.at_ms(), 400);
    }
}
