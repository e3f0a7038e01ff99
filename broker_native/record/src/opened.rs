//! The records of a compressed batch, looked at one after the other while they are decompressed.
//!
//! Memory is bounded by [`WINDOW_BYTES`] and the codec's own window, whatever the batch opens to; a snappy block, which can only be
//! opened whole, by the ratio of its codec. Nothing is kept of a record, so that a batch of millions costs no more than its bytes.
use std::io::Read;

use super::compression::{Codec, decompress_into};
use super::header::BatchError;
use super::heads::{HEAD_BYTES, Head, Heads};
use super::reader::{HEADER_COUNT, RawRecord, TRAILING_RECORD, take_record};
use super::varint::{MAX_I32_LEN, MAX_I64_LEN, TOO_LONG, TRUNCATED};

/// How much of the opened records is at hand at once; a longer record is passed part by part.
const WINDOW_BYTES: usize = /* 64 KiB */ 64 << 10;

const NOT_DATA: BatchError = BatchError::Malformed("the records are not what their codec says");

/// What is looked at of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// Milliseconds after the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Offset after the batch's base offset.
    pub offset_delta: i32,
    /// Whether it has a key.
    pub keyed: bool,
}

/// Opened records, from the front. Not more than `max_bytes` are opened.
pub struct Opened<'a> {
    source: Box<dyn Read + 'a>,
    window: Vec<u8>,
    at: usize,
    end: usize,
    /// How many bytes may still come from the source.
    left: u64,
    max_bytes: usize,
}

impl<'a> Opened<'a> {
    /// Of the body of a batch.
    ///
    /// # Errors
    /// [`BatchError::Malformed`] when it is not what the codec says, [`BatchError::Decompressed`].
    pub fn new(codec: Codec, body: &'a [u8], max_bytes: usize) -> Result<Self, BatchError> {
        let source: Box<dyn Read + 'a> = match codec {
            Codec::None => Box::new(body),
            Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(body)),
            Codec::Lz4 => Box::new(Lz4Frames::new(body)),
            Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(body).map_err(|_| NOT_DATA)?),
            Codec::Snappy => {
                let mut whole = Vec::new();
                decompress_into(codec, body, max_bytes, &mut whole)?;
                Box::new(std::io::Cursor::new(whole))
            }
        };
        // Small batches open to little.
        let size = body.len().saturating_mul(4).clamp(MAX_I32_LEN, WINDOW_BYTES);
        Ok(Self { source, window: vec![0; size], at: 0, end: 0, left: max_bytes as u64, max_bytes })
    }

    /// How many bytes were opened so far.
    pub fn opened_bytes(&self) -> usize {
        self.max_bytes - usize::try_from(self.left).unwrap_or(self.max_bytes)
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// As [`Opened::new`].
    pub fn step(&mut self) -> Result<Option<Looked>, BatchError> {
        self.step_seeing(None)
    }

    /// As [`Opened::step`]; also what the record's key and value begin with.
    ///
    /// # Errors
    /// As [`Opened::new`].
    pub fn step_heads(&mut self) -> Result<Option<Heads>, BatchError> {
        let mut heads = Heads::default();
        Ok(self.step_seeing(Some(&mut heads))?.map(|_| heads))
    }

    #[inline]
    fn step_seeing(&mut self, heads: Option<&mut Heads>) -> Result<Option<Looked>, BatchError> {
        if self.need(1)? == 0 {
            return Ok(None);
        }
        self.need(MAX_I32_LEN)?;
        let mut rest = self.at_hand();
        let before = rest.len();
        let length = super::varint::take_i32(&mut rest)?;
        let prefix = before - rest.len();
        let length =
            usize::try_from(length).map_err(|_| BatchError::Malformed("a record of negative length"))?;
        if prefix + length > self.window.len() {
            self.at += prefix;
            return self.step_long(length as u64, heads).map(Some);
        }
        if self.need(prefix + length)? < prefix + length {
            return Err(TRUNCATED);
        }
        let mut rest = self.at_hand();
        let before = rest.len();
        let RawRecord { timestamp_delta, offset_delta, key, value, headers } = take_record(&mut rest)?;
        for header in headers.iter() {
            header?;
        }
        if let Some(heads) = heads {
            *heads = Heads { key: Head::of(key), value: Head::of(value) };
        }
        let looked = Looked { timestamp_delta, offset_delta, keyed: key.is_some() };
        let taken = before - rest.len();
        self.at += taken;
        Ok(Some(looked))
    }

    /// A record that does not fit the window: its length is read, its fields are passed.
    fn step_long(&mut self, length: u64, heads: Option<&mut Heads>) -> Result<Looked, BatchError> {
        let mut left = length;
        self.skip(1, &mut left)?; // attributes
        let timestamp_delta = self.varint(&mut left, MAX_I64_LEN)?;
        let offset_delta = self.int(&mut left)?;
        let key = self.pass_field(&mut left)?;
        let value = self.pass_field(&mut left)?;
        let keyed = key != Head::Null;
        if let Some(heads) = heads {
            *heads = Heads { key, value };
        }
        let headers = self.int(&mut left)?;
        if headers < 0 {
            return Err(HEADER_COUNT);
        }
        for _ in 0..headers {
            if self.pass_field(&mut left)? == Head::Null {
                return Err(BatchError::Malformed("a header without a key"));
            }
            self.pass_field(&mut left)?;
        }
        if left > 0 {
            return Err(TRAILING_RECORD);
        }
        Ok(Looked { timestamp_delta, offset_delta, keyed })
    }

    /// Passes a field behind its length, and gives what it begins with.
    fn pass_field(&mut self, left: &mut u64) -> Result<Head, BatchError> {
        let Ok(length) = u64::try_from(self.int(left)?) else { return Ok(Head::Null) };
        let count = length.min(HEAD_BYTES as u64);
        if count > *left {
            return Err(TRUNCATED);
        }
        let head = Head::of(self.bytes(count as usize)?.get(..count as usize));
        self.skip(length, left)?;
        Ok(head)
    }

    fn int(&mut self, left: &mut u64) -> Result<i32, BatchError> {
        i32::try_from(self.varint(left, MAX_I32_LEN)?).map_err(|_| TOO_LONG)
    }

    /// A zigzag varint of at most `most` bytes.
    fn varint(&mut self, left: &mut u64, most: usize) -> Result<i64, BatchError> {
        let mut raw = 0_u64;
        for place in 0..most {
            let byte = *self.bytes(1)?.first().ok_or(TRUNCATED)?;
            self.skip(1, left)?;
            raw |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
            }
        }
        Err(TOO_LONG)
    }

    /// Passes `count` bytes of a record of which `left` are left.
    fn skip(&mut self, mut count: u64, left: &mut u64) -> Result<(), BatchError> {
        *left = left.checked_sub(count).ok_or(TRUNCATED)?;
        while count > 0 {
            let there = self.bytes(1)?.len() as u64;
            let step = there.min(count);
            self.at += step as usize;
            count -= step;
        }
        Ok(())
    }

    /// At least `count` bytes at hand.
    fn bytes(&mut self, count: usize) -> Result<&[u8], BatchError> {
        if self.need(count)? < count { Err(TRUNCATED) } else { Ok(self.at_hand()) }
    }

    fn at_hand(&self) -> &[u8] {
        self.window.get(self.at..self.end).unwrap_or_default()
    }

    /// Brings `count` bytes to hand, which fit the window, or all that are left; how many there are then.
    fn need(&mut self, count: usize) -> Result<usize, BatchError> {
        while self.end - self.at < count {
            if self.at > 0 {
                self.window.copy_within(self.at..self.end, 0);
                (self.at, self.end) = (0, self.end - self.at);
            }
            let room = self.window.get_mut(self.end..).unwrap_or_default();
            let read = self.source.read(room).map_err(|_| NOT_DATA)?;
            if read == 0 {
                break;
            }
            self.left =
                self.left.checked_sub(read as u64).ok_or(BatchError::Decompressed(self.max_bytes as u64))?;
            self.end += read;
        }
        Ok(self.end - self.at)
    }
}

/// LZ4 frames, one behind the other.
struct Lz4Frames<'a> {
    frame: Option<lz4_flex::frame::FrameDecoder<&'a [u8]>>,
    /// Bytes that were left where the frame begins.
    begun_at: usize,
}

impl<'a> Lz4Frames<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { frame: Some(lz4_flex::frame::FrameDecoder::new(bytes)), begun_at: bytes.len() }
    }
}

impl Read for Lz4Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while let Some(frame) = &mut self.frame {
            let read = frame.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let rest = *frame.get_ref();
            if !rest.is_empty() && rest.len() == self.begun_at {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            self.begun_at = rest.len();
            self.frame = (!rest.is_empty()).then(|| lz4_flex::frame::FrameDecoder::new(rest));
        }
        Ok(0)
    }
}
