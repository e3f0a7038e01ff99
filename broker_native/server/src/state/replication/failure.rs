//! A leader that cannot write, while others could lead: `upkeep/storage_failure` reports it to Python, which stops the broker
//! cleanly, as Apache Kafka ends one whose log directories have failed.
//!
//! A partition that no other live replica could lead does not count: there a broker that refuses records and still serves
//! the old ones is worth more than none.
use std::sync::OnceLock;

use tokio::sync::Notify;

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

    /// Waits until there is one, or until [`Failure::remind`] is called.
    pub async fn noted(&self) {
        self.noted.notified().await;
    }

    /// Nobody has taken the report: it is due again.
    pub fn remind(&self) {
        self.noted.notify_one();
    }
}
