//! One partition of a follower: what to ask its leader next, and what to do with the answer. Pure: no socket, thread or clock.
//!
//! A fetch names the epoch of the follower's last record. A leader whose log departs from it says so instead of sending
//! records (KIP-595), and the follower gives up what the leader never had: the rule is that of Kafka's
//! `AbstractFetcherThread.getOffsetTruncationState` (KIP-101, KIP-279). It may take several rounds, one for each epoch that
//! only one of the two knows.
//!
//! An answer counts only when the log still stands where the question said, so answers may come late, twice or never.
//!
//! | state | asks |
//! |---|---|
//! | fetching | records from the log's end on |
//! | seeking | where the leader's log begins and ends: the offset was out of range |
//! | waiting | nothing before a time: the leader does not know of this epoch yet, or something failed |
//! | broken | nothing: the own log is of no use until a restart |
use super::log::{FollowerLog, is_broken};
use pylog_storage::StorageError;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::PartitionData;

/// The first pause after an error; it doubles up to [`Following::new`]'s maximum. Short, because brokers learn of a new
/// leader at slightly different times, and all producers of the partition wait meanwhile.
const FIRST_PAUSE_MS: u64 = 20;

/// From where a follower asks for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The epoch in which it believes its leader to lead.
    pub leader_epoch: i32,
    /// Where its log ends.
    pub offset: i64,
    /// Epoch of its last record, -1 without one.
    pub last_fetched_epoch: i32,
    /// Where its log begins.
    pub log_start_offset: i64,
}

/// What is to be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Records.
    Fetch(Position),
    /// Where the leader's log begins and ends.
    Ends,
    /// Nothing before this time, in milliseconds.
    Wait(u64),
    /// Nothing at all.
    Nothing,
}

/// What an answer led to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes of records written.
    pub appended: usize,
    /// The log's end before and after records were given up.
    pub truncated: Option<(i64, i64)>,
    /// Something for the broker's log.
    pub news: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowerState {
    Fetching,
    Seeking,
    Waiting { until_ms: u64, seeking: bool },
    Broken,
}

/// See the module.
#[derive(Debug)]
pub struct Following {
    leader_epoch: i32,
    pause_max_ms: u64,
    state: FollowerState,
    /// Errors since the last answer without one.
    failures: u32,
    failed: bool,
    lag: Option<i64>,
}

impl Following {
    /// Follows the leader of `leader_epoch`; no pause after an error is longer than `pause_max_ms`.
    pub fn new(leader_epoch: i32, pause_max_ms: u64) -> Self {
        Self {
            leader_epoch,
            pause_max_ms,
            state: FollowerState::Fetching,
            failures: 0,
            failed: false,
            lag: None,
        }
    }

    /// Records that the leader has committed and that are not here; `None` before the first answer.
    pub fn lag(&self) -> Option<i64> {
        self.lag
    }

    /// Whether something is wrong with the leader's log, with what it sends, or with the own log.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// The epoch that is followed.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// What to ask at `now_ms`.
    pub fn need(&mut self, log: &impl FollowerLog, now_ms: u64) -> Need {
        match self.state {
            FollowerState::Waiting { until_ms, .. } if now_ms < until_ms => return Need::Wait(until_ms),
            FollowerState::Waiting { seeking: true, .. } => self.state = FollowerState::Seeking,
            FollowerState::Waiting { seeking: false, .. } => self.state = FollowerState::Fetching,
            _ => {}
        }
        match self.state {
            FollowerState::Seeking => Need::Ends,
            FollowerState::Broken => Need::Nothing,
            _ => Need::Fetch(self.position(log)),
        }
    }

    fn position(&self, log: &impl FollowerLog) -> Position {
        Position {
            leader_epoch: self.leader_epoch,
            offset: log.end(),
            last_fetched_epoch: log.latest_epoch().unwrap_or(-1),
            log_start_offset: log.start(),
        }
    }

    /// Takes the answer to a fetch from `asked`.
    pub fn fetched(
        &mut self,
        asked: &Position,
        answer: &PartitionData,
        log: &impl FollowerLog,
        now_ms: u64,
    ) -> Step {
        let stands = Position { log_start_offset: asked.log_start_offset, ..self.position(log) };
        if self.state != FollowerState::Fetching || stands != *asked {
            return Step::default();
        }
        match ErrorCode::from_code(answer.error_code) {
            Some(ErrorCode::None) if answer.diverging_epoch.epoch >= 0 => self.diverged(answer, log, now_ms),
            Some(ErrorCode::None) => self.copy(answer, log, now_ms),
            Some(ErrorCode::OffsetOutOfRange) => {
                self.state = FollowerState::Seeking;
                Step::default()
            }
            error => self.after_error(error, now_ms),
        }
    }

    /// Takes the answer to [`Need::Ends`], which was asked in `leader_epoch`: where the leader's log begins and ends.
    pub fn found(
        &mut self,
        leader_epoch: i32,
        ends: Result<(i64, i64), ErrorCode>,
        log: &impl FollowerLog,
        now_ms: u64,
    ) -> Step {
        if self.state != FollowerState::Seeking || leader_epoch != self.leader_epoch {
            return Step::default();
        }
        let (start, end) = match ends {
            Ok(ends) => ends,
            Err(error) => return self.after_error(Some(error), now_ms),
        };
        let (before, mut changed) = (log.end(), true);
        let done = if end < log.end() {
            give_up(log, end, start)
        } else if start > log.end() {
            log.restart(start)
        } else {
            changed = false;
            Ok(())
        };
        match done {
            Ok(()) if changed => {
                self.succeeded();
                self.told_of_truncation(before, log)
            }
            Ok(()) => {
                // The leader's log moved meanwhile.
                self.state = FollowerState::Fetching;
                self.pause(now_ms);
                Step::default()
            }
            Err(error) => self.own_failure(&error, now_ms),
        }
    }

    /// What was appended could not be synced: it must not count as copied.
    pub fn sync_failed(&mut self) {
        self.state = FollowerState::Broken;
        self.failed = true;
    }

    fn copy(&mut self, answer: &PartitionData, log: &impl FollowerLog, now_ms: u64) -> Step {
        let records = answer.records.as_deref().unwrap_or_default();
        if !records.is_empty()
            && let Err(error) = log.append(records)
        {
            return self.own_failure(&error, now_ms);
        }
        log.move_high_watermark(answer.high_watermark);
        if answer.log_start_offset > log.start()
            && let Err(error) = log.follow_start(answer.log_start_offset)
        {
            return self.own_failure(&error, now_ms);
        }
        self.succeeded();
        self.lag = Some((answer.high_watermark - log.end()).max(0));
        Step { appended: records.len(), ..Step::default() }
    }

    fn diverged(&mut self, answer: &PartitionData, log: &impl FollowerLog, now_ms: u64) -> Step {
        let before = self.position(log);
        let (epoch, end) = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset);
        let target = truncation_offset(epoch, end, log);
        if let Err(error) = give_up(log, target, answer.log_start_offset) {
            return self.own_failure(&error, now_ms);
        }
        self.succeeded();
        if self.position(log) == before {
            // Asking the same again at once would go on for ever.
            self.pause(now_ms);
        }
        self.told_of_truncation(before.offset, log)
    }

    fn told_of_truncation(&self, before: i64, log: &impl FollowerLog) -> Step {
        Step { truncated: (log.end() != before).then(|| (before, log.end())), ..Step::default() }
    }

    /// An answer that is an error.
    fn after_error(&mut self, error: Option<ErrorCode>, now_ms: u64) -> Step {
        self.pause(now_ms);
        let ordinary = matches!(
            error,
            Some(
                ErrorCode::FencedLeaderEpoch
                    | ErrorCode::UnknownLeaderEpoch
                    | ErrorCode::NotLeaderOrFollower
                    | ErrorCode::UnknownTopicId
                    | ErrorCode::UnknownTopicOrPartition
                    | ErrorCode::InconsistentTopicId
                    | ErrorCode::OffsetOutOfRange
                    | ErrorCode::ClusterAuthorizationFailed
            )
        );
        if ordinary {
            return Step::default();
        }
        self.fail(format!("its leader answered {}", error.map_or("an unknown error", ErrorCode::name)))
    }

    /// The own log refused: what the leader sent is damaged, or something is wrong here.
    fn own_failure(&mut self, error: &StorageError, now_ms: u64) -> Step {
        match is_broken(error) {
            true => self.state = FollowerState::Broken,
            false => self.pause(now_ms),
        }
        self.fail(error.to_string())
    }

    /// Reports the first failure of a row.
    fn fail(&mut self, why: String) -> Step {
        let news = (!std::mem::replace(&mut self.failed, true)).then_some(why);
        Step { news, ..Step::default() }
    }

    fn succeeded(&mut self) {
        self.state = FollowerState::Fetching;
        self.failures = 0;
        self.failed = false;
    }

    fn pause(&mut self, now_ms: u64) {
        let pause = FIRST_PAUSE_MS.saturating_mul(1 << self.failures.min(16)).min(self.pause_max_ms);
        self.failures = self.failures.saturating_add(1);
        let seeking =
            matches!(self.state, FollowerState::Seeking | FollowerState::Waiting { seeking: true, .. });
        self.state = FollowerState::Waiting { until_ms: now_ms.saturating_add(pause), seeking };
    }
}

/// Up to where the own log may be the leader's, whose newest epoch up to the follower's is `epoch` and ends at `end`.
fn truncation_offset(epoch: i32, end: i64, log: &impl FollowerLog) -> i64 {
    if end < 0 {
        // It knows nothing: what is committed is all that is sure.
        return log.high_watermark().min(log.end());
    }
    let offset = match log.epoch_end(epoch) {
        // An epoch that only the leader has: the own records behind the one before it are not the leader's.
        Some((own_epoch, own_end)) if own_epoch != epoch => own_end,
        Some((_, own_end)) => own_end.min(end),
        None => end,
    };
    offset.min(log.end())
}

/// Gives up what lies behind `offset`; when that is all, begins where the leader's log does.
fn give_up(log: &impl FollowerLog, offset: i64, leader_start: i64) -> Result<(), StorageError> {
    if offset < log.start() {
        return log.restart(if leader_start < 0 { offset } else { leader_start });
    }
    log.truncate(offset)
}
