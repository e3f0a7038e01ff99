//! Cuts a run of bytes (a fetch answer, a produce request, a part of a segment) into whole batches.
//!
//! A fetch answer may end in the middle of a batch, so a partial tail is the quiet end of the run. Neither the CRC nor
//! the records are looked at: see [`BatchHeader::verify_crc`] and [`super::reader`].
use super::header::{BatchError, BatchHeader};
use super::layout as at;

/// One whole batch: its header and all of its bytes, header included.
pub type BatchView<'a> = (BatchHeader, &'a [u8]);

/// The whole batches at the front of `bytes`, in order. After an error it ends.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes }
}

/// Iterator of [`batches`].
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// The bytes not yet cut: after the end, the partial tail (or what follows an error's batch).
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = match BatchHeader::parse(self.rest) {
            Ok(header) => header?,
            Err(error) => {
                self.rest = &[];
                return Some(Err(error));
            }
        };
        let (batch, rest) = self.rest.split_at_checked(header.size())?;
        self.rest = rest;
        Some(Ok((header, batch)))
    }
}

/// The records of a whole batch, still compressed: what follows its header.
pub fn body(batch: &[u8]) -> &[u8] {
    batch.get(at::RECORDS..).unwrap_or_default()
}
