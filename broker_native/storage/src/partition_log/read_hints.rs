//! Where the last reads ended: a consumer that reads on needs no index.

/// Readers whose next position is remembered.
const HINTS: usize = 8;

/// The newest positions, one for each of a few readers.
#[derive(Default)]
pub(super) struct ReadHints {
    marks: [Option<Hint>; HINTS],
    next: usize,
}

/// A batch boundary; the segment by its id, since compaction gives another one the same base offset.
#[derive(Clone, Copy)]
pub(super) struct Hint {
    pub offset: i64,
    pub segment_id: u64,
    pub position: u64,
}

impl ReadHints {
    /// The position of `offset` in the segment, when a reader stopped there.
    pub fn find(&self, offset: i64, segment_id: u64) -> Option<u64> {
        let mut known = self.marks.iter().flatten();
        known.find(|hint| hint.offset == offset && hint.segment_id == segment_id).map(|hint| hint.position)
    }

    /// Replaces the mark the reader came from, so that one fast reader does not push the others out.
    pub fn note(&mut self, from: i64, mark: Hint) {
        let slot = self.marks.iter().position(|known| known.is_some_and(|m| m.offset == from));
        let slot = slot.unwrap_or_else(|| {
            self.next = (self.next + 1) % HINTS;
            self.next
        });
        if let Some(slot) = self.marks.get_mut(slot) {
            *slot = Some(mark);
        }
    }
}
