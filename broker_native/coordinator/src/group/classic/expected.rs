//! Member ids that were given out and whose members have not joined yet.
use std::collections::BTreeSet;

/// About how many bytes an id takes besides its letters, which its deadline holds, too.
const ID_BYTES: usize = 400;

/// Ids that were given out with MEMBER_ID_REQUIRED and have not come back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    ids: BTreeSet<String>,
    bytes: usize,
}

impl Expected {
    /// About how many bytes they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether this is one of them.
    pub fn contains(&self, member_id: &str) -> bool {
        self.ids.contains(member_id)
    }

    /// Adds one.
    pub fn insert(&mut self, member_id: String) {
        let bytes = cost(&member_id);
        if self.ids.insert(member_id) {
            self.bytes += bytes;
        }
    }

    /// Forgets one.
    pub fn remove(&mut self, member_id: &str) {
        if self.ids.remove(member_id) {
            self.bytes = self.bytes.saturating_sub(cost(member_id));
        }
    }
}

fn cost(member_id: &str) -> usize {
    ID_BYTES + 4 * member_id.len()
}
