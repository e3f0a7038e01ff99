//! Work of requests that may take long: opening large batches, reading and answering requests that name much,
//! syncing files. Done by threads of its own, at most
//! `num.io.threads` at once, half of them for one address; the network threads serve everybody else meanwhile. Passwords are hashed by
//! [`PASSWORD_THREADS`] others: who only guesses them waits for who does the same.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::shares::Shares;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use pylog_log::BUG;

/// Passwords that are hashed at once, one for one address. Each takes some milliseconds.
pub const PASSWORD_THREADS: usize = 2;
/// How long a request waits for a thread: a client's own `request.timeout.ms` is over by then.
const THREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Why work has no result; the connection ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// It found no thread and was not begun.
    #[error("no thread for {0} was free within {1} s")]
    Busy(&'static str, u64),
    /// It was not begun.
    #[error("the broker stops")]
    Stopping,
    /// It panicked.
    #[error("{}", BUG)]
    Panicked,
}

/// The threads.
#[derive(Debug)]
pub struct Slow {
    work: &'static str,
    threads: Shares,
    shutdown: Arc<Shutdown>,
    metrics: Arc<Metrics>,
}

impl Slow {
    /// At most `threads` at once for such `work`.
    pub fn new(work: &'static str, threads: usize, shutdown: &Arc<Shutdown>, metrics: &Arc<Metrics>) -> Self {
        let threads = Shares::new(u32::try_from(threads.max(1)).unwrap_or(u32::MAX));
        Self { work, threads, shutdown: Arc::clone(shutdown), metrics: Arc::clone(metrics) }
    }

    /// Does `work` for the client at `address`, in a thread of its own.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn run<T: Send + 'static>(
        &self,
        address: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let place = tokio::select! {
            place = self.threads.take(address, 1, 0) => place,
            () = tokio::time::sleep(THREAD_TIMEOUT) => {
                return Err(NotDone::Busy(self.work, THREAD_TIMEOUT.as_secs()));
            }
            () = self.shutdown.wait() => return Err(NotDone::Stopping),
        };
        let working = move || {
            let _held = place;
            work()
        };
        let done = tokio::task::spawn_blocking(working).await;
        done.map_err(|_panic| {
            self.metrics.panics.increment();
            NotDone::Panicked
        })
    }
}
