//! Walks the batches of a file from front to back: headers only, or with every CRC checked.
//!
//! Reads in chunks of bounded size, whatever a header claims. A damaged batch is a value ([`Found::Bad`]), an error is
//! the operating system's.
use std::io;

use super::disk::DiskFile;
use pylog_record::control::{EndTxn, end_txn};
use pylog_record::header::{BatchError, BatchHeader};
use pylog_record::layout as at;

/// Bytes per read when only headers are wanted: one read covers an index interval of small batches.
const HEADER_CHUNK_BYTES: usize = 4 << 10;
/// Bytes per read when every byte is wanted.
const FULL_CHUNK_BYTES: usize = 256 << 10;
/// A control batch that is larger is no transaction marker, whose record has 10 bytes of key and value.
const MAX_MARKER_BYTES: usize = 4 << 10;

/// What stands at a position of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole batch.
    Batch(BatchHeader),
    /// Something else.
    Bad(BatchError),
    /// The end of what was to be walked.
    End,
}

/// The walk. `position` is where the next batch is looked for.
pub(super) struct Scanner<'a> {
    file: &'a dyn DiskFile,
    /// Position of the next batch, bytes.
    pub position: u64,
    end: u64,
    chunk: Vec<u8>,
    chunk_position: u64,
    chunk_bytes: usize,
    check_crc: bool,
}

impl<'a> Scanner<'a> {
    /// Walks `[position, end)` by headers.
    pub fn headers(file: &'a dyn DiskFile, position: u64, end: u64) -> Self {
        Self::new(file, position, end, false)
    }

    /// Walks `[position, end)` and checks each CRC.
    pub fn checked(file: &'a dyn DiskFile, position: u64, end: u64) -> Self {
        Self::new(file, position, end, true)
    }

    fn new(file: &'a dyn DiskFile, position: u64, end: u64, check_crc: bool) -> Self {
        let chunk_bytes = if check_crc { FULL_CHUNK_BYTES } else { HEADER_CHUNK_BYTES };
        Self { file, position, end, chunk: Vec::new(), chunk_position: 0, chunk_bytes, check_crc }
    }

    /// What stands at `position`; steps over it when it is a batch.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn step(&mut self) -> io::Result<Found> {
        if self.position >= self.end {
            return Ok(Found::End);
        }
        let header = match BatchHeader::parse(self.bytes_at(self.position, at::HEADER_LEN)?) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(Found::Bad(BatchError::Malformed("it is cut short"))),
            Err(bad) => return Ok(Found::Bad(bad)),
        };
        if let Err(bad) = plausible(&header, self.end - self.position) {
            return Ok(Found::Bad(bad));
        }
        if self.check_crc {
            let computed = self.crc(&header)?;
            if computed != header.crc {
                return Ok(Found::Bad(BatchError::Crc { stored: header.crc, computed }));
            }
        }
        self.position += header.size() as u64;
        Ok(Found::Batch(header))
    }

    /// CRC-32C of what the batch at `position` covers by it.
    fn crc(&mut self, header: &BatchHeader) -> io::Result<u32> {
        let end = self.position + header.size() as u64;
        let mut position = self.position + at::ATTRIBUTES as u64;
        let mut crc = 0;
        while position < end {
            let left = usize::try_from(end - position).unwrap_or(usize::MAX);
            let bytes = self.bytes_at(position, left.min(self.chunk_bytes))?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            crc = crc32c::crc32c_append(crc, bytes);
            position += bytes.len() as u64;
        }
        Ok(crc)
    }

    /// Up to `len` bytes at `position`, fewer only at the end of the walk.
    fn bytes_at(&mut self, position: u64, len: usize) -> io::Result<&[u8]> {
        let len = usize::try_from(self.end - position).map_or(len, |left| left.min(len));
        let held = self.chunk_position..self.chunk_position + self.chunk.len() as u64;
        if position < held.start || position + len as u64 > held.end {
            let wanted = self.chunk_bytes.max(len);
            let wanted = usize::try_from(self.end - position).map_or(wanted, |left| left.min(wanted));
            self.chunk.resize(wanted, 0);
            self.chunk_position = position;
            if let Err(cause) = self.file.read_exact_at(&mut self.chunk, position) {
                self.chunk.clear();
                return Err(cause);
            }
        }
        let start = (position - self.chunk_position) as usize;
        Ok(self.chunk.get(start..start + len).unwrap_or_default())
    }
}

/// What the batch with `header`, at `position`, says when it is a transaction marker. A control batch that is none ends nothing.
///
/// # Errors
/// Those of reading the file.
pub(super) fn marker_at(
    file: &dyn DiskFile,
    header: &BatchHeader,
    position: u64,
) -> io::Result<Option<EndTxn>> {
    if !header.is_control() || header.size() > MAX_MARKER_BYTES {
        return Ok(None);
    }
    let mut batch = vec![0; header.size()];
    file.read_exact_at(&mut batch, position)?;
    Ok(end_txn(&(*header, &batch)).ok().flatten())
}

/// Whether a header can be that of a batch in a log with `room` bytes left.
fn plausible(header: &BatchHeader, room: u64) -> Result<(), BatchError> {
    if header.size() as u64 > room {
        return Err(BatchError::Malformed("it is cut short"));
    }
    if header.base_offset < 0 || header.last_offset_delta < 0 {
        return Err(BatchError::Malformed("a negative offset"));
    }
    if header.base_offset.checked_add(header.last_offset_delta.into()).is_none_or(|last| last == i64::MAX) {
        return Err(BatchError::Malformed("an offset beyond all"));
    }
    Ok(())
}
