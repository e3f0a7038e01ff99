//! Who hears that a log has moved.
//!
//! Two lists with a lock each: what is called for an append may move the high watermark, and so call the other list. A thread that
//! reads one lock twice would wait for ever for a writer between.
use std::sync::Arc;

use parking_lot::RwLock;

/// Called with the new high watermark after it moved.
pub type AdvanceListener = Arc<dyn Fn(i64) + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(super) struct Listeners {
    advance: RwLock<Vec<AdvanceListener>>,
    append: RwLock<Vec<AdvanceListener>>,
}

impl Listeners {
    /// Adds one for moves of the high watermark.
    pub fn on_advance(&self, listener: AdvanceListener) {
        self.advance.write().push(listener);
    }

    /// Adds one for moves of what counts as this broker's.
    pub fn on_append(&self, listener: AdvanceListener) {
        self.append.write().push(listener);
    }

    /// The high watermark has moved.
    pub fn advanced(&self, high_watermark: i64) {
        for listener in self.advance.read().iter() {
            listener(high_watermark);
        }
    }

    /// What counts as this broker's has moved.
    pub fn appended(&self, end: i64) {
        for listener in self.append.read().iter() {
            listener(end);
        }
    }
}
