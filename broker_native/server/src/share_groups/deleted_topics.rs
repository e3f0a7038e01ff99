//! Topics that were deleted a short while ago: a machine that is loaded later forgets them, and a request that was reading one of them does
//! not bring its state back.
//!
//! Any thread may call it. Not written down: after a crash the deletion itself goes on, and says it anew.
use std::collections::VecDeque;

use parking_lot::Mutex;
use uuid::Uuid;

/// Most topics that are remembered; the one that was deleted longest ago makes room.
const TOPICS_MAX: usize = 10_000;

/// The topics.
#[derive(Debug, Default)]
pub struct DeletedTopics {
    ids: Mutex<VecDeque<Uuid>>,
}

impl DeletedTopics {
    /// The topic is deleted.
    pub fn add(&self, topic_id: Uuid) {
        let mut ids = self.ids.lock();
        if ids.len() >= TOPICS_MAX {
            ids.pop_front();
        }
        ids.push_back(topic_id);
    }

    /// Whether it was deleted.
    pub fn has(&self, topic_id: &Uuid) -> bool {
        self.ids.lock().contains(topic_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_no_more_than_the_bound() {
        let deleted = DeletedTopics::default();
        for number in 0..=TOPICS_MAX as u128 {
            deleted.add(Uuid::from_u128(number));
        }
        assert!(!deleted.has(&Uuid::from_u128(0)) && deleted.has(&Uuid::from_u128(TOPICS_MAX as u128)));
        assert_eq!(deleted.ids.lock().len(), TOPICS_MAX);
    }
}
