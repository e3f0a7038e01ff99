//! A leader that cannot write, while others could lead: told to Python once, which ends the broker in good order, as Apache Kafka
//! ends one whose log directories have failed.
//!
//! A partition that no other live replica could lead does not count: there a broker that refuses records and still serves
//! the old ones is worth more than none.
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::decide::{Kind, ask};
use crate::notice::notice;
use crate::shared::Shared;

/// When nobody has taken the question, it is asked again after so long.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The first failure, if there was one.
#[derive(Default)]
pub struct Failure {
    why: OnceLock<String>,
    noted: Notify,
}

impl Failure {
    /// The first one.
    pub fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Takes note. May be called under any lock.
    pub fn note(&self, why: &str) {
        if self.why.set(why.to_owned()).is_ok() {
            self.noted.notify_one();
        }
    }
}

/// Waits for the first failure, and tells it until somebody has heard it.
pub async fn report(shared: Arc<Shared>) {
    let failure = &shared.replication.failure;
    loop {
        tokio::select! {
            () = failure.noted.notified() => {}
            () = shared.shutdown.wait() => return,
        }
        let Some(why) = failure.why() else { continue };
        let question = json!({ "reason": why }).to_string();
        match ask(shared.decider.as_ref(), Kind::StorageFailed, question, 0).await {
            Ok(_) => return,
            Err(undecided) => notice(&format!("a disk that failed is not told of, tried again: {undecided}")),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
        failure.noted.notify_one();
    }
}
