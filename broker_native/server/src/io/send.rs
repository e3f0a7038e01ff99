//! Sends what waits in a response queue: answers of small requests with one writev, records straight from their file.
//!
//! | records of one partition | how they leave |
//! |---|---|
//! | all of an answer together small | copied into the answer before it gets here ([`super::response_queue::Answer::inlined`]) |
//! | 16 KiB and more, a real file, on Linux | sendfile: the broker's processor never touches a byte |
//! | else | file -> pooled buffer -> socket, in pieces of [`PIECE_BYTES`]; at most one is in memory |
//!
//! Over TLS all of a file goes through a pooled buffer, in pieces of [`ENCRYPTED_BYTES`]: from there it is encrypted, in full records.
//!
//! On loopback a copy gives one stream about a quarter more throughput than sendfile, but the copy is the broker's work
//! then and not the consumer's. Nothing is decoded.
use std::io::{self, IoSlice};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::buffers::Buffers;
use super::response_queue::{Part, ResponseQueue};
use super::sendfile::{for_sendfile, send_file};

/// Bytes of a file read at once: the copy stays in the processor's cache until it is sent.
const PIECE_BYTES: usize = /* 256 KiB */ 256 << 10;
/// Most bytes that are encrypted ahead of the socket: four full records, and what rustls holds back by default.
pub const ENCRYPTED_BYTES: usize = /* 64 KiB */ 64 << 10;
/// Most parts in one writev.
const SLICES_MAX: usize = 32;

/// Sends what the socket takes at once, at least one byte, and returns how many. `response_queue` must not be empty.
///
/// # Errors
/// Those of the socket and of the files; the connection is of no use any more, since its peer waits for bytes that
/// were promised.
pub async fn send_some(
    stream: &mut TcpStream,
    response_queue: &mut ResponseQueue,
    buffers: &Buffers,
) -> io::Result<usize> {
    let sent = if let Some((file, position, len)) = response_queue.parts.front().and_then(for_sendfile) {
        send_file(stream, file, position, len).await?
    } else {
        read_piece(response_queue, buffers, PIECE_BYTES, |part| for_sendfile(part).is_none())?;
        write_vectored(stream, response_queue).await?
    };
    take_off(response_queue, buffers, sent)
}

/// As [`send_some`], over TLS: returns how many bytes were encrypted, and the socket has all of them once the queue is empty.
///
/// # Errors
/// As [`send_some`].
pub async fn send_encrypted(
    stream: &mut (impl AsyncWrite + Unpin),
    response_queue: &mut ResponseQueue,
    buffers: &Buffers,
) -> io::Result<usize> {
    read_piece(response_queue, buffers, ENCRYPTED_BYTES, |_| true)?;
    let sent = write_vectored(stream, response_queue).await?;
    let sent = take_off(response_queue, buffers, sent)?;
    if response_queue.is_empty() {
        stream.flush().await?;
    }
    Ok(sent)
}

fn take_off(response_queue: &mut ResponseQueue, buffers: &Buffers, sent: usize) -> io::Result<usize> {
    if sent == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    // The consumed front of a piece is lost to its capacity until it is reclaimed.
    response_queue.sent(sent, |buffer| buffers.give_back(whole(buffer)));
    Ok(sent)
}

/// One writev of what is in memory at the front.
async fn write_vectored(
    stream: &mut (impl AsyncWrite + Unpin),
    response_queue: &ResponseQueue,
) -> io::Result<usize> {
    if let (1, Some(Part::Bytes(bytes))) = (response_queue.parts.len(), response_queue.parts.front()) {
        return stream.write(bytes).await;
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let mut count = 0;
    for (slot, part) in slices.iter_mut().zip(&response_queue.parts) {
        *slot = match part {
            Part::Bytes(bytes) => IoSlice::new(bytes),
            Part::Piece(bytes) => IoSlice::new(bytes),
            Part::File(_) => break,
        };
        count += 1;
    }
    stream.write_vectored(slices.get(..count).unwrap_or_default()).await
}

/// Reads the next piece, of at most `piece_bytes`, of the first file in reach, unless a piece waits already or the file is not `copied`.
fn read_piece(
    response_queue: &mut ResponseQueue,
    buffers: &Buffers,
    piece_bytes: usize,
    copied: impl Fn(&Part) -> bool,
) -> io::Result<()> {
    let mut reach = response_queue.parts.iter().take(SLICES_MAX);
    let Some(at) = reach.position(|part| !matches!(part, Part::Bytes(_))) else { return Ok(()) };
    let Some(part) = response_queue.parts.get_mut(at).filter(|part| copied(part)) else {
        return Ok(());
    };
    let Part::File(slice) = part else { return Ok(()) };
    let len = slice.len.min(piece_bytes);
    let mut buffer = buffers.for_bytes(len);
    buffer.resize(len, 0);
    slice.file.read_exact_at(&mut buffer, slice.position)?;
    slice.position += len as u64;
    slice.len -= len;
    if slice.len == 0 {
        response_queue.parts.remove(at);
    }
    response_queue.parts.insert(at, Part::Piece(buffer));
    Ok(())
}

/// The buffer with the space that was consumed from its front.
fn whole(mut buffer: bytes::BytesMut) -> bytes::BytesMut {
    buffer.clear();
    // Reclaims the front in place: the buffer is empty and nobody else holds it.
    buffer.reserve(1);
    buffer
}
