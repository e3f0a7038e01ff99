//! Records for a member.
use std::sync::Arc;

use super::partition::{Run, SharePartition, State};
use super::requests::{Acquired, Batch};

/// What a member may have.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// So many records, and what is in the same batch as the last of them.
    pub max_records: i64,
    /// No record more than that.
    pub exact: bool,
    /// Records that may be in flight.
    pub max_in_flight: i64,
    /// Until when the locks hold, by the steady clock.
    pub until_ms: i64,
}

impl SharePartition {
    /// Gives `member` what is available of `batches`, which the log has from `from` on, one behind the other. Offsets between them
    /// have no records any more.
    pub fn acquire(&mut self, member: &Arc<str>, from: i64, batches: &[Batch], wish: Wish) -> Vec<Acquired> {
        let mut acquired = Vec::new();
        // An administrator set it back meanwhile: what was read is not what comes next.
        if from > self.end_offset {
            return acquired;
        }
        let mut left = wish.max_records.max(0);
        let mut at = from;
        for batch in batches {
            if left <= 0 {
                break;
            }
            self.leave_out(at, batch.first_offset - 1);
            at = batch.last_offset + 1;
            if batch.is_void {
                self.leave_out(batch.first_offset, batch.last_offset);
                continue;
            }
            let limit = if wish.exact { left } else { i64::MAX };
            let taken = self.take(member, batch, limit, wish, &mut acquired);
            left -= taken;
            if batch.last_offset >= self.end_offset {
                break;
            }
        }
        self.advance();
        acquired
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
                self.overlap(first, known_last, |run| run.state == State::Available);
            for (first, last) in available {
                self.change(first, last, |run| run.state = State::Archived);
                self.dirty = true;
            }
        }
        if last >= self.end_offset {
            self.push(last, State::Archived, 0);
        }
    }

    /// Takes what is available of one batch, at most `limit` records.
    fn take(
        &mut self,
        member: &Arc<str>,
        batch: &Batch,
        limit: i64,
        wish: Wish,
        acquired: &mut Vec<Acquired>,
    ) -> i64 {
        let held = State::Acquired { member: Arc::clone(member), until_ms: wish.until_ms };
        let first = batch.first_offset.max(self.start_offset);
        let mut taken = 0;
        let known = self.overlap(first, batch.last_offset, |run| run.state == State::Available);
        for (first, last) in known {
            let last = last.min(first.saturating_add(limit - taken - 1));
            if last < first {
                return taken;
            }
            self.change(first, last, |run| {
                run.state = held.clone();
                run.delivery_count = run.delivery_count.saturating_add(1);
            });
            let count =
                self.runs.range(first..=last).map(|(first, run)| (*first, run.last, run.delivery_count));
            acquired.extend(count.map(|(first_offset, last_offset, delivery_count)| Acquired {
                first_offset,
                last_offset,
                delivery_count,
            }));
            taken += last - first + 1;
        }
        let first = first.max(self.end_offset);
        let room = (wish.max_in_flight - self.in_flight()).min(limit - taken);
        let last = batch.last_offset.min(first.saturating_add(room - 1));
        if first <= last {
            self.push(last, held, 1);
            acquired.push(Acquired { first_offset: first, last_offset: last, delivery_count: 1 });
            taken += last - first + 1;
        }
        taken
    }

    /// Records that were delivered and are still in the window.
    fn in_flight(&self) -> i64 {
        let delivered = self.runs().filter(|(_, run)| run.delivery_count > 0);
        delivered.map(|(first, run)| run.last - first + 1).sum()
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
