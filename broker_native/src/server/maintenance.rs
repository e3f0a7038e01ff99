//! One thread that does what is due by the clock: retention, rolls by age, checkpoints. Starts with the listener.
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Shared;

/// The thread; stops when [`Maintenance::stop`] is called or this is dropped.
pub struct Maintenance {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    /// Starts the thread. It looks as often as the more frequent of retention and checkpoints asks.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let settings = &shared.settings;
        let checkpoint_ms =
            u64::try_from(settings.log_flush_offset_checkpoint_interval_ms).unwrap_or(u64::MAX);
        let every = Duration::from_millis(settings.log_retention_check_interval_ms.min(checkpoint_ms).max(1));
        let (stop, stopped) = mpsc::channel::<()>();
        let work = move || {
            while matches!(stopped.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
                shared.logs.run_maintenance();
            }
        };
        let thread = std::thread::Builder::new().name("pylog-maintenance".into()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Stops after what is being done.
    pub fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic inside was printed by the hook; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop();
    }
}
