//! Who leads a log now: what the log calls after appends and failures reaches whoever that is.
use std::sync::Arc;

use parking_lot::RwLock;

use super::leading::Leading;
use crate::state::watch::Watchers;
use pylog_storage::FailureListener;

/// Who leads a log here, for the listeners of the log, which outlive many leaders.
#[derive(Default)]
pub struct Seat(RwLock<Option<Arc<Leading>>>);

impl Seat {
    /// Who leads now.
    pub fn now(&self) -> Option<Arc<Leading>> {
        self.0.read().clone()
    }

    /// From now on.
    pub fn take(&self, leading: Option<Arc<Leading>>) {
        *self.0.write() = leading;
    }
}

/// What a log with other replicas calls after each append.
pub fn on_append(seat: &Arc<Seat>, appended: &Arc<Watchers>) -> Arc<dyn Fn(i64) + Send + Sync> {
    // The partition holds the seat; the log must not, for it is held by who sits there.
    let (seat, appended) = (Arc::downgrade(seat), Arc::clone(appended));
    Arc::new(move |replicated_end| {
        appended.wake();
        if let Some(leading) = seat.upgrade().and_then(|seat| seat.now()) {
            leading.appended(replicated_end);
        }
    })
}

/// What a log with other replicas calls when it cannot write.
pub fn on_failure(seat: &Arc<Seat>) -> FailureListener {
    let seat = Arc::downgrade(seat);
    Arc::new(move |why| {
        if let Some(leading) = seat.upgrade().and_then(|seat| seat.now()) {
            leading.cannot_write(why);
        }
    })
}
