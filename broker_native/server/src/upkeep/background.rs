//! Work in the background that a mistake of the broker must not end: it begins again after a pause, with one line.
//!
//! State that a panic left half-changed stays so: this is for work that reads all state anew in each turn. A log or machine whose lock
//! was held when the panic happened has been given up already (`storage::partition_log::writing`,
//! `server::coordinators::shard`).
use pylog_log::loggers::BROKER;
use pylog_log::{BUG, warn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

/// Pause after a panic before the work begins again.
const PAUSE: Duration = Duration::from_secs(1);

/// Does `work` until it ends by itself.
pub async fn kept_running<F: Future<Output = ()>>(what: &str, work: impl Fn() -> F) {
    loop {
        let mut once = std::pin::pin!(work());
        let ended =
            std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| once.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(())) => Poll::Ready(true),
                Err(_panic) => Poll::Ready(false),
            });
        if ended.await {
            return;
        }
        say_so(what);
        tokio::time::sleep(PAUSE).await;
    }
}

/// As [`kept_running`] in the thread of the caller.
pub fn keep_running(what: &str, work: impl Fn()) {
    while catch_unwind(AssertUnwindSafe(&work)).is_err() {
        say_so(what);
        std::thread::sleep(PAUSE);
    }
}

fn say_so(what: &str) {
    warn!(target: BROKER, "{what} failed and begins again in {} s: it met {BUG}", PAUSE.as_secs());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Panics the first time.
    fn work(turns: &AtomicUsize) {
        assert!(turns.fetch_add(1, Ordering::SeqCst) > 0, "a planted mistake");
    }

    #[tokio::test]
    async fn a_task_that_panics_begins_again_until_it_ends() {
        let turns = AtomicUsize::new(0);
        kept_running("a test", || async {
            tokio::task::yield_now().await;
            work(&turns);
        })
        .await;
        assert_eq!(turns.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_thread_that_panics_begins_again_until_it_ends() {
        let turns = AtomicUsize::new(0);
        keep_running("a test", || work(&turns));
        assert_eq!(turns.load(Ordering::SeqCst), 2);
    }
}
