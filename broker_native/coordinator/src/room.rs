//! How many bytes coordinators may keep in memory, all machines of a broker together. Counted roughly: what clients can make
//! large, and a constant for the rest.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A room that machines share. Cheap to clone.
#[derive(Clone)]
pub struct Room {
    max: usize,
    used: Arc<AtomicUsize>,
    when_full: Arc<dyn Fn() + Send + Sync>,
}

impl Room {
    /// For `max` bytes. `when_full` is called for each request that is refused; it must not block.
    pub fn new(max: usize, when_full: impl Fn() + Send + Sync + 'static) -> Self {
        Self { max, used: Arc::default(), when_full: Arc::new(when_full) }
    }

    /// Whether there is room for `bytes` more; for 0 there always is.
    pub fn has(&self, bytes: usize) -> bool {
        self.fits(bytes, self.max)
    }

    /// As [`Room::has`], for members and producers that are known already and must be able to go on when new ones have filled the
    /// room: as much again is reserved for them.
    pub fn has_reserve(&self, bytes: usize) -> bool {
        self.fits(bytes, self.max.saturating_mul(2))
    }

    fn fits(&self, bytes: usize, max: usize) -> bool {
        let fits = bytes == 0 || self.used().saturating_add(bytes) <= max;
        if !fits {
            (self.when_full)();
        }
        fits
    }

    /// Something that had `before` bytes has `after`.
    pub fn changed(&self, before: usize, after: usize) {
        if after >= before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn what_does_not_fit_is_reported_and_what_leaves_makes_room() {
        let reports = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&reports);
        let room = Room::new(10, move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert!(room.has(10) && !room.has(11));
        room.changed(0, 8);
        assert!(room.has(2) && !room.has(3) && room.has(0) && room.has_reserve(12));
        room.changed(8, 5);
        assert!(room.has(5));
        assert_eq!((room.used(), reports.load(Ordering::Relaxed)), (5, 2));
    }
}
