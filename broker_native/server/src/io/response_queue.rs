//! Answers on their way out: runs of bytes, and runs of a segment file that are never decoded.
use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::shares::Share;
use pylog_storage::LogSlice;

/// A part of an answer.
#[derive(Debug)]
#[allow(clippy::len_without_is_empty)]
pub enum Part {
    /// These bytes.
    Bytes(Bytes),
    /// These bytes of a file.
    File(LogSlice),
    /// Bytes of a file that were read and are not sent yet; the buffer goes back to the pool.
    Piece(BytesMut),
}

impl Part {
    /// Bytes left to send.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(slice) => slice.len,
            Self::Piece(bytes) => bytes.len(),
        }
    }

    /// Takes `count` bytes off the front; `count` is at most [`Part::len`].
    pub fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes(bytes) => bytes.advance(count),
            Self::File(slice) => {
                slice.position += count as u64;
                slice.len -= count;
            }
            Self::Piece(bytes) => bytes.advance(count),
        }
    }
}

/// One answer: its length prefix, header and body.
#[derive(Debug, Default)]
pub struct Answer {
    /// In the order to send them.
    pub parts: Vec<Part>,
    /// Given back when it is sent.
    pub held: Option<Share>,
    /// How long nothing is read from the client, which used more than its quota; 0 for others.
    pub pause_ms: i32,
}

impl Answer {
    /// An answer that is one run of bytes.
    pub fn of(bytes: Bytes) -> Self {
        Self { parts: vec![Part::Bytes(bytes)], ..Self::default() }
    }

    /// Bytes that it holds in memory.
    pub fn bytes(&self) -> usize {
        let held = |part: &Part| if matches!(part, Part::File(_)) { 0 } else { part.len() };
        self.parts.iter().map(held).sum()
    }

    /// The same answer as one run of bytes when its files' parts have at most `max_bytes` in all: one copy is cheaper
    /// than several parts to send.
    ///
    /// # Errors
    /// Those of the files.
    pub fn inlined(self, max_bytes: usize) -> std::io::Result<Self> {
        let is_file = |part: &&Part| matches!(part, Part::File(_));
        let in_files: usize = self.parts.iter().filter(is_file).map(Part::len).sum();
        if in_files == 0 || in_files > max_bytes {
            return Ok(self);
        }
        let mut run = BytesMut::with_capacity(self.parts.iter().map(Part::len).sum());
        for part in self.parts {
            match part {
                Part::Bytes(bytes) => run.extend_from_slice(&bytes),
                Part::Piece(bytes) => run.extend_from_slice(&bytes),
                Part::File(slice) => {
                    let start = run.len();
                    run.resize(start + slice.len, 0);
                    slice.file.read_exact_at(run.get_mut(start..).unwrap_or_default(), slice.position)?;
                }
            }
        }
        Ok(Self { held: self.held, pause_ms: self.pause_ms, ..Self::of(run.freeze()) })
    }
}

/// The queue of one connection.
#[derive(Debug, Default)]
pub struct ResponseQueue {
    /// What is left to send, in order.
    pub parts: VecDeque<Part>,
    bytes: usize,
    /// What the answers hold.
    held: Vec<Share>,
}

impl ResponseQueue {
    /// Queues an answer.
    pub fn push(&mut self, answer: Answer) {
        self.held.extend(answer.held);
        for part in answer.parts {
            self.bytes += part.len();
            self.parts.push_back(part);
        }
    }

    /// Bytes left to send.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all is sent.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes `count` sent bytes off; buffers of pieces that are done go to `done`.
    pub fn sent(&mut self, mut count: usize, mut done: impl FnMut(BytesMut)) {
        self.bytes -= count;
        while let Some(front) = self.parts.front_mut() {
            let len = front.len();
            if count < len {
                front.advance(count);
                return;
            }
            count -= len;
            if let Some(Part::Piece(buffer)) = self.parts.pop_front() {
                done(buffer);
            }
        }
        self.held.clear();
    }
}
