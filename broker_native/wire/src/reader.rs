//! The one reader of peers' bytes: every length is checked against the bytes left before anything is allocated.
//!
//! Bounds, all of them enforced here and nowhere else:
//! - a claimed count of elements is refused when the smallest encoding of that many elements exceeds the bytes left, or
//!   when it is more than [`MAX_ELEMENTS`] (of tagged fields [`MAX_TAGGED_FIELDS`]), as Apache Kafka 4.4 refuses them;
//! - arrays and strings together take at most `memory_limit_bytes` (records do not count: they are slices of the
//!   frame), because one empty string is 1 byte on the wire and 24 in memory;
//! - recursion is bounded by the messages' types, none of which contains itself.
use bytes::Bytes;

use super::error::WireError;

/// Memory that the decoded form of one message may take unless the caller says otherwise: about 200,000 partitions.
pub const MEMORY_LIMIT_BYTES: usize = 32 * 1024 * 1024;

/// Most elements of one array.
pub const MAX_ELEMENTS: usize = 1_000_000;

/// Most tagged fields of one struct, known or not.
pub const MAX_TAGGED_FIELDS: usize = 10_000;

/// What a non-empty string costs beside its bytes: the allocator's smallest block.
const STRING_OVERHEAD_BYTES: usize = 32;

/// A position in one frame (the bytes after the length prefix).
#[derive(Debug)]
pub struct Reader {
    frame: Bytes,
    at: usize,
    end: usize,
    memory_left: usize,
    memory_limit: usize,
}

impl Reader {
    /// Reads `frame`, with [`MEMORY_LIMIT_BYTES`].
    pub fn new(frame: Bytes) -> Self {
        Self::with_memory_limit(frame, MEMORY_LIMIT_BYTES)
    }

    /// Reads `frame`; its decoded arrays and strings may take `memory_limit_bytes`.
    pub fn with_memory_limit(frame: Bytes, memory_limit_bytes: usize) -> Self {
        let end = frame.len();
        Self { frame, at: 0, end, memory_left: memory_limit_bytes, memory_limit: memory_limit_bytes }
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.end - self.at
    }

    /// Position in the frame.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`WireError::Trailing`] when bytes are left.
    pub fn finish(self) -> Result<(), WireError> {
        if self.left() == 0 { Ok(()) } else { Err(WireError::Trailing { at: self.at, left: self.left() }) }
    }

    /// The next `N` bytes.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = self.frame.get(self.at..self.end).unwrap_or_default();
        let Some(bytes) = rest.first_chunk::<N>() else {
            return Err(WireError::Truncated { at: self.at, needed: N - rest.len() });
        };
        self.at += N;
        Ok(*bytes)
    }

    /// An unsigned LEB128 integer of at most 32 bits.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Varint`].
    #[inline]
    pub(super) fn uvarint(&mut self) -> Result<u32, WireError> {
        let start = self.at;
        let mut value = 0u32;
        for shift in [0, 7, 14, 21] {
            let [byte] = self.array::<1>()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        let [byte] = self.array::<1>()?;
        if byte > 0x0f {
            return Err(WireError::Varint { at: start });
        }
        Ok(value | u32::from(byte) << 28)
    }

    /// A length of bytes (`width` 2 or 4) or of elements (4); `None` stands for null.
    #[inline]
    fn length(&mut self, flexible: bool, width: usize) -> Result<Option<usize>, WireError> {
        let at = self.at;
        let claimed = if flexible {
            i64::from(self.uvarint()?) - 1
        } else if width == 2 {
            i64::from(i16::from_be_bytes(self.array()?))
        } else {
            i64::from(i32::from_be_bytes(self.array()?))
        };
        match usize::try_from(claimed) {
            Ok(len) if len <= self.left() => Ok(Some(len)),
            Err(_) if claimed == -1 => Ok(None),
            _ => Err(WireError::Length { at, claimed, left: self.left() }),
        }
    }

    /// The number of elements of an array whose elements take at least `element_bytes` on the wire and
    /// `element_memory` in memory; `None` stands for null.
    #[inline]
    pub(super) fn count(
        &mut self,
        flexible: bool,
        element_bytes: usize,
        element_memory: usize,
    ) -> Result<Option<usize>, WireError> {
        let at = self.at;
        let Some(count) = self.length(flexible, 4)? else { return Ok(None) };
        if count > self.left() / element_bytes.max(1) {
            return Err(WireError::Length { at, claimed: count as i64, left: self.left() });
        }
        at_most(MAX_ELEMENTS, count, at)?;
        self.charge(count.saturating_mul(element_memory))?;
        Ok(Some(count))
    }

    /// A string; `None` stands for null.
    #[inline]
    pub(super) fn string(&mut self, flexible: bool) -> Result<Option<String>, WireError> {
        let Some(len) = self.length(flexible, 2)? else { return Ok(None) };
        if len > 0 {
            self.charge(len + STRING_OVERHEAD_BYTES)?;
        }
        let at = self.at;
        let bytes = self.frame.get(at..at + len).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| WireError::Utf8 { at })?.to_owned();
        self.at += len;
        Ok(Some(text))
    }

    /// Bytes as a slice of the frame, not a copy; `None` stands for null.
    #[inline]
    pub(super) fn bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, WireError> {
        let Some(len) = self.length(flexible, 4)? else { return Ok(None) };
        let bytes = self.frame.slice(self.at..self.at + len);
        self.at += len;
        Ok(Some(bytes))
    }

    /// Hands each tagged field (KIP-482) to `known`, which returns whether it read it; others are skipped.
    ///
    /// # Errors
    /// Those of `known`, and [`WireError::Trailing`] when it read less than the field has.
    #[inline]
    pub(super) fn tagged(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, WireError>,
    ) -> Result<(), WireError> {
        let at = self.at;
        let fields = self.uvarint()? as usize;
        at_most(MAX_TAGGED_FIELDS, fields, at)?;
        for _ in 0..fields {
            let tag = self.uvarint()?;
            let at = self.at;
            let size = self.uvarint()? as usize;
            if size > self.left() {
                return Err(WireError::Length { at, claimed: size as i64, left: self.left() });
            }
            let (outer, start) = (self.end, self.at);
            self.end = start + size;
            if !known(tag, self)? {
                self.at = self.end;
            }
            if self.at != self.end {
                return Err(WireError::Trailing { at: self.at, left: self.left() });
            }
            self.end = outer;
        }
        Ok(())
    }

    /// Takes `bytes` of memory from what the message may have.
    #[inline]
    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        match self.memory_left.checked_sub(bytes) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(WireError::Memory { at: self.at, limit_bytes: self.memory_limit }),
        }
    }
}

#[inline]
fn at_most(most: usize, claimed: usize, at: usize) -> Result<(), WireError> {
    if claimed > most { Err(WireError::TooMany { at, claimed, most }) } else { Ok(()) }
}
