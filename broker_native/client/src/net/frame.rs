//! Response buffers that are used again: a fetch answer of some MiB must not cost fresh pages from the kernel.
//!
//! A [`Frame`] becomes a [`Bytes`] that decoded messages slice; when the last slice is dropped, the memory comes back.
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Buffers kept for the next responses; one being read, one being decoded.
const KEPT: usize = 2;
/// A buffer of more bytes than this is given back to the system after use.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The buffers of one connection.
#[derive(Debug, Clone, Default)]
pub struct Frames(Arc<Mutex<Vec<Vec<u8>>>>);

/// One buffer, of which the first `len` bytes are the response.
struct Frame {
    bytes: Vec<u8>,
    len: usize,
    home: Frames,
}

impl Frames {
    /// Reads exactly `len` bytes.
    ///
    /// # Errors
    /// Those of `source`; `UnexpectedEof` when it ends early.
    pub fn read(&self, source: &mut impl Read, len: usize) -> io::Result<Bytes> {
        let mut bytes = self.0.lock().pop().unwrap_or_default();
        if bytes.len() < len {
            // Not `resize`: it would copy what nobody needs.
            bytes = vec![0; len];
        }
        let mut frame = Frame { bytes, len, home: self.clone() };
        let target = frame.bytes.get_mut(..len).unwrap_or_default();
        source.read_exact(target)?;
        Ok(Bytes::from_owner(frame))
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut kept = self.home.0.lock();
        if kept.len() < KEPT && bytes.len() <= KEPT_BYTES_MAX {
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_slice_is_dropped() {
        let frames = Frames::default();
        let first = frames.read(&mut &b"abcdef"[..], 6).unwrap();
        let slice = first.slice(2..4);
        let address = first.as_ptr();
        drop(first);
        let second = frames.read(&mut &b"ghi"[..], 3).unwrap();
        assert_eq!((&slice[..], &second[..]), (&b"cd"[..], &b"ghi"[..]));
        assert_ne!(second.as_ptr(), address, "a buffer in use was given out again");
        drop(slice);
        let third = frames.read(&mut &b"jkl"[..], 3).unwrap();
        assert_eq!((third.as_ptr(), &third[..]), (address, &b"jkl"[..]));
    }

    #[test]
    fn an_early_end_is_an_error() {
        let error = Frames::default().read(&mut &b"ab"[..], 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
