//! The one writer of frames, and how records leave apart from the bytes around them.
//!
//! Small byte fields are copied into the frame. Records that lie in a file ([`Writer::with_records_apart`]) or are
//! [`SHARE_FROM_BYTES`] and longer are not: the frame becomes a list of [`Chunk`]s that the socket's owner sends one
//! after another (writev, sendfile). The frame's length prefix counts them all.
use std::collections::VecDeque;

use bytes::Bytes;

use super::error::WireError;

/// Byte fields this long are passed on as they are; copying shorter ones is cheaper than one more part to send.
pub const SHARE_FROM_BYTES: usize = 16 * 1024;

/// A part of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// These bytes.
    Bytes(Bytes),
    /// The records of the `index`-th partition of the answer, in order of topics and partitions: `len` bytes that
    /// the caller has.
    Records {
        /// Which partition, from 0.
        index: usize,
        /// How many bytes; never 0.
        len: usize,
    },
}

impl Chunk {
    /// Bytes this part has on the wire.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Records { len, .. } => *len,
        }
    }
}

/// Collects one frame.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// Parts that stand between `out[..position]` and `out[position..]`.
    apart: Vec<(usize, Chunk)>,
    apart_bytes: usize,
    /// Lengths of the byte fields to come that the caller sends itself.
    lengths: VecDeque<Option<usize>>,
    next_index: usize,
}

impl Writer {
    /// An empty frame.
    pub fn new() -> Self {
        Self::with_capacity(256)
    }

    /// An empty frame with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// The i-th byte field written becomes `Chunk::Records { index: i, len }` when `lengths[i]` is `Some(len)`, and
    /// is taken from the message when it is `None` or beyond the end.
    pub fn with_records_apart(lengths: impl IntoIterator<Item = Option<usize>>) -> Self {
        Self { lengths: lengths.into_iter().collect(), ..Self::new() }
    }

    /// Bytes written so far, those apart included.
    pub fn len(&self) -> usize {
        self.out.len() + self.apart_bytes
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes as they are.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends an unsigned LEB128 integer.
    #[inline]
    pub(super) fn uvarint(&mut self, value: u32) {
        let (bytes, len) = uvarint(value);
        self.raw(bytes.get(..len).unwrap_or_default());
    }

    /// Appends a length of bytes (`width` 2 or 4) or elements (4); `None` stands for null.
    #[inline]
    pub(super) fn length(
        &mut self,
        len: Option<usize>,
        flexible: bool,
        width: usize,
    ) -> Result<(), WireError> {
        let max = if width == 2 { i16::MAX as usize } else { i32::MAX as usize };
        let signed = match len {
            None => -1,
            Some(len) if len <= max => len as i32,
            Some(len) => return Err(WireError::TooLong { len, max }),
        };
        if flexible {
            self.uvarint(signed.wrapping_add(1) as u32);
        } else if width == 2 {
            self.raw(&(signed as i16).to_be_bytes());
        } else {
            self.raw(&signed.to_be_bytes());
        }
        Ok(())
    }

    /// Appends a byte field, copied, shared or announced for the caller to send.
    pub(super) fn bytes(&mut self, bytes: Option<&Bytes>, flexible: bool) -> Result<(), WireError> {
        let index = self.next_index;
        self.next_index += 1;
        if let Some(len) = self.lengths.pop_front().flatten() {
            self.length(Some(len), flexible, 4)?;
            if len > 0 {
                self.set_apart(Chunk::Records { index, len });
            }
            return Ok(());
        }
        self.length(bytes.map(Bytes::len), flexible, 4)?;
        match bytes {
            Some(bytes) if bytes.len() >= SHARE_FROM_BYTES => self.set_apart(Chunk::Bytes(bytes.clone())),
            Some(bytes) => self.raw(bytes),
            None => {}
        }
        Ok(())
    }

    fn set_apart(&mut self, chunk: Chunk) {
        self.apart_bytes += chunk.size_bytes();
        self.apart.push((self.out.len(), chunk));
    }

    /// Appends a tagged field whose payload `payload` writes; it must hold no byte field.
    #[inline]
    pub(super) fn tag(
        &mut self,
        tag: u32,
        payload: impl FnOnce(&mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.uvarint(tag);
        let start = self.out.len();
        payload(self)?;
        let (bytes, len) = uvarint((self.out.len() - start) as u32);
        self.out.splice(start..start, bytes.into_iter().take(len));
        Ok(())
    }

    /// Leaves four bytes for the frame's length; [`Writer::close_frame`] fills them.
    pub(super) fn open_frame(&mut self) {
        self.raw(&[0; 4]);
    }

    /// Writes the frame's length into its first four bytes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a frame that a signed 32-bit length cannot name.
    pub(super) fn close_frame(&mut self) -> Result<(), WireError> {
        let len = self.len().saturating_sub(4);
        let size = i32::try_from(len).map_err(|_| WireError::TooLong { len, max: i32::MAX as usize })?;
        if let Some(prefix) = self.out.first_chunk_mut::<4>() {
            *prefix = size.to_be_bytes();
        }
        Ok(())
    }

    /// The frame in parts, in the order to send them; none is empty.
    pub fn into_chunks(self) -> Vec<Chunk> {
        let mut rest = Bytes::from(self.out);
        let mut chunks = Vec::with_capacity(self.apart.len() * 2 + 1);
        let mut taken = 0;
        for (position, chunk) in self.apart {
            if position > taken {
                chunks.push(Chunk::Bytes(rest.split_to(position - taken)));
                taken = position;
            }
            chunks.push(chunk);
        }
        if !rest.is_empty() {
            chunks.push(Chunk::Bytes(rest));
        }
        chunks
    }

    /// The frame as one run of bytes; records announced for the caller to send are left out.
    pub fn into_bytes(self) -> Bytes {
        if self.apart.is_empty() {
            return Bytes::from(self.out);
        }
        let mut whole = Vec::with_capacity(self.len());
        for chunk in self.into_chunks() {
            if let Chunk::Bytes(bytes) = chunk {
                whole.extend_from_slice(&bytes);
            }
        }
        Bytes::from(whole)
    }
}

/// LEB128: the bytes and how many of them count.
#[inline]
fn uvarint(mut value: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut len = 0;
    for byte in &mut bytes {
        len += 1;
        *byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (bytes, len)
}
