//! Where the batches between the high watermark and the log's end end. The high watermark of a log with other replicas
//! moves to one of these places, and must not look for it in the file each time.
use std::collections::VecDeque;

use super::mark::Mark;

/// Most batches that are remembered. Beyond it the oldest are forgotten, and their ends are looked up in the index.
const MAX_ENDS: usize = 4096;

/// See the module. Empty where the log is alone.
#[derive(Default)]
pub(super) struct BatchEnds {
    marks: VecDeque<Mark>,
    /// Whether batches may end between the high watermark and the first mark.
    forgot: bool,
}

/// What is known of the batches that end before an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownEnd {
    /// The last batch that ends at or before the offset ends here.
    At(Mark),
    /// None ends between the high watermark and the offset.
    Nothing,
    /// It must be looked up in the index.
    Forgotten,
}

impl BatchEnds {
    /// Begins anew. `complete`: there is no batch behind the high watermark.
    pub fn begin(&mut self, complete: bool) {
        self.marks.clear();
        self.forgot = !complete;
    }

    /// A batch was written, and ends here.
    pub fn push(&mut self, end: Mark) {
        if self.marks.len() >= MAX_ENDS {
            self.marks.pop_front();
            self.forgot = true;
        }
        self.marks.push_back(end);
    }

    /// The last end up to `offset`, which lies behind the high watermark.
    pub fn before(&self, offset: i64) -> KnownEnd {
        let count = self.marks.partition_point(|mark| mark.offset <= offset);
        match count.checked_sub(1).and_then(|last| self.marks.get(last)) {
            Some(mark) => KnownEnd::At(*mark),
            None if self.forgot => KnownEnd::Forgotten,
            None => KnownEnd::Nothing,
        }
    }

    /// The high watermark has moved to `offset`.
    pub fn pass(&mut self, offset: i64) {
        let count = self.marks.partition_point(|mark| mark.offset <= offset);
        self.forgot &= count == 0;
        self.marks.drain(..count);
    }

    /// The log was truncated to `end`.
    pub fn truncate(&mut self, end: Mark) {
        let count = self.marks.partition_point(|mark| mark.offset < end.offset);
        self.marks.truncate(count);
        self.marks.push_back(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(offset: i64) -> Mark {
        Mark { offset, segment: 0, position: offset as u64 * 10 }
    }

    #[test]
    fn an_offset_inside_a_batch_is_rounded_down_to_the_end_of_the_one_before() {
        let mut ends = BatchEnds::default();
        [5, 8, 20].into_iter().for_each(|offset| ends.push(mark(offset)));
        assert_eq!(ends.before(4), KnownEnd::Nothing);
        assert_eq!(ends.before(7), KnownEnd::At(mark(5)));
        assert_eq!(ends.before(8), KnownEnd::At(mark(8)));
        ends.pass(8);
        assert_eq!((ends.before(19), ends.before(20)), (KnownEnd::Nothing, KnownEnd::At(mark(20))));
    }

    #[test]
    fn what_was_forgotten_is_never_taken_for_nothing() {
        let mut ends = BatchEnds::default();
        (1..=MAX_ENDS as i64 + 1).for_each(|offset| ends.push(mark(offset)));
        assert_eq!(ends.marks.len(), MAX_ENDS);
        assert_eq!(ends.before(1), KnownEnd::Forgotten);
        ends.pass(1);
        assert_eq!(ends.before(1), KnownEnd::Forgotten, "it was looked up, and other batches may end there");
        ends.pass(2);
        assert_eq!(ends.before(2), KnownEnd::Nothing);
        ends.begin(false);
        assert_eq!(ends.before(9), KnownEnd::Forgotten);
    }

    #[test]
    fn a_truncation_leaves_the_ends_before_it_and_itself() {
        let mut ends = BatchEnds::default();
        [5, 8, 20].into_iter().for_each(|offset| ends.push(mark(offset)));
        let end = Mark { offset: 8, segment: 8, position: 0 };
        ends.truncate(end);
        assert_eq!((ends.before(7), ends.before(30)), (KnownEnd::At(mark(5)), KnownEnd::At(end)));
    }
}
