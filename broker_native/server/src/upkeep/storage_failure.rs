//! Tells Python, once, that this broker cannot write a log that others could lead.
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::decide::{Decider, Kind, ask};
use crate::notice::notice;
use crate::shutdown::Shutdown;
use crate::state::replication::Replication;

/// When nobody has taken the question, it is asked again after so long.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Who tells.
pub struct FailureReport {
    /// Has the failure.
    pub replication: Arc<Replication>,
    /// Is told.
    pub decider: Arc<dyn Decider>,
    /// Ends it.
    pub shutdown: Arc<Shutdown>,
}

impl FailureReport {
    /// Waits for the first failure, and tells it until somebody has heard it.
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
                    notice(&format!("a disk that failed is not told of, tried again: {undecided}"));
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            failure.remind();
        }
    }
}
