//! Deadlines by key, in milliseconds of a clock that nobody sets, as a value: it wakes no thread, its owner asks what is due.
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// At most one deadline for each key.
#[derive(Debug, Clone)]
pub struct Timers<K> {
    by_key: HashMap<K, i64>,
    by_time: BTreeSet<(i64, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord> Timers<K> {
    /// Sets or moves the key's deadline.
    pub fn set(&mut self, key: K, deadline_ms: i64) {
        if let Some(earlier) = self.by_key.insert(key.clone(), deadline_ms) {
            self.by_time.remove(&(earlier, key.clone()));
        }
        self.by_time.insert((deadline_ms, key));
    }

    /// Forgets the key's deadline.
    pub fn cancel(&mut self, key: &K) {
        if let Some(deadline_ms) = self.by_key.remove(key) {
            self.by_time.remove(&(deadline_ms, key.clone()));
        }
    }

    /// The key's deadline.
    pub fn deadline_ms(&self, key: &K) -> Option<i64> {
        self.by_key.get(key).copied()
    }

    /// The earliest deadline.
    pub fn next_ms(&self) -> Option<i64> {
        self.by_time.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    /// Takes the earliest key whose deadline is `now_ms` or before.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<K> {
        if self.next_ms()? > now_ms {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_due_in_the_order_of_their_last_deadlines() {
        let mut timers = Timers::default();
        timers.set("a", 5);
        timers.set("b", 3);
        timers.set("c", 4);
        timers.set("b", 9);
        timers.cancel(&"c");
        assert_eq!(timers.next_ms(), Some(5));
        assert_eq!(timers.pop_due(4), None);
        assert_eq!(timers.pop_due(9), Some("a"));
        assert_eq!(timers.deadline_ms(&"b"), Some(9));
        assert_eq!(timers.pop_due(9), Some("b"));
        assert_eq!(timers.next_ms(), None);
    }
}
