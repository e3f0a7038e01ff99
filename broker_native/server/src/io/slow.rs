//! Work of requests that may take long: opening large batches, syncing files. Done by threads of its own, at most
//! `num.io.threads` at once, half of them for one address; the network threads serve everybody else meanwhile.
use std::time::Duration;

use super::shares::Shares;
use crate::dispatch::{Call, Outcome, Reply};

/// A request that found no thread for so long is given up: a client's own patience (`request.timeout.ms`) is over by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// The threads.
#[derive(Debug)]
pub struct Slow {
    threads: Shares,
}

impl Slow {
    /// At most `threads` at once.
    pub fn new(threads: usize) -> Self {
        Self { threads: Shares::new(u32::try_from(threads.max(1)).unwrap_or(u32::MAX)) }
    }

    /// Does `work` for the client of `call`, in a thread of its own.
    ///
    /// # Errors
    /// The connection is to be closed: nothing was done, or the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        call: &Call,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Reply> {
        let place = tokio::select! {
            place = self.threads.take(call.peer.ip(), 1, 0) => place,
            () = tokio::time::sleep(PATIENCE) => {
                let seconds = PATIENCE.as_secs();
                return Err(Reply::Close(format!("num.io.threads were busy for {seconds} s with requests like its own")));
            }
            () = call.shared.shutdown.wait() => return Err(Reply::Close("the broker stops".into())),
        };
        let working = move || {
            let _held = place;
            work()
        };
        let done = tokio::task::spawn_blocking(working).await;
        done.map_err(|_panic| {
            call.shared.metrics.panics.one();
            Reply::Close("a bug of the broker (see the panic above); please report it".into())
        })
    }
}

/// A request that `work` answers, in a thread of its own and before those behind it.
pub fn answered_slowly(call: Call, work: impl FnOnce(&Call) -> Reply + Send + 'static) -> Outcome {
    Outcome::in_order(async move {
        let (shared, caller) = (call.shared.clone(), call.clone());
        shared.slow.run(&caller, move || work(&call)).await.unwrap_or_else(|closed| closed)
    })
}
