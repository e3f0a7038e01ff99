//! The batches of a partition from an offset on, in order, whole, each with its checksum looked at.
use std::ops::Range;
use std::sync::Arc;

use super::damage::Damage;
use super::error::{DirectoryError, Result};
use super::partition::{LOOKS, PartitionFiles};
use super::resume::next_batch;
use super::segments::SegmentFiles;
use crate::disk::DiskFile;
use crate::scan::{Found, Scanner};
use pylog_record::batches;
use pylog_record::header::BatchHeader;

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
    /// Whether no batch of the file was given yet.
    at_border: bool,
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
                Next::Bad(reason) if self.is_end(&place) => return self.finish(Some(reason)),
                Next::Bad(reason) => {
                    place.position = self.pass_damage(&place, reason)?;
                    self.place = Some(place);
                }
                Next::End => match self.after(&place)? {
                    Some(next) => self.place = Some(next),
                    None => return self.finish(None),
                },
            }
        }
        Ok(false)
    }

    /// Whether what is no batch ends the log, see the module's map.
    fn is_end(&self, place: &Place) -> bool {
        !self.files.skips_damaged() && self.next.max(place.segment.base_offset) >= self.files.trusted_end()
    }

    /// The files end, and nothing is missing.
    fn finish(&mut self, reason: Option<String>) -> Result<bool> {
        let last = self.segments.last().map_or(0, |segment| segment.base_offset);
        let end = if reason.is_some() { self.next } else { self.next.max(last) };
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
            let found = self.segments.partition_point(|segment| segment.base_offset <= offset).checked_sub(1);
            let opened = match found.and_then(|found| self.segments.get(found)) {
                Some(segment) => Place::open(segment, Some(offset)),
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
        match Place::open(&next, None) {
            // A broker has renamed it: what holds the offset now is looked for.
            Err(error) if error.is_missing_file() => {
                self.segments = self.files.look_again()?;
                self.open(self.next).map(Some)
            }
            opened => opened.map(Some),
        }
    }

    fn removed(&self, offset: i64) -> DirectoryError {
        let first = self.segments.first().map_or(0, |segment| segment.base_offset);
        DirectoryError::Removed { at: self.files.at().clone(), offset, first }
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
            match checked.map_err(|bad| bad.to_string()).and_then(|header| self.follow(place, &header)) {
                Ok(0) => break,
                Ok(size) => whole += size,
                Err(_) if whole > 0 => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok(whole)
    }

    /// Takes a batch, whose place must be right; its bytes, 0 when it is behind the range.
    fn follow(&mut self, place: &mut Place, header: &BatchHeader) -> Result<usize, String> {
        let follows = header.base_offset >= place.segment.base_offset
            && header.last_offset_delta >= 0
            && (place.at_border || header.base_offset >= self.next);
        if !follows {
            return Err(format!("offset {} stands there", header.base_offset));
        }
        if header.base_offset >= self.end {
            self.next = self.end;
            return Ok(0);
        }
        // Batches before the range, or that the file before had as well, are passed.
        if header.last_offset() >= self.next {
            place.at_border = false;
            self.next = header.last_offset().saturating_add(1);
        }
        Ok(header.size())
    }

    /// Where whole batches go on in the file, when damage may be passed: it lies before the range, or is to be skipped.
    fn pass_damage(&mut self, place: &Place, reason: String) -> Result<u64> {
        let least = if place.at_border { place.segment.base_offset } else { self.next };
        let found = next_batch(&*place.file, place.position + 1, place.len, least);
        let found = found.map_err(|cause| place.segment.failed(&cause))?;
        let position = found.map_or(place.len, |(position, _)| position);
        if place.at_border && found.is_some_and(|(_, header)| header.base_offset <= self.next) {
            return Ok(position);
        }
        let damage = Damage {
            at: self.files.at().clone(),
            file: place.segment.log(),
            position: place.position,
            bytes: position - place.position,
            offset: self.next.max(place.segment.base_offset),
            next_offset: found.map(|(_, header)| header.base_offset),
            reason,
        };
        if !self.files.skips_damaged() {
            return Err(DirectoryError::Damaged(Box::new(damage)));
        }
        self.skipped.push(damage);
        Ok(position)
    }
}

impl Place {
    fn open(segment: &SegmentFiles, near: Option<i64>) -> Result<Self> {
        let file = segment.open()?;
        let len = file.len().map_err(|cause| segment.failed(&cause))?;
        let position = near.map_or(0, |offset| segment.start_near(&*file, offset));
        Ok(Self { segment: segment.clone(), file, position, len, at_border: true })
    }
}
