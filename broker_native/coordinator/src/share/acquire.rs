//! Acquiring records for a member.
use std::sync::Arc;

use super::partition::{RecordState, Run, SharePartition};
use super::requests::{Acquired, LogBatch};

/// Fewest deliveries after which records come in smaller and smaller portions.
const DELIVERIES_TOGETHER_MIN: i16 = 2;

/// What a member may have.
#[derive(Debug, Clone, Copy)]
pub struct AcquireLimits {
    /// Most records; the rest of the last one's batch is added.
    pub max_records: i64,
    /// The rest of the batch is not added.
    pub exact: bool,
    /// Most records in flight.
    pub max_in_flight: i64,
    /// Most deliveries of a record.
    pub delivery_count_limit: i16,
    /// Until when the locks hold, by the steady clock.
    pub until_ms: i64,
}

/// What was acquired so far.
struct Taking {
    left: i64,
    /// Nothing more may be delivered together with it.
    is_over: bool,
    acquired: Vec<Acquired>,
}

impl SharePartition {
    /// Gives `member` what is available of `batches`, which the log has from `from` on, one behind the other. Offsets between them
    /// have no records any more.
    pub fn acquire(
        &mut self,
        member: &Arc<str>,
        from: i64,
        batches: &[LogBatch],
        limits: AcquireLimits,
    ) -> Vec<Acquired> {
        let mut taking = Taking { left: limits.max_records.max(0), is_over: false, acquired: Vec::new() };
        // An administrator set it back meanwhile: what was read is not what comes next.
        if from > self.end_offset {
            return taking.acquired;
        }
        let mut at = from;
        for batch in batches {
            if taking.left <= 0 || taking.is_over {
                break;
            }
            self.leave_out(at, batch.first_offset - 1);
            at = batch.last_offset + 1;
            if batch.is_void {
                self.leave_out(batch.first_offset, batch.last_offset);
                continue;
            }
            self.take(member, batch, limits, &mut taking);
            if batch.last_offset >= self.end_offset {
                break;
            }
        }
        self.advance();
        taking.acquired
    }

    /// Nothing is at `first..=last` that could be delivered.
    fn leave_out(&mut self, first: i64, last: i64) {
        let first = first.max(self.start_offset);
        if first > last {
            return;
        }
        let known_last = last.min(self.end_offset - 1);
        if first <= known_last {
            let available: Vec<(i64, i64)> =
                self.overlap(first, known_last, |run| run.state == RecordState::Available);
            for (first, last) in available {
                self.change(first, last, |run| run.state = RecordState::Archived);
                self.dirty = true;
            }
        }
        if last >= self.end_offset {
            self.push(last, RecordState::Archived, 0);
        }
    }

    /// Takes what is available of one batch.
    fn take(&mut self, member: &Arc<str>, batch: &LogBatch, limits: AcquireLimits, taking: &mut Taking) {
        let held = RecordState::Acquired { member: Arc::clone(member), until_ms: limits.until_ms };
        let mut room = if limits.exact { taking.left } else { i64::MAX };
        let first = batch.first_offset.max(self.start_offset);
        for (first, last) in self.overlap(first, batch.last_offset, |run| run.state == RecordState::Available)
        {
            let count = self.runs.range(..=first).next_back().map_or(0, |(_, run)| run.delivery_count);
            let portion = portion(last - first + 1, count, limits.delivery_count_limit);
            taking.is_over = portion.is_some();
            if room <= 0 || (taking.is_over && !taking.acquired.is_empty()) {
                return;
            }
            let last = last.min(first.saturating_add(room.min(portion.unwrap_or(i64::MAX)) - 1));
            self.change(first, last, |run| {
                run.state = held.clone();
                run.delivery_count = run.delivery_count.saturating_add(1);
            });
            if count == 0 {
                self.delivered += last - first + 1;
            }
            room -= taking.add(first, last, count.saturating_add(1));
            if taking.is_over {
                return;
            }
        }
        let first = first.max(self.end_offset);
        let room = room.min(limits.max_in_flight - self.delivered);
        let last = batch.last_offset.min(first.saturating_add(room.saturating_sub(1)));
        if first <= last {
            self.push(last, held, 1);
            self.delivered += taking.add(first, last, 1);
        }
    }

    /// The parts of runs in `first..=last` that `wanted` says.
    pub(super) fn overlap(&self, first: i64, last: i64, wanted: impl Fn(&Run) -> bool) -> Vec<(i64, i64)> {
        let from = self.runs.range(..=first).next_back().map_or(first, |(before, _)| *before);
        if from > last {
            return Vec::new();
        }
        let within = self.runs.range(from..=last).filter(|(_, run)| run.last >= first && wanted(run));
        within.map(|(at, run)| ((*at).max(first), run.last.min(last))).collect()
    }
}

impl Taking {
    /// How many they are.
    fn add(&mut self, first_offset: i64, last_offset: i64, delivery_count: i16) -> i64 {
        self.acquired.push(Acquired { first_offset, last_offset, delivery_count });
        let count = last_offset - first_offset + 1;
        self.left -= count;
        count
    }
}

/// How many of `length` records that were delivered `count` times before may be delivered together, and with no others; `None`: all of
/// them. A record that ends every member that gets it ends what is delivered with it, too: so the deliveries become smaller, and in
/// its last one a record is alone.
fn portion(length: i64, count: i16, limit: i16) -> Option<i64> {
    let together = (limit / 2 + limit % 2).max(DELIVERIES_TOGETHER_MIN);
    if count < together {
        return None;
    }
    if limit > DELIVERIES_TOGETHER_MIN && count >= limit - 1 {
        return Some(1);
    }
    let halvings = u32::try_from(count - together + 1).unwrap_or(0);
    Some(length.checked_shr(halvings).unwrap_or(0).max(1))
}
