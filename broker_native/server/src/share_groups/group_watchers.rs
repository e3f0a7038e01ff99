//! Long polls of a group: each waits for what other members of it give back.
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::state::watch::Watchers;

/// Groups that nobody waits in are removed when there are this many, and then at twice the number of those that remained.
const GROUPS_MIN: usize = 64;

/// The long polls that wait, by group.
#[derive(Debug, Default)]
pub struct GroupWatchers {
    groups: Mutex<Groups>,
}

#[derive(Debug, Default)]
struct Groups {
    known: HashMap<String, Weak<Watchers>>,
    look_at: usize,
}

impl GroupWatchers {
    /// Those of a group, for as long as somebody holds them.
    pub fn of(&self, group_id: &str) -> Arc<Watchers> {
        let mut groups = self.groups.lock();
        if let Some(known) = groups.known.get(group_id).and_then(Weak::upgrade) {
            return known;
        }
        if groups.known.len() >= groups.look_at.max(GROUPS_MIN) {
            groups.known.retain(|_, watchers| watchers.strong_count() > 0);
            groups.look_at = 2 * groups.known.len();
        }
        let made = Arc::new(Watchers::default());
        groups.known.insert(group_id.to_owned(), Arc::downgrade(&made));
        made
    }

    /// Wakes a group.
    pub fn wake(&self, group_id: &str) {
        let known = self.groups.lock().known.get(group_id).and_then(Weak::upgrade);
        known.into_iter().for_each(|watchers| watchers.wake());
    }
}
