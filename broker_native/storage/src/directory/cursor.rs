//! The batches of a partition from an offset on, in order, whole, each with its checksum looked at.
use std::ops::Range;
use std::sync::Arc;

use super::damage::Damage;
use super::error::{DirectoryError, Result};
use super::fits::Neighbours;
use super::partition::{LOOKS, PartitionFiles};
use super::resume::next_batch;
use super::segments::SegmentFiles;
use crate::disk::DiskFile;
use crate::scan::{Found, Scanner};
use pylog_record::header::BatchHeader;
use pylog_record::{BatchError, batches};

/// Bytes that are read at once, and decoded while the processor's cache has them; only a larger batch is read as a whole.
const PIECE_BYTES: usize = /* 256 KiB */ 256 << 10;

/// See the module. After an error it is of no more use.
#[derive(Debug)]
pub struct Cursor {
    files: Arc<PartitionFiles>,
    segments: Arc<Vec<SegmentFiles>>,
    /// One past the last offset given.
    next: i64,
    end: i64,
    place: Option<Place>,
    skipped: Vec<Damage>,
}

/// Where in which file.
struct Place {
    segment: SegmentFiles,
    file: Arc<dyn DiskFile>,
    position: u64,
    len: u64,
    /// The first offset of the file behind it.
    next_base: i64,
    /// One past the last batch of the file so far, in it or before it; `None` where reading begins in the middle.
    expected: Option<i64>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("segment", &self.segment)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// What stands where bytes of a piece begin.
enum Next {
    /// So many bytes of whole batches.
    Whole(usize),
    /// Something else.
    Bad(String),
    /// The end of the file.
    End,
}

impl Cursor {
    /// From the batch that holds the first offset, or the next one there is, to the one that holds the last.
    pub fn new(files: Arc<PartitionFiles>, offsets: &Range<i64>) -> Self {
        let segments = files.segments();
        Self { files, segments, next: offsets.start, end: offsets.end, place: None, skipped: Vec::new() }
    }

    /// One past the last offset that was given.
    pub fn next_offset(&self) -> i64 {
        self.next
    }

    /// What was left out since this was asked last.
    pub fn take_skipped(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.skipped)
    }

    /// Puts the next whole batches into `piece`; `false` at the end. The first of all may begin before the range.
    ///
    /// # Errors
    /// [`DirectoryError::Damaged`] unless damage is skipped, [`DirectoryError::Removed`], [`DirectoryError::Shorter`],
    /// [`DirectoryError::File`].
    pub fn next_piece(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        piece.clear();
        while self.next < self.end {
            let mut place = match self.place.take() {
                Some(place) => place,
                None => self.open(self.next)?,
            };
            match self.read(&mut place, piece)? {
                Next::Whole(len) => {
                    piece.truncate(len);
                    place.position += len as u64;
                    self.place = Some(place);
                    if len > 0 {
                        return Ok(true);
                    }
                }
                Next::Bad(reason) => {
                    if !self.pass_damage(&mut place, reason)? {
                        return self.finish(self.next);
                    }
                    self.place = Some(place);
                }
                Next::End => match self.after(&place)? {
                    Some(next) => self.place = Some(next),
                    None => {
                        let last = self.segments.last().map_or(0, |segment| segment.base_offset);
                        return self.finish(self.next.max(last));
                    }
                },
            }
        }
        Ok(false)
    }

    /// Whether what is no batch ends the log, see the module's map.
    fn is_end(&self, place: &Place) -> bool {
        !self.files.skips_damaged() && self.next.max(place.segment.base_offset) >= self.files.trusted_end()
    }

    /// The log ends at `end`.
    fn finish(&mut self, end: i64) -> Result<bool> {
        if end < self.end {
            return Err(DirectoryError::Shorter { at: self.files.at().clone(), end, wanted: self.end });
        }
        self.next = self.end;
        Ok(false)
    }

    /// The file that holds `offset`, near it.
    fn open(&mut self, offset: i64) -> Result<Place> {
        let mut look = 1;
        loop {
            // Where a log begins is written down before files are removed, and in the middle of a file by DeleteRecords.
            let is_left = offset >= self.files.log_start();
            let found = self.segments.partition_point(|segment| segment.base_offset <= offset).checked_sub(1);
            let opened = match found.filter(|_| is_left).and_then(|found| self.segments.get(found)) {
                Some(segment) => Place::open(segment, self.behind(segment), Some(offset)),
                None => Err(self.removed(offset)),
            };
            match opened {
                Err(error) if error.is_missing_file() && look < LOOKS => {
                    self.segments = self.files.look_again()?
                }
                opened => return opened,
            }
            look += 1;
        }
    }

    /// The file behind one that was read; `None` behind the last.
    fn after(&mut self, place: &Place) -> Result<Option<Place>> {
        let base_offset = place.segment.base_offset;
        let next = self.segments.iter().find(|segment| segment.base_offset > base_offset);
        let Some(next) = next.cloned() else { return Ok(None) };
        self.note_gap(&next);
        match Place::open(&next, self.behind(&next), None) {
            // A broker has renamed it: what holds the offset now is looked for.
            Err(error) if error.is_missing_file() => {
                self.segments = self.files.look_again()?;
                self.open(self.next).map(Some)
            }
            opened => opened.map(Some),
        }
    }

    /// The first offset of the file behind `segment`.
    fn behind(&self, segment: &SegmentFiles) -> i64 {
        let behind = self.segments.iter().find(|other| other.base_offset > segment.base_offset);
        behind.map_or(i64::MAX, |behind| behind.base_offset)
    }

    fn removed(&self, offset: i64) -> DirectoryError {
        DirectoryError::Removed { at: self.files.at().clone(), offset, first: self.files.log_start() }
    }

    /// Offsets between two files that neither has: compaction takes records, and nothing else does.
    fn note_gap(&mut self, behind: &SegmentFiles) {
        if self.next < behind.base_offset && self.next > self.files.log_start() && !self.files.was_compacted()
        {
            let reason = format!(
                "the file begins at offset {}, and the one before ends at {}; was the topic compacted, or is a file missing?",
                behind.base_offset, self.next
            );
            self.skipped.push(Damage {
                at: self.files.at().clone(),
                file: behind.log(),
                position: 0,
                bytes: 0,
                offset: self.next,
                next_offset: Some(behind.base_offset),
                reason,
            });
        }
    }

    fn read(&mut self, place: &mut Place, piece: &mut Vec<u8>) -> Result<Next> {
        let failed = |place: &Place, cause: std::io::Error| place.segment.failed(&cause);
        let left = place.len.saturating_sub(place.position);
        if left == 0 {
            return Ok(Next::End);
        }
        let len = usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        piece.resize(len, 0);
        place.file.read_exact_at(piece, place.position).map_err(|cause| failed(place, cause))?;
        match self.check(place, piece) {
            Ok(0) => {}
            Ok(whole) => return Ok(Next::Whole(whole)),
            Err(reason) => return Ok(Next::Bad(reason)),
        }
        // One batch is larger than a piece, or is cut short. What a header claims is believed when the checksum is right.
        let mut scanner = Scanner::checked(&*place.file, place.position, place.len);
        let header = match scanner.step().map_err(|cause| failed(place, cause))? {
            Found::Batch(header) => header,
            Found::Bad(bad) => return Ok(Next::Bad(bad.to_string())),
            Found::End => return Ok(Next::End),
        };
        piece.resize(header.size(), 0);
        place.file.read_exact_at(piece, place.position).map_err(|cause| failed(place, cause))?;
        Ok(self.check(place, piece).map_or_else(Next::Bad, Next::Whole))
    }

    /// Looks at the whole batches at the front, and says how many bytes of them are good; what is wrong when the first is not.
    fn check(&mut self, place: &mut Place, bytes: &[u8]) -> Result<usize, String> {
        let mut whole = 0;
        for view in batches(bytes) {
            let checked = view.and_then(|(header, batch)| header.verify_crc(batch).map(|()| header));
            let behind = place.position + (whole + batch_len(&checked)) as u64;
            match checked
                .map_err(|bad| bad.to_string())
                .and_then(|header| self.follow(place, &header, behind))
            {
                Ok(0) => break,
                Ok(size) => whole += size,
                Err(_) if whole > 0 => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok(whole)
    }

    /// Takes a batch, whose place must be right; its bytes, 0 when it is behind the range. `behind` is where the next one begins.
    fn follow(&mut self, place: &mut Place, header: &BatchHeader, behind: u64) -> Result<usize, String> {
        let neighbours = Neighbours {
            within: place.segment.base_offset..place.next_base,
            expected: place.expected,
            was_compacted: self.files.was_compacted(),
        };
        match neighbours.fit(header, &*place.file, behind, place.len) {
            Ok(true) => {}
            Ok(false) => return Err(format!("offset {} stands there", header.base_offset)),
            Err(cause) => return Err(cause.to_string()),
        }
        if header.base_offset >= self.end {
            self.next = self.end;
            return Ok(0);
        }
        // Batches before the range are passed.
        place.expected = Some(header.last_offset() + 1);
        self.next = self.next.max(header.last_offset() + 1);
        Ok(header.size())
    }

    /// Turns to where whole batches go on in the file, when damage may be passed: it lies before the range, or is to be skipped. `false`:
    /// the log ends here.
    fn pass_damage(&mut self, place: &mut Place, reason: String) -> Result<bool> {
        let least = place.expected.unwrap_or(place.segment.base_offset);
        let found = next_batch(&*place.file, place.position, place.len, least);
        let found = found.map_err(|cause| place.segment.failed(&cause))?;
        let damaged = place.position..found.map_or(place.len, |(position, _)| position);
        // Reading began before the range, at what the index knows.
        let is_before = place.expected.is_none_or(|expected| expected < self.next)
            && found.is_some_and(|(_, header)| header.base_offset <= self.next);
        if !is_before && self.is_end(place) {
            return Ok(false);
        }
        if !is_before {
            let damage = Damage {
                at: self.files.at().clone(),
                file: place.segment.log(),
                position: damaged.start,
                bytes: damaged.end - damaged.start,
                offset: self.next.max(place.segment.base_offset),
                next_offset: found.map(|(_, header)| header.base_offset),
                reason,
            };
            if !self.files.skips_damaged() {
                return Err(DirectoryError::Damaged(Box::new(damage)));
            }
            self.skipped.push(damage);
        }
        place.position = damaged.end;
        place.expected = found.map(|(_, header)| header.base_offset);
        Ok(true)
    }
}

/// Bytes of a batch that was looked at.
fn batch_len(checked: &Result<BatchHeader, BatchError>) -> usize {
    checked.as_ref().map_or(0, BatchHeader::size)
}

impl Place {
    fn open(segment: &SegmentFiles, next_base: i64, near: Option<i64>) -> Result<Self> {
        let file = segment.open()?;
        let len = file.len().map_err(|cause| segment.failed(&cause))?;
        let position = near.map_or(0, |offset| segment.start_near(&*file, offset));
        let expected = (position == 0).then_some(segment.base_offset);
        Ok(Self { segment: segment.clone(), file, position, len, next_base, expected })
    }
}
