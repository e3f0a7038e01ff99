//! The window of a share partition: runs of neighbouring offsets in the same state, without a hole between them.
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the records of a run are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordState {
    /// Any member may have them.
    Available,
    /// A member has them.
    Acquired {
        /// Which one.
        member: Arc<str>,
        /// Until when, by the steady clock.
        until_ms: i64,
    },
    /// Processed.
    Acknowledged,
    /// Not to be delivered again: rejected, delivered too often, or not there at all.
    Archived,
}

impl RecordState {
    /// Whether they are done with.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }
}

/// Neighbouring offsets in the same state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The last one.
    pub last: i64,
    /// Where they are.
    pub state: RecordState,
    /// How often they were delivered, the delivery that goes on included; 0 of offsets without records.
    pub delivery_count: i16,
}

/// What one group does with one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePartition {
    /// Everything before it is done with.
    pub(super) start_offset: i64,
    /// The first offset behind the window.
    pub(super) end_offset: i64,
    /// By their first offsets; they cover the window.
    pub(super) runs: BTreeMap<i64, Run>,
    /// How often an administrator set the start offset, or a crash took records from the end of the log.
    pub(super) state_epoch: i32,
    /// Whether something is to be written down.
    pub(super) dirty: bool,
    /// Records that were delivered and are still in the window.
    pub(super) delivered: i64,
}

impl SharePartition {
    /// One that begins at `start_offset`.
    pub fn new(start_offset: i64) -> Self {
        Self {
            start_offset,
            end_offset: start_offset,
            runs: BTreeMap::new(),
            state_epoch: 0,
            dirty: true,
            delivered: 0,
        }
    }

    /// Everything before it is done with.
    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The first offset that was not delivered yet.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The window's runs with their first offsets.
    pub fn runs(&self) -> impl Iterator<Item = (i64, &Run)> {
        self.runs.iter().map(|(first, run)| (*first, run))
    }

    /// The first offset to be read for the next request; `None`: the most records that are allowed are in flight.
    pub fn next_offset(&self, max_in_flight: i64) -> Option<i64> {
        let available =
            self.runs().find(|(_, run)| run.state == RecordState::Available).map(|(first, _)| first);
        available.or_else(|| (self.delivered < max_in_flight).then_some(self.end_offset))
    }

    /// Whether a member holds a record.
    pub fn is_held(&self) -> bool {
        self.runs.values().any(|run| matches!(run.state, RecordState::Acquired { .. }))
    }

    /// When the first lock is over.
    pub fn next_lock_ms(&self) -> Option<i64> {
        let until = |run: &Run| match run.state {
            RecordState::Acquired { until_ms, .. } => Some(until_ms),
            _ => None,
        };
        self.runs.values().filter_map(until).min()
    }

    /// The log has the offsets `first..end` only: what was deleted is done with, and what a crash took from the log's end was
    /// never delivered.
    pub fn fit(&mut self, first: i64, end: i64) {
        if self.end_offset > end {
            let end = end.max(first);
            self.split(end);
            drop(self.runs.split_off(&end));
            self.end_offset = end;
            self.start_offset = self.start_offset.min(end);
            // What is written down knows of more: this takes its place.
            self.state_epoch = self.state_epoch.saturating_add(1);
            self.recount();
            self.dirty = true;
        }
        if self.start_offset < first {
            self.split(first);
            self.runs = self.runs.split_off(&first);
            self.start_offset = first;
            self.end_offset = self.end_offset.max(first);
            self.recount();
            self.dirty = true;
        }
        self.advance();
    }

    /// A run begins at `offset` if it is in the window.
    pub(super) fn split(&mut self, offset: i64) {
        let Some((&first, run)) = self.runs.range_mut(..offset).next_back() else { return };
        if run.last >= offset {
            let behind = run.clone();
            run.last = offset - 1;
            debug_assert!(first < offset);
            self.runs.insert(offset, behind);
        }
    }

    /// Changes what is at `first..=last`, all of it in the window.
    pub(super) fn change(&mut self, first: i64, last: i64, change: impl Fn(&mut Run)) {
        self.split(first);
        self.split(last + 1);
        for run in self.runs.range_mut(first..=last).map(|(_, run)| run) {
            change(run);
        }
    }

    /// Puts a run behind the window.
    pub(super) fn push(&mut self, last: i64, state: RecordState, delivery_count: i16) {
        self.runs.insert(self.end_offset, Run { last, state, delivery_count });
        self.end_offset = last + 1;
    }

    /// Leaves behind what is done with, and joins neighbours that became alike.
    pub(super) fn advance(&mut self) {
        while let Some(first) = self.runs.first_entry().filter(|first| first.get().state.is_final()) {
            self.start_offset = first.remove().last + 1;
            self.dirty = true;
        }
        let mut joined: BTreeMap<i64, Run> = BTreeMap::new();
        for (first, run) in std::mem::take(&mut self.runs) {
            match joined.last_entry() {
                Some(mut before) if alike(before.get(), &run) => before.get_mut().last = run.last,
                _ => drop(joined.insert(first, run)),
            }
        }
        self.runs = joined;
        self.recount();
    }

    fn recount(&mut self) {
        let delivered = self.runs().filter(|(_, run)| run.delivery_count > 0);
        self.delivered = delivered.map(|(first, run)| run.last - first + 1).sum();
    }
}

fn alike(one: &Run, other: &Run) -> bool {
    one.state == other.state && one.delivery_count == other.delivery_count
}
