//! The batches of a segment from front to back, whole and with their CRCs checked, in bounded memory: a buffer of fixed
//! size that grows only for a batch which is larger, and then shrinks again.
//!
//! Compaction writes batches anew with a right CRC, so one that is wrong must be noticed before.
use std::io;

use crate::disk::DiskFile;
use pylog_record::header::{BatchError, BatchHeader};
use pylog_record::layout as at;

/// Why the walk ends early.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The operating system's reason.
    Io(io::Error),
    /// A batch is not what was written; the position where it stands.
    Bad(BatchError, u64),
}

/// The walk over one file.
pub(super) struct BatchStream<'a> {
    file: &'a dyn DiskFile,
    buffer: &'a mut Vec<u8>,
    buffer_bytes: usize,
    /// Position in the file of the first byte of `buffer`.
    position: u64,
    /// Bytes of `buffer` that were given out.
    used: usize,
    end: u64,
}

impl<'a> BatchStream<'a> {
    /// Walks `[position, end)`, reading `buffer_bytes` at a time into `buffer`.
    pub fn new(
        file: &'a dyn DiskFile,
        position: u64,
        end: u64,
        buffer: &'a mut Vec<u8>,
        buffer_bytes: usize,
    ) -> Self {
        buffer.clear();
        Self { file, buffer, buffer_bytes: buffer_bytes.max(at::HEADER_LEN), position, used: 0, end }
    }

    /// Where the next batch is looked for.
    pub fn position(&self) -> u64 {
        self.position + self.used as u64
    }

    /// The next batch; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(BatchHeader, &[u8])>, StreamError> {
        let at = self.position + self.used as u64;
        if at >= self.end {
            return Ok(None);
        }
        let bad = |error| StreamError::Bad(error, at);
        let cut = || bad(BatchError::Malformed("it is cut short"));
        self.have(at::HEADER_LEN)?;
        let header = BatchHeader::parse(self.rest()).map_err(bad)?.ok_or_else(cut)?;
        if header.size() as u64 > self.end - at {
            return Err(cut());
        }
        if header.base_offset < 0 || header.last_offset_delta < 0 || header.records_count < 0 {
            return Err(bad(BatchError::Malformed("a negative offset or count")));
        }
        self.have(header.size())?;
        let start = self.used;
        self.used += header.size();
        let batch = self.buffer.get(start..self.used).unwrap_or_default();
        header.verify_crc(batch).map_err(bad)?;
        Ok(Some((header, batch)))
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    /// Reads on until `bytes` of what comes next are there, or the end.
    fn have(&mut self, bytes: usize) -> Result<(), StreamError> {
        if self.rest().len() >= bytes {
            return Ok(());
        }
        self.position += self.used as u64;
        self.buffer.drain(..self.used);
        self.used = 0;
        let wanted = (self.end - self.position).min(bytes.max(self.buffer_bytes) as u64) as usize;
        let held = self.buffer.len();
        if wanted <= held {
            return Ok(());
        }
        if self.buffer.capacity() > self.buffer_bytes && wanted <= self.buffer_bytes {
            self.buffer.shrink_to(self.buffer_bytes);
        }
        self.buffer.resize(wanted, 0);
        let fresh = self.buffer.get_mut(held..).unwrap_or_default();
        let read = self.file.read_exact_at(fresh, self.position + held as u64);
        read.map_err(StreamError::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, RealDisk};
    use pylog_record::{BatchBuilder, Codec};

    fn batch(first: i64, bytes: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.set_base_offset(first);
        builder.append(0, None, Some(&vec![7; bytes]), &[]).unwrap();
        builder.finish(Codec::None).unwrap()
    }

    #[test]
    fn batches_of_every_size_pass_through_a_small_buffer() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
        let sizes = [0, 10, 3_000, 40, 100_000, 1, 1, 1];
        let bytes: Vec<u8> = (0..).zip(sizes).flat_map(|(i, size)| batch(i, size)).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let mut buffer = Vec::new();
        let mut stream = BatchStream::new(&*file, 0, bytes.len() as u64, &mut buffer, 200);
        let mut seen = Vec::new();
        while let Some((header, batch)) = stream.next().unwrap() {
            assert_eq!(header.size(), batch.len());
            seen.extend_from_slice(batch);
        }
        assert!(seen == bytes);
        assert!(buffer.capacity() < 1_000, "the large batch did not keep its room: {}", buffer.capacity());
    }

    #[test]
    fn a_changed_byte_and_a_cut_end_are_noticed_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
        let (first, mut second) = (batch(0, 50), batch(1, 50));
        second[80] ^= 1;
        file.write_all_at(&[first.clone(), second.clone()].concat(), 0).unwrap();
        let end = (first.len() + second.len()) as u64;
        for end in [end, end - 1] {
            let mut buffer = Vec::new();
            let mut stream = BatchStream::new(&*file, 0, end, &mut buffer, 64);
            assert!(stream.next().unwrap().is_some());
            let bad = stream.next().map(|_| ());
            assert!(matches!(bad, Err(StreamError::Bad(_, at)) if at == first.len() as u64), "{bad:?}");
        }
    }
}
