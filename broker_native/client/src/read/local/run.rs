//! The bytes of one answer in a file, read piece by piece and checked batch by batch.
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::doubt::Doubt;
use pylog_record::batches;
use pylog_record::header::BatchHeader;
use pylog_wire::messages::fetch::InDirectory;

/// Bytes that are read at once, and decoded while the processor's cache has them; only a larger batch is read as a whole.
const PIECE_BYTES: usize = /* 256 KiB */ 256 << 10;

/// A buffer that is used again and again.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    buffer: Vec<u8>,
    len: usize,
}

impl Piece {
    /// Whole batches.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Room for `len` bytes; what it holds stays.
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        self.buffer.get_mut(..len).unwrap_or_default()
    }
}

/// What is left to read of a part of a file.
#[derive(Debug, Clone)]
pub(crate) struct LocalRun {
    file: Arc<File>,
    position: u64,
    left: usize,
    /// Where the next answer goes on: one past the last record, or behind a gap that compaction left.
    end_offset: i64,
    /// One past the last record so far; at first what was asked for.
    offset: i64,
    begun: bool,
    /// The epoch of the leader that answered: no batch of it is newer.
    leader_epoch: i32,
    /// The epoch of the last batch so far.
    batch_epoch: Option<i32>,
}

impl LocalRun {
    /// The part of `file` that an answer to a fetch from `offset` on names.
    pub fn new(file: Arc<File>, place: &InDirectory, offset: i64, leader_epoch: i32) -> Result<Self, Doubt> {
        let (position, left) = match (u64::try_from(place.position), usize::try_from(place.size)) {
            (Ok(position), Ok(size)) if size > 0 && place.next_offset > offset => (position, size),
            _ => return Err(Doubt::passing("the broker named no part of a file")),
        };
        let end_offset = place.next_offset;
        Ok(Self { file, position, left, end_offset, offset, begun: false, leader_epoch, batch_epoch: None })
    }

    /// Nothing is stored between its last record and this offset.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The epoch of the last batch that was read.
    pub fn batch_epoch(&self) -> Option<i32> {
        self.batch_epoch
    }

    /// Reads the next whole batches into `piece`; false at the end. After a doubt the run is of no more use; what earlier pieces had is
    /// good.
    pub fn next_piece(&mut self, piece: &mut Piece) -> Result<bool, Doubt> {
        piece.len = 0;
        if self.left == 0 {
            return Ok(false);
        }
        let mut len = PIECE_BYTES.min(self.left);
        self.read(piece.room(len), 0)?;
        let first = BatchHeader::parse(piece.room(len)).map_err(|error| self.odd(&error.to_string()))?;
        let size = first.map_or(usize::MAX, |header| header.size());
        if size > self.left {
            return Err(self.odd("a batch goes on behind the part that the broker named"));
        }
        if size > len {
            let read = std::mem::replace(&mut len, size);
            let rest = piece.room(size).get_mut(read..).unwrap_or_default();
            self.read(rest, read)?;
        }
        let whole = self.check(piece.room(len))?;
        piece.len = whole;
        self.position += whole as u64;
        self.left = self.left.saturating_sub(whole);
        Ok(true)
    }

    fn read(&self, bytes: &mut [u8], behind: usize) -> Result<(), Doubt> {
        let read = self.file.read_exact_at(bytes, self.position + behind as u64);
        read.map_err(|cause: Error| match cause.kind() {
            ErrorKind::UnexpectedEof => self.odd("the file was cut"),
            _ => self.odd(&cause.to_string()),
        })
    }

    /// Checks the whole batches at the front; gives their bytes.
    fn check(&mut self, bytes: &[u8]) -> Result<usize, Doubt> {
        let mut whole = 0;
        for view in batches(bytes) {
            let (header, batch) = view.map_err(|error| self.odd(&error.to_string()))?;
            header.verify_crc(batch).map_err(|error| self.odd(&error.to_string()))?;
            let follows = match self.begun {
                true => header.base_offset >= self.offset,
                false => header.last_offset() >= self.offset,
            };
            if !follows || header.last_offset_delta < 0 || header.last_offset() >= self.end_offset {
                return Err(self.odd(&format!("offset {} stands there", header.base_offset)));
            }
            if header.partition_leader_epoch > self.leader_epoch {
                return Err(self.odd("a batch is of a later leader"));
            }
            (self.begun, self.offset) = (true, header.last_offset().saturating_add(1));
            self.batch_epoch = Some(header.partition_leader_epoch);
            whole += batch.len();
        }
        if whole == 0 {
            return Err(self.odd("no batch stands there"));
        }
        Ok(whole)
    }

    fn odd(&self, what: &str) -> Doubt {
        Doubt::passing(format!("the file does not have offset {} as the broker said: {what}", self.offset))
    }
}
