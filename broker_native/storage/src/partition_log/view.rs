//! What readers see of a log: its segments, and up to which offset they may read.
//!
//! Everything is behind one lock, which is held for a few instructions and never while a file is read: readers and flushes take a copy
//! ([`LogView::now`]) and go on without it. What decides where the high watermark and the last stable offset may go, the ends of
//! batches and the markers that are not acknowledged, changes only together with what readers see, and so is behind the same lock.
//! Only the positions where readers stopped have a lock of their own, which is held together with no other: a reader would
//! otherwise hold up appends twice with each read.
//!
//! Calls no listener and knows no file but its segments; thread-safe.
use std::sync::Arc;

use parking_lot::Mutex;

use super::batch_ends::{BatchEnds, KnownEnd};
use super::mark::Mark;
use super::pending_markers::PendingMarkers;
use super::read_hints::{Hint, ReadHints};
use super::role::Role;
use crate::producers::EndedTxn;
use crate::segment::Segment;
use crate::types::Offsets;

/// The segments of a log by base offset; the last one is appended to.
pub(super) type Segments = Arc<Vec<Arc<Segment>>>;

/// What readers see at one moment.
#[derive(Clone)]
pub(super) struct View {
    pub role: Role,
    pub segments: Segments,
    pub log_start_offset: i64,
    pub high_watermark: Mark,
    pub end: Mark,
    /// First offset of the oldest open transaction.
    pub first_open_offset: Option<i64>,
    /// First offset of the oldest transaction whose marker is not acknowledged yet.
    pub first_pending_offset: Option<i64>,
}

impl View {
    /// The log's offsets.
    pub fn offsets(&self) -> Offsets {
        let high_watermark = self.high_watermark.offset;
        let unstable = [self.first_open_offset, self.first_pending_offset].into_iter().flatten().min();
        // The beginning of a transaction may have been deleted.
        let stable = unstable.map_or(high_watermark, |offset| offset.max(self.log_start_offset));
        Offsets {
            log_start_offset: self.log_start_offset,
            high_watermark,
            last_stable_offset: stable.min(high_watermark),
            log_end_offset: self.end.offset,
        }
    }
}

/// What is behind the lock: what readers see, and what decides it.
struct Shown {
    view: View,
    /// Empty where the log is alone.
    ends: BatchEnds,
    markers: PendingMarkers,
    /// The epoch since which this broker writes the log without a break.
    led_since: i32,
}

impl Shown {
    /// Moves the high watermark; gives where to when it moved.
    fn show_until(&mut self, mark: Mark) -> Option<i64> {
        if mark.offset <= self.view.high_watermark.offset {
            return None;
        }
        self.view.high_watermark = mark;
        self.ends.pass(mark.offset);
        self.acknowledge();
        Some(mark.offset)
    }

    /// Forgets the markers before the high watermark.
    fn acknowledge(&mut self) {
        self.view.first_pending_offset = self.markers.acknowledge(self.view.high_watermark.offset);
    }

    /// The transactions of what was written.
    fn show_transactions(&mut self, written: TxnChange<impl IntoIterator<Item = EndedTxn>>) {
        self.view.first_open_offset = written.first_open_offset;
        written.ended.into_iter().for_each(|ended| self.markers.add(ended));
        self.acknowledge();
    }
}

/// What batches did to transactions.
pub(super) struct TxnChange<E> {
    /// First offset of the oldest transaction that is open now.
    pub first_open_offset: Option<i64>,
    /// Those that ended.
    pub ended: E,
}

/// What an append moved: the listeners for it are called.
pub(super) enum Advanced {
    Nothing,
    /// Of a log that is alone.
    HighWatermark(i64),
    /// What counts as the leader's.
    End(i64),
}

/// What became of a move of the high watermark.
pub(super) enum Move {
    /// It moved there, or stays.
    Done(Option<i64>),
    /// Where the last batch before the offset ends must be looked up in the index of this view.
    LookUp(View),
}

/// What this broker is to the log, and how far it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leadership {
    pub role: Role,
    /// The epoch since which this broker writes the log without a break.
    pub led_since: i32,
    pub high_watermark: i64,
}

/// What is left of a log that was truncated.
pub(super) struct Shortened {
    pub segments: Vec<Arc<Segment>>,
    pub log_start_offset: i64,
    pub end: Mark,
    pub is_empty: bool,
    pub first_open_offset: Option<i64>,
}

/// See the module.
pub(super) struct LogView {
    shown: Mutex<Shown>,
    hints: Mutex<ReadHints>,
}

impl LogView {
    /// Of a log that was just opened.
    pub fn new(view: View) -> Self {
        let (ends, markers) = (BatchEnds::default(), PendingMarkers::default());
        let shown = Shown { view, ends, markers, led_since: i32::MIN };
        Self { shown: Mutex::new(shown), hints: Mutex::default() }
    }

    /// What readers see now.
    pub fn now(&self) -> View {
        self.shown.lock().view.clone()
    }

    /// The log's offsets now.
    pub fn offsets(&self) -> Offsets {
        self.shown.lock().view.offsets()
    }

    /// First readable offset.
    pub fn log_start_offset(&self) -> i64 {
        self.shown.lock().view.log_start_offset
    }

    /// Where the log ends.
    pub fn end(&self) -> Mark {
        self.shown.lock().view.end
    }

    /// All segments.
    pub fn segments(&self) -> Segments {
        self.shown.lock().view.segments.clone()
    }

    /// All segments, and where the last one ends.
    pub fn segments_and_end(&self) -> (Segments, Mark) {
        let shown = self.shown.lock();
        (shown.view.segments.clone(), shown.view.end)
    }

    /// Whether the log still has the segments of `seen`: none was added, removed or replaced.
    pub fn has_segments_of(&self, seen: &View) -> bool {
        Arc::ptr_eq(&seen.segments, &self.shown.lock().view.segments)
    }

    /// What this broker is to the log.
    pub fn leadership(&self) -> Leadership {
        let shown = self.shown.lock();
        let View { role, high_watermark, .. } = shown.view;
        Leadership { role, led_since: shown.led_since, high_watermark: high_watermark.offset }
    }

    /// What this broker is to the log from now on.
    pub fn set_role(&self, role: Role, led_since: i32) {
        let shown = &mut *self.shown.lock();
        let had = std::mem::replace(&mut shown.view.role, role);
        shown.led_since = led_since;
        if role == Role::Alone || had == Role::Alone {
            shown.ends.begin(shown.view.high_watermark.offset == shown.view.end.offset);
        }
    }

    /// Moves the high watermark of a log that is alone up to `end`; gives the role, and whether it moved.
    pub fn advance_alone(&self, end: Mark) -> (Role, bool) {
        let shown = &mut *self.shown.lock();
        if shown.view.role != Role::Alone || shown.view.high_watermark.offset >= end.offset {
            return (shown.view.role, false);
        }
        shown.view.high_watermark = end;
        shown.acknowledge();
        (Role::Alone, true)
    }

    /// Moves the high watermark of a log with other replicas to `offset`, or to the last batch that ends before.
    pub fn move_high_watermark(&self, offset: i64) -> Move {
        let shown = &mut *self.shown.lock();
        let view = &shown.view;
        if view.role == Role::Alone || offset <= view.high_watermark.offset {
            return Move::Done(None);
        }
        let at_end = offset >= view.end.offset;
        match if at_end { KnownEnd::At(view.end) } else { shown.ends.before(offset) } {
            KnownEnd::At(mark) => Move::Done(shown.show_until(mark)),
            KnownEnd::Nothing => Move::Done(None),
            KnownEnd::Forgotten => Move::LookUp(view.clone()),
        }
    }

    /// Moves the high watermark to `mark`, which was found in `seen`; `None`: the log has other segments now.
    pub fn show_until(&self, seen: &View, mark: Mark) -> Option<Option<i64>> {
        let shown = &mut *self.shown.lock();
        Arc::ptr_eq(&shown.view.segments, &seen.segments).then(|| shown.show_until(mark))
    }

    /// Lets the high watermark begin at `mark`, behind which these transactions ended (first offset, offset of the marker).
    pub fn begin_at(&self, mark: Mark, ended: Vec<(i64, i64)>) {
        let shown = &mut *self.shown.lock();
        shown.view.high_watermark = mark;
        shown.ends.begin(false);
        ended.into_iter().for_each(|(first, marker)| shown.markers.hold(first, marker));
        shown.acknowledge();
    }

    /// Shows a batch that ends at `end`; gives the log's start, and what moved. `counts`: no flush needs to come first.
    pub fn show_batch(
        &self,
        end: Mark,
        counts: bool,
        transactions: Option<TxnChange<Option<EndedTxn>>>,
    ) -> (i64, Advanced) {
        let shown = &mut *self.shown.lock();
        shown.view.end = end;
        let advanced = match shown.view.role {
            Role::Alone if counts => {
                shown.view.high_watermark = end;
                Advanced::HighWatermark(end.offset)
            }
            Role::Alone => Advanced::Nothing,
            Role::Leader | Role::Follower => {
                shown.ends.push(end);
                if counts { Advanced::End(end.offset) } else { Advanced::Nothing }
            }
        };
        if let Some(transactions) = transactions {
            shown.show_transactions(transactions);
        }
        (shown.view.log_start_offset, advanced)
    }

    /// Shows what a follower wrote: batches that end at `ends`, the last of them at `end`.
    pub fn show_run(&self, end: Mark, ends: Vec<Mark>, transactions: TxnChange<Vec<EndedTxn>>) {
        let shown = &mut *self.shown.lock();
        shown.view.end = end;
        ends.into_iter().for_each(|end| shown.ends.push(end));
        shown.show_transactions(transactions);
    }

    /// Adds an empty segment, which is appended to from now on.
    pub fn add_segment(&self, segment: Arc<Segment>, offset: i64) {
        let shown = &mut *self.shown.lock();
        let view = &mut shown.view;
        view.end = Mark { offset, segment: segment.base_offset, position: 0 };
        let mut segments = Vec::with_capacity(view.segments.len() + 1);
        segments.extend(view.segments.iter().cloned());
        segments.push(segment);
        view.segments = Arc::new(segments);
        if view.high_watermark.offset == view.end.offset {
            view.high_watermark = view.end;
        }
    }

    /// An empty log has this segment and no other.
    pub fn set_only_segment(&self, segment: Arc<Segment>) {
        self.shown.lock().view.segments = Arc::new(vec![segment]);
    }

    /// Lets the log begin at `start`, or at its high watermark when that is before; gives the segments that end before its
    /// start, which it has no more.
    pub fn move_start(&self, start: i64) -> Vec<Arc<Segment>> {
        let view = &mut self.shown.lock().view;
        view.log_start_offset = view.log_start_offset.max(start.min(view.high_watermark.offset));
        let start = view.log_start_offset;
        let next_bases = view.segments.iter().skip(1).map(|s| s.base_offset);
        let count = next_bases.take_while(|base| *base <= start).count();
        let removed = view.segments.iter().take(count).cloned().collect();
        view.segments = Arc::new(view.segments.iter().skip(count).cloned().collect());
        removed
    }

    /// Shows `cleaned` in the place of `old`, a run of segments; the one behind them begins at `next_base`.
    pub fn replace_segments(&self, old: &[Arc<Segment>], cleaned: &Arc<Segment>, next_base: i64) {
        let is_old = |s: &Arc<Segment>| old.iter().any(|o| Arc::ptr_eq(s, o));
        let view = &mut self.shown.lock().view;
        let mut segments = Vec::with_capacity(view.segments.len());
        for segment in view.segments.iter() {
            if !is_old(segment) {
                segments.push(segment.clone());
            } else if old.first().is_some_and(|first| Arc::ptr_eq(first, segment)) {
                segments.push(cleaned.clone());
            }
        }
        // All that is replaced is acknowledged, so the mark stands at the end of it if it stands there at all.
        if old.iter().any(|o| o.base_offset == view.high_watermark.segment) {
            view.high_watermark = Mark { offset: next_base, segment: next_base, position: 0 };
        }
        view.segments = Arc::new(segments);
    }

    /// Goes on with what a truncation left.
    pub fn shorten(&self, left: Shortened) {
        *self.hints.lock() = ReadHints::default();
        let shown = &mut *self.shown.lock();
        let (view, end) = (&mut shown.view, left.end);
        view.segments = Arc::new(left.segments);
        view.log_start_offset = left.log_start_offset;
        view.end = end;
        if left.is_empty || view.high_watermark.offset >= end.offset {
            view.high_watermark = end;
            shown.ends.begin(true);
        } else {
            shown.ends.truncate(end);
        }
        view.first_open_offset = left.first_open_offset;
        view.first_pending_offset = shown.markers.truncate(end.offset, view.high_watermark.offset);
    }

    /// The position of `offset` in the segment, when a reader stopped there.
    pub fn hint(&self, offset: i64, segment_id: u64) -> Option<u64> {
        self.hints.lock().find(offset, segment_id)
    }

    /// A reader that began at `from` stopped there.
    pub fn note_read(&self, from: i64, hint: Hint) {
        self.hints.lock().note(from, hint);
    }
}
