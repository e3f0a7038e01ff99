//! From which broker a partition is read: its leader, or the replica that the leader recommends (KIP-392). No socket.
//!
//! A reader that says its rack asks the leader first. A leader that knows a closer replica names it instead of sending
//! records; the reader stays there for `metadata.max.age.ms`, then asks the leader again. Whatever goes wrong at a replica
//! sends the reader back to the leader at once, and for [`Sources::failed`]'s pause it takes no recommendation.
use std::time::{Duration, Instant};

use crate::metadata::address::Address;

/// Where a partition is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The broker's number.
    pub node: i32,
    /// Where it is.
    pub address: Address,
    /// Epoch of the leader, -1 when the brokers give none.
    pub leader_epoch: i32,
    /// Until when to stay, at a replica that is not the leader.
    pub until: Option<Instant>,
}

impl Source {
    /// Whether it is the leader, as far as known.
    pub fn leads(&self) -> bool {
        self.until.is_none()
    }

    /// Whether the leader should be asked again whom to read from.
    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// What led here.
#[derive(Debug, Default)]
pub struct Sources {
    /// The leader and its epoch, as the broker said that led before.
    hint: Option<(i32, i32)>,
    leader_only_until: Option<Instant>,
}

impl Sources {
    /// Takes the new leader that a former leader named.
    pub fn hint(&mut self, node: i32, epoch: i32) {
        self.hint = Some((node, epoch));
    }

    /// Whether a leader was named that was not followed yet.
    pub fn has_hint(&self) -> bool {
        self.hint.is_some()
    }

    /// What was said, once.
    pub fn take_hint(&mut self) -> Option<(i32, i32)> {
        self.hint.take()
    }

    /// Reading from a replica failed: no recommendation is followed for `pause`.
    pub fn failed(&mut self, now: Instant, pause: Duration) {
        self.leader_only_until = Some(now + pause);
    }

    /// Whether the leader may recommend another replica.
    pub fn takes_recommendations(&self, now: Instant) -> bool {
        self.leader_only_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_recommendation_is_followed_for_a_while_after_a_failure() {
        let (mut sources, now) = (Sources::default(), Instant::now());
        assert!(sources.takes_recommendations(now));
        sources.failed(now, Duration::from_secs(1));
        assert!(!sources.takes_recommendations(now));
        assert!(sources.takes_recommendations(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_replica_is_left_when_its_time_is_over_and_a_leader_never() {
        let now = Instant::now();
        let address = ("h".to_owned(), 1);
        let leader = Source { node: 1, address, leader_epoch: 3, until: None };
        let replica = Source { until: Some(now + Duration::from_secs(5)), ..leader.clone() };
        assert!(leader.leads() && !leader.is_over(now + Duration::from_secs(9_000)));
        assert!(!replica.leads() && !replica.is_over(now));
        assert!(replica.is_over(now + Duration::from_secs(5)));
    }
}
