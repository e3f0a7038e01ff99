//! One thread that does what is due by the clock: retention, rolls by age, checkpoints. Starts with the listener.
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::background::keep_running;
use crate::settings::Settings;
use pylog_log::broker::carried;
use pylog_log::loggers::STORAGE;
use pylog_log::{error, info, warn};
use pylog_storage::LogManager;
use pylog_storage::types::{RetentionLimit, Retired};

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
    pub fn start(logs: Arc<LogManager>, settings: &Settings) -> std::io::Result<Self> {
        let checkpoint_ms =
            u64::try_from(settings.log_flush_offset_checkpoint_interval_ms).unwrap_or(u64::MAX);
        let every = Duration::from_millis(settings.log_retention_check_interval_ms.min(checkpoint_ms).max(1));
        logs.on_retired(Box::new(|retired| {
            info!(target: STORAGE, partition = %retired.at, "{}", removed(retired));
        }));
        logs.on_crowded(Box::new(|at, count| {
            warn!(
                target: STORAGE, partition = %at,
                "{at} has more producers than producer.id.max.count: the {count} that wrote longest ago were forgotten"
            );
        }));
        let (stop, stopped) = mpsc::channel::<()>();
        let work = move || {
            keep_running("maintenance of the logs", || {
                while matches!(stopped.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
                    logs.run_maintenance().iter().for_each(|error| error!(target: STORAGE, "{error}"));
                }
            });
        };
        let thread = std::thread::Builder::new().name("pylog-maintenance".into()).spawn(carried(work))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Stops after what is being done.
    pub fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn removed(retired: &Retired) -> String {
    let Retired { at, offsets, segments, bytes, limit } = retired;
    let why = match limit {
        RetentionLimit::ForMs(ms) => format!("their records are older than retention.ms={ms}"),
        RetentionLimit::Bytes(most) => format!("the log is larger than retention.bytes={most}"),
        RetentionLimit::LocalForMs(ms) => {
            format!("the archive has them, and their records are older than local.retention.ms={ms}")
        }
        RetentionLimit::LocalBytes(most) => {
            format!("the archive has them, and the log is larger here than local.retention.bytes={most}")
        }
        RetentionLimit::NeededForMs(ms) => format!(
            "groups of retention.until.checkpointed have not read them, but they are older than retention.until.checkpointed.max.ms={ms}"
        ),
        RetentionLimit::NeededBytes(most) => format!(
            "groups of retention.until.checkpointed have not read them, but the log is larger than retention.until.checkpointed.max.bytes={most}"
        ),
    };
    let (first, start) = (offsets.start, offsets.end);
    format!(
        "{at}: retention removed {segments} segments ({bytes} bytes), offsets {first} to {start}: {why}; the log begins at {start}"
    )
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop();
    }
}
