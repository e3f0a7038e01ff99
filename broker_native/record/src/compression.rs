//! The codecs of Kafka, bounded: decompressing never gives, nor allocates, more than the caller allows.
//!
//! | codec | written | read |
//! |---|---|---|
//! | gzip | one member | one or more members |
//! | snappy | one raw block, as librdkafka does | raw, and the framing of xerial's snappy-java |
//! | lz4 | LZ4 frame, independent blocks of 64 KiB (Kafka's Java client reads no others) | LZ4 frames |
//! | zstd | one frame | one or more frames |
use std::borrow::Cow;
use std::io::{Read, Write};

use super::header::BatchError;
use super::layout::ATTR_COMPRESSION_MASK;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4 frame.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec that a batch's attributes name.
    ///
    /// # Errors
    /// [`BatchError::Codec`] for 5, 6 and 7.
    pub fn from_attributes(attributes: i16) -> Result<Self, BatchError> {
        let number = attributes & ATTR_COMPRESSION_MASK;
        Self::ALL.get(number as usize).copied().ok_or(BatchError::Codec(number))
    }

    /// The attribute bits of this codec.
    pub fn attribute_bits(self) -> i16 {
        self as i16
    }

    /// The name that `compression.type` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of this name, in any case; `uncompressed` is `none`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "uncompressed" => Some(Self::None),
            _ => Self::ALL.into_iter().find(|codec| codec.name() == name),
        }
    }
}

/// First bytes of a block stream of snappy-java.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Its magic, version and oldest compatible version.
const XERIAL_HEADER_LEN: usize = XERIAL_MAGIC.len() + 4 + 4;
/// No element of a snappy block makes more than 64 bytes of 3 (a copy with a 2-byte offset).
const SNAPPY_MAX_RATIO: usize = 64 / 3 + 1;

/// Decompresses `bytes` to at most `max_bytes`; without a codec they are only borrowed.
///
/// # Errors
/// [`BatchError::Decompressed`] when there is more than `max_bytes`, [`BatchError::Malformed`] when `bytes` are not
/// what the codec says.
pub fn decompress(codec: Codec, bytes: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>, BatchError> {
    if codec == Codec::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::new();
    decompress_into(codec, bytes, max_bytes, &mut out)?;
    Ok(Cow::Owned(out))
}

/// As [`decompress`], into a buffer that is emptied first and may be used again.
///
/// # Errors
/// As [`decompress`].
pub fn decompress_into(
    codec: Codec,
    bytes: &[u8],
    max_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), BatchError> {
    out.clear();
    match codec {
        Codec::None if bytes.len() > max_bytes => Err(BatchError::Decompressed(max_bytes as u64)),
        Codec::None => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        Codec::Gzip => {
            read_bounded(flate2::read::MultiGzDecoder::new(bytes), max_bytes, out, "not gzip data")
        }
        Codec::Snappy => unsnap(bytes, max_bytes, out),
        Codec::Lz4 => unlz4(bytes, max_bytes, out),
        Codec::Zstd => {
            let reader =
                zstd::stream::read::Decoder::with_buffer(bytes).map_err(|_| wrong("not zstd data"))?;
            read_bounded(reader, max_bytes, out, "not zstd data")
        }
    }
}

fn wrong(what: &'static str) -> BatchError {
    BatchError::Malformed(what)
}

/// Appends all of `reader` to `out`, or fails as soon as one byte too many has come.
fn read_bounded(
    reader: impl Read,
    max_bytes: usize,
    out: &mut Vec<u8>,
    what: &'static str,
) -> Result<(), BatchError> {
    let before = out.len();
    let limit = (max_bytes as u64).saturating_add(1);
    reader.take(limit).read_to_end(out).map_err(|_| wrong(what))?;
    if out.len() - before > max_bytes { Err(BatchError::Decompressed(max_bytes as u64)) } else { Ok(()) }
}

fn unlz4(bytes: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), BatchError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (unread, left) = (rest.len(), max_bytes - out.len());
        read_bounded(lz4_flex::frame::FrameDecoder::new(&mut rest), left, out, "not an LZ4 frame")?;
        if rest.len() == unread {
            return Err(wrong("not an LZ4 frame"));
        }
    }
    Ok(())
}

fn unsnap(bytes: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), BatchError> {
    if !bytes.starts_with(&XERIAL_MAGIC) {
        return unsnap_block(bytes, max_bytes, out);
    }
    let mut rest = bytes.get(XERIAL_HEADER_LEN..).ok_or(wrong("a cut snappy header"))?;
    while !rest.is_empty() {
        const CUT: BatchError = BatchError::Malformed("a cut snappy block");
        let (len, tail) = rest.split_first_chunk::<4>().ok_or(CUT)?;
        let (block, tail) = tail.split_at_checked(u32::from_be_bytes(*len) as usize).ok_or(CUT)?;
        unsnap_block(block, max_bytes, out)?;
        rest = tail;
    }
    Ok(())
}

/// Appends one raw block; the length it claims is checked before anything is allocated.
fn unsnap_block(block: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), BatchError> {
    const NOT_SNAPPY: BatchError = BatchError::Malformed("not snappy data");
    let claimed = snap::raw::decompress_len(block).map_err(|_| NOT_SNAPPY)?;
    if claimed > block.len().saturating_mul(SNAPPY_MAX_RATIO) {
        return Err(wrong("a snappy block claims more bytes than it can hold"));
    }
    let start = out.len();
    let end = start.checked_add(claimed).filter(|end| *end <= max_bytes);
    out.resize(end.ok_or(BatchError::Decompressed(max_bytes as u64))?, 0);
    let written = snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(|_| NOT_SNAPPY)?;
    if written == claimed { Ok(()) } else { Err(NOT_SNAPPY) }
}

/// Compresses `bytes`; `level` is the codec's own scale, `None` its default.
///
/// # Errors
/// [`BatchError::Level`] when the codec has no such level.
pub fn compress(codec: Codec, level: Option<i32>, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    compress_into(codec, level, bytes, &mut out)?;
    Ok(out)
}

/// Appends the compressed `bytes` to `out`.
///
/// # Errors
/// As [`compress`]; `out` may then hold a part.
pub fn compress_into(
    codec: Codec,
    level: Option<i32>,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BatchError> {
    check_level(codec, level)?;
    const FAILED: BatchError = BatchError::Malformed("the codec could not compress the records");
    match codec {
        Codec::None => out.extend_from_slice(bytes),
        Codec::Gzip => {
            let level = level.map_or(flate2::Compression::default(), |n| flate2::Compression::new(n as u32));
            let mut writer = flate2::write::GzEncoder::new(out, level);
            writer.write_all(bytes).and_then(|()| writer.finish().map(drop)).map_err(|_| FAILED)?;
        }
        Codec::Snappy => {
            let start = out.len();
            out.resize(start + snap::raw::max_compress_len(bytes.len()), 0);
            let written = snap::raw::Encoder::new().compress(bytes, &mut out[start..]).map_err(|_| FAILED)?;
            out.truncate(start + written);
        }
        Codec::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new()
                .block_size(lz4_flex::frame::BlockSize::Max64KB)
                .block_mode(lz4_flex::frame::BlockMode::Independent);
            let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(info, out);
            writer.write_all(bytes).map_err(|_| FAILED)?;
            writer.finish().map_err(|_| FAILED)?;
        }
        Codec::Zstd => {
            let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
            let frame = zstd::bulk::compress(bytes, level).map_err(|_| FAILED)?;
            out.extend_from_slice(&frame);
        }
    }
    Ok(())
}

/// # Errors
/// [`BatchError::Level`] when `codec` has no such level. Kafka's scales: gzip 1-9, lz4 1-17, zstd -131072 to 22. The
/// level of lz4 is accepted but has no effect: the one encoder here is the fast one.
pub fn check_level(codec: Codec, level: Option<i32>) -> Result<(), BatchError> {
    let range = match codec {
        Codec::Gzip => 1..=9,
        Codec::Lz4 => 1..=17,
        Codec::Zstd => -131_072..=22,
        Codec::None | Codec::Snappy => return Ok(()),
    };
    match level {
        Some(level) if !range.contains(&level) => Err(BatchError::Level { codec: codec.name(), level }),
        _ => Ok(()),
    }
}
