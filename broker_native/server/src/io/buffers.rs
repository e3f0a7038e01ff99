//! Buffers that connections borrow while bytes are in them, so that an idle connection has none.
//!
//! Two sizes: [`SMALL_BYTES`], which every connection reads into first, and up to [`LARGE_BYTES`], for one large request
//! or a piece of a large answer. What comes back beyond the pool's bound is freed.
use bytes::BytesMut;
use parking_lot::Mutex;

/// Size of the buffer that a connection reads into first.
pub const SMALL_BYTES: usize = /* 64 KiB */ 64 << 10;
/// Largest buffer that is kept.
pub const LARGE_BYTES: usize = /* 2 MiB */ 2 << 20;
/// Most small buffers kept: 4 MiB.
const SMALL_KEPT: usize = 64;
/// Most large buffers kept: 16 MiB.
const LARGE_KEPT: usize = 8;

/// The pool. Any thread.
#[derive(Debug, Default)]
pub struct Buffers {
    small: Mutex<Vec<BytesMut>>,
    large: Mutex<Vec<BytesMut>>,
}

impl Buffers {
    /// An empty buffer of at least [`SMALL_BYTES`].
    pub fn small(&self) -> BytesMut {
        let kept = self.small.lock().pop();
        kept.unwrap_or_else(|| BytesMut::with_capacity(SMALL_BYTES))
    }

    /// An empty buffer for `bytes` in all. Beyond [`LARGE_BYTES`] it is smaller than asked and grows as bytes arrive,
    /// so that a claimed length costs nothing.
    pub fn for_bytes(&self, bytes: usize) -> BytesMut {
        if bytes <= SMALL_BYTES {
            return self.small();
        }
        let wanted = bytes.min(LARGE_BYTES);
        let kept = self.large.lock().pop();
        // Untouched pages of a fresh buffer cost no memory either.
        kept.filter(|buffer| buffer.capacity() >= wanted)
            .unwrap_or_else(|| BytesMut::with_capacity(wanted.next_power_of_two()))
    }

    /// Takes a buffer back.
    pub fn give_back(&self, mut buffer: BytesMut) {
        buffer.clear();
        let (pool, kept) = match buffer.capacity() {
            SMALL_BYTES => (&self.small, SMALL_KEPT),
            SMALL_BYTES.. if buffer.capacity() <= LARGE_BYTES => (&self.large, LARGE_KEPT),
            _ => return,
        };
        let mut pool = pool.lock();
        if pool.len() < kept {
            pool.push(buffer);
        }
    }
}
