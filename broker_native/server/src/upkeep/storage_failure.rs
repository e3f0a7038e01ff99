//! Reports to Python, once, that this broker cannot write a log that others could lead.
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::decide::{Decider, Kind, ask};
use crate::shutdown::Shutdown;
use crate::state::replication::Replication;
use pylog_log::loggers::STORAGE;
use pylog_log::warn;

/// Pause before the report is sent again, when nobody has taken it.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Reports the failure.
pub struct FailureReport {
    /// Has the failure.
    pub replication: Arc<Replication>,
    /// Gets the report.
    pub decider: Arc<dyn Decider>,
    /// Ends it.
    pub shutdown: Arc<Shutdown>,
}

impl FailureReport {
    /// Waits for the first failure, and reports it until Python has taken the report.
    pub async fn run(&self) {
        let failure = &self.replication.failure;
        loop {
            tokio::select! {
                () = failure.noted() => {}
                () = self.shutdown.wait() => return,
            }
            let Some(why) = failure.why() else { continue };
            let question = json!({ "reason": why }).to_string();
            match ask(self.decider.as_ref(), Kind::StorageFailed, question, 0).await {
                Ok(_) => return,
                Err(undecided) => {
                    warn!(target: STORAGE, "the failure of a disk could not be reported to the control loop; trying again: {undecided}");
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            failure.remind();
        }
    }
}
