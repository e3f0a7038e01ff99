//! One signal that the server stops: seen at once by those who look, waking those who wait.
//!
//! After the signal nothing new is read; what is in flight is answered; long polls answer with what they have.
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The signal; given only once.
#[derive(Debug, Default)]
pub struct Shutdown {
    given: AtomicBool,
    wake: Notify,
}

impl Shutdown {
    /// Gives the signal.
    pub fn give(&self) {
        self.given.store(true, Ordering::SeqCst);
        self.wake.notify_waiters();
    }

    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.given.load(Ordering::SeqCst)
    }

    /// Waits for it.
    pub async fn wait(&self) {
        let woken = self.wake.notified();
        tokio::pin!(woken);
        // Registered before the look, so that a signal between the two is not missed.
        woken.as_mut().enable();
        if !self.is_given() {
            woken.await;
        }
    }
}
