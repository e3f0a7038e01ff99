//! What ended a log's appends (poison), and who hears of failures.
//!
//! The first reason stays for good. No lock: both values are set once.
use std::sync::{Arc, OnceLock};

/// Called with the reason why a log cannot write, by the thread that wanted to, with locks of the log held: it must not call the log.
pub type FailureListener = Arc<dyn Fn(&str) + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(super) struct Failure {
    reason: OnceLock<String>,
    listener: OnceLock<FailureListener>,
}

impl Failure {
    /// Why nothing more is appended.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Whether nothing more is appended.
    pub fn is_set(&self) -> bool {
        self.reason.get().is_some()
    }

    /// Ends appends without a report: nothing has failed.
    pub fn set(&self, reason: String) {
        let _ = self.reason.set(reason);
    }

    /// Sets who hears of failures. The first one stays.
    pub fn set_listener(&self, listener: FailureListener) {
        let _ = self.listener.set(listener);
    }

    /// Calls the listener, unless appends have ended before.
    pub fn report(&self, why: &str) {
        if let (Some(listener), None) = (self.listener.get(), self.reason.get()) {
            listener(why);
        }
    }
}
