//! One follower as its leader sees it. Pure: the time is an argument.
//!
//! A follower is *caught up* at a moment when it fetches from the end that the log had at an earlier fetch of its own: it
//! need not be at the end now, which moves on with every append, but must have reached the end of then.

/// Stands for an offset that no fetch has named yet.
pub const UNKNOWN_OFFSET: i64 = -1;

/// What the leader knows of one follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    /// One past the last record that it surely has; [`UNKNOWN_OFFSET`] before its first fetch in this epoch.
    pub log_end_offset: i64,
    /// Its first readable offset; [`UNKNOWN_OFFSET`] before its first fetch in this epoch.
    pub log_start_offset: i64,
    /// When it was surely caught up for the last time.
    pub caught_up_ms: i64,
    last_fetch_ms: i64,
    /// Where the leader's log ended when it fetched last.
    last_fetch_end: i64,
}

impl Follower {
    /// A follower of an epoch that begins at `now_ms`; one that is in sync has a full lag time to fetch.
    pub fn new(in_sync: bool, now_ms: i64) -> Self {
        Self {
            log_end_offset: UNKNOWN_OFFSET,
            log_start_offset: UNKNOWN_OFFSET,
            caught_up_ms: if in_sync { now_ms } else { i64::MIN },
            last_fetch_ms: i64::MIN,
            last_fetch_end: 0,
        }
    }

    /// It went away, or came back: nothing is known of its log any more.
    pub fn forget(&mut self) {
        *self = Self { caught_up_ms: self.caught_up_ms, ..Self::new(false, 0) };
    }

    /// It asks for what follows `offset` while the leader's log ends at `leader_end`.
    pub fn fetched(&mut self, offset: i64, log_start_offset: i64, leader_end: i64, now_ms: i64) {
        if offset >= leader_end {
            self.caught_up_ms = self.caught_up_ms.max(now_ms);
        } else if offset >= self.last_fetch_end {
            self.caught_up_ms = self.caught_up_ms.max(self.last_fetch_ms);
        }
        self.log_end_offset = offset;
        self.log_start_offset = log_start_offset;
        self.last_fetch_ms = now_ms;
        self.last_fetch_end = leader_end;
    }

    /// Whether it keeps up: it is at the end, or was within the last `lag_max_ms`.
    pub fn keeps_up(&self, leader_end: i64, now_ms: i64, lag_max_ms: i64) -> bool {
        self.log_end_offset == leader_end || now_ms.saturating_sub(self.caught_up_ms) <= lag_max_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_at_the_end_keeps_up_however_long_ago_it_fetched() {
        let mut follower = Follower::new(false, 0);
        assert!(!follower.keeps_up(10, 0, 100), "nothing was heard of it");
        follower.fetched(10, 0, 10, 50);
        assert!(follower.keeps_up(10, 1_000_000, 100));
        assert!(!follower.keeps_up(11, 1_000_000, 100));
    }

    #[test]
    fn a_follower_that_reaches_the_end_of_its_last_fetch_was_caught_up_then() {
        let mut follower = Follower::new(true, 0);
        follower.fetched(0, 0, 10, 100);
        assert_eq!(follower.caught_up_ms, 0);
        follower.fetched(10, 0, 30, 200);
        assert_eq!(follower.caught_up_ms, 100, "at 100 the log ended at 10");
        follower.fetched(20, 0, 40, 300);
        assert_eq!(follower.caught_up_ms, 100, "at 200 it ended at 30");
    }
}
