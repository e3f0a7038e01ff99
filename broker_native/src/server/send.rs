//! Sends what waits in an outbox: answers of small requests with one writev, records straight from their file.
//!
//! Records are copied file -> pooled buffer -> socket in pieces of [`PIECE_BYTES`], which was measured faster on loopback
//! than sendfile (DESIGN.md 11) and works for simulated disks too. Nothing is decoded. At most one piece per connection
//! is in memory.
use std::io::{self, IoSlice};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::buffers::Buffers;
use super::outbox::{Outbox, Part};

/// Bytes of a file read at once: the copy stays in the processor's cache until it is sent.
const PIECE_BYTES: usize = /* 256 KiB */ 256 << 10;
/// Most parts in one writev.
const SLICES_MAX: usize = 32;

/// Sends everything and returns the number of bytes.
///
/// # Errors
/// Those of the socket and of the files; the connection is of no use any more, since its peer waits for bytes that
/// were promised.
pub async fn send_all(stream: &mut TcpStream, outbox: &mut Outbox, buffers: &Buffers) -> io::Result<u64> {
    let mut total = 0;
    while !outbox.is_empty() {
        let sent = match outbox.parts.front() {
            Some(Part::Bytes(bytes)) if outbox.parts.len() == 1 => stream.write(bytes).await?,
            _ => {
                read_piece(outbox, buffers)?;
                write_vectored(stream, outbox).await?
            }
        };
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        total += sent as u64;
        // The consumed front of a piece is lost to its capacity, so a new buffer is cheaper than keeping it.
        outbox.sent(sent, |buffer| buffers.give_back(whole(buffer)));
    }
    Ok(total)
}

async fn write_vectored(stream: &mut TcpStream, outbox: &Outbox) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let mut count = 0;
    for (slot, part) in slices.iter_mut().zip(&outbox.parts) {
        *slot = match part {
            Part::Bytes(bytes) => IoSlice::new(bytes),
            Part::Piece(bytes) => IoSlice::new(bytes),
            Part::File(_) => break,
        };
        count += 1;
    }
    stream.write_vectored(slices.get(..count).unwrap_or_default()).await
}

/// Reads the next piece of the first file in reach, unless a piece waits already.
fn read_piece(outbox: &mut Outbox, buffers: &Buffers) -> io::Result<()> {
    let reach = outbox.parts.iter().take(SLICES_MAX);
    let Some(at) = reach.clone().position(|part| !matches!(part, Part::Bytes(_))) else { return Ok(()) };
    let Some(Part::File(slice)) = outbox.parts.get_mut(at) else { return Ok(()) };
    let len = slice.len.min(PIECE_BYTES);
    let mut buffer = buffers.for_bytes(len);
    buffer.resize(len, 0);
    slice.file.read_exact_at(&mut buffer, slice.position)?;
    slice.position += len as u64;
    slice.len -= len;
    if slice.len == 0 {
        outbox.parts.remove(at);
    }
    outbox.parts.insert(at, Part::Piece(buffer));
    Ok(())
}

/// The buffer with the space that was consumed from its front.
fn whole(mut buffer: bytes::BytesMut) -> bytes::BytesMut {
    buffer.clear();
    // Reclaims the front in place: the buffer is empty and nobody else holds it.
    buffer.reserve(1);
    buffer
}
