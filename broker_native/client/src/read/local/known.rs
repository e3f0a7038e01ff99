//! Which brokers' data directories this process sees. Found out once, since a question costs bytes in an answer.
//!
//! Safe after a fork: no file is kept here, and a lock that another thread of the parent held is not waited for.
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::metadata::address::Address;

/// After this long a directory that was not seen is looked for again: it may have been mounted.
const UNSEEN_FOR: Duration = Duration::from_secs(60);
/// Brokers that are remembered. With more of them, all are asked again.
const MOST_BROKERS: usize = 1_000;

/// What is known of a broker's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// It was not asked yet, or not lately.
    Unknown,
    /// It was seen; each answer has to be proved all the same.
    Seen,
    /// It is not to be seen from here, or its broker says nothing of it.
    Unseen,
}

static BROKERS: LazyLock<Mutex<HashMap<Address, (Sight, Instant)>>> = LazyLock::new(Mutex::default);

/// What is known.
pub(super) fn of(address: &Address, now: Instant) -> Sight {
    let Some(brokers) = BROKERS.try_lock() else { return Sight::Unknown };
    match brokers.get(address) {
        Some((Sight::Unseen, since)) if now.saturating_duration_since(*since) > UNSEEN_FOR => Sight::Unknown,
        Some((sight, _)) => *sight,
        None => Sight::Unknown,
    }
}

/// Remembers it.
pub(super) fn note(address: &Address, sight: Sight) {
    let Some(mut brokers) = BROKERS.try_lock() else { return };
    if brokers.len() >= MOST_BROKERS && !brokers.contains_key(address) {
        brokers.clear();
    }
    brokers.insert(address.clone(), (sight, Instant::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_not_seen_is_looked_for_again_after_a_while() {
        let address = ("known.rs".to_owned(), 1);
        let now = Instant::now();
        assert_eq!(of(&address, now), Sight::Unknown);
        note(&address, Sight::Unseen);
        assert_eq!(of(&address, now), Sight::Unseen);
        assert_eq!(of(&address, Instant::now() + UNSEEN_FOR + Duration::from_secs(1)), Sight::Unknown);
        note(&address, Sight::Seen);
        assert_eq!(of(&address, Instant::now() + UNSEEN_FOR * 9), Sight::Seen);
    }
}
