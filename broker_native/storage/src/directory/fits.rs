//! Whether a batch may stand where it does. The checksum of a batch does not cover its first offset, so what stands around it must agree.
use std::io;
use std::ops::Range;

use crate::disk::DiskFile;
use pylog_record::header::BatchHeader;
use pylog_record::layout;

/// What is known of the place of a batch.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// From the first offset of the batch's file to that of the next file.
    pub within: Range<i64>,
    /// One past the last offset before it; `None` where reading begins in the middle of a file.
    pub expected: Option<i64>,
    /// Whether compaction took records: offsets may be missing.
    pub was_compacted: bool,
}

impl Neighbours {
    /// Whether `header` may stand there, with the batch that begins at `behind` in the file.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn fit(&self, header: &BatchHeader, file: &dyn DiskFile, behind: u64, end: u64) -> io::Result<bool> {
        let (first, last) = (header.base_offset, header.last_offset());
        let is_inside = header.last_offset_delta >= 0 && self.within.start <= first && last < self.within.end;
        if !is_inside || self.expected.is_some_and(|expected| first < expected) {
            return Ok(false);
        }
        if self.expected == Some(first) {
            return Ok(true);
        }
        // Offsets are missing before it: by compaction, or because it says another offset than it had.
        Ok(match header_at(file, behind, end)? {
            Some(next) => next.base_offset > last,
            None => self.within.end < i64::MAX || self.was_compacted || self.expected.is_none(),
        })
    }
}

/// The header at `position`, when there is one.
///
/// # Errors
/// Those of reading the file.
pub(super) fn header_at(file: &dyn DiskFile, position: u64, end: u64) -> io::Result<Option<BatchHeader>> {
    let mut bytes = [0; layout::HEADER_LEN];
    if position + bytes.len() as u64 > end {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, position)?;
    Ok(BatchHeader::parse(&bytes).ok().flatten())
}
