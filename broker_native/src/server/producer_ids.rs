//! Ids for idempotent producers: unique over the life of the data directory.
//!
//! Ids are reserved in blocks of [`BLOCK_IDS`] by a small file that is synced before the first id of a block is handed
//! out, so that a crash wastes ids but never repeats one.
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::storage::disk::{Disk, OpenMode};

/// Ids reserved by one write, as in Kafka.
const BLOCK_IDS: i64 = 1000;
/// In the data directory; holds the first id that was never reserved, in decimal.
const FILE: &str = "producer-ids";
/// Written first, then renamed.
const FILE_TMP: &str = "producer-ids.tmp";
/// No reservation is longer.
const FILE_MAX_BYTES: usize = 32;

/// The source of ids.
pub struct ProducerIds {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    block: Mutex<Block>,
}

/// `[next, end)` can be handed out; empty until the first is asked for.
#[derive(Default)]
struct Block {
    next: i64,
    end: i64,
}

impl ProducerIds {
    /// Ids of the data directory `dir`. Touches nothing yet.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Self {
        Self { disk, dir, block: Mutex::default() }
    }

    /// An id that nobody had before.
    ///
    /// # Errors
    /// The reservation could not be read or written durably.
    pub fn next(&self) -> io::Result<i64> {
        let mut block = self.block.lock();
        if block.next == block.end {
            let next = self.reserved()?;
            self.reserve(next + BLOCK_IDS)?;
            *block = Block { next, end: next + BLOCK_IDS };
        }
        block.next += 1;
        Ok(block.next - 1)
    }

    fn reserved(&self) -> io::Result<i64> {
        let file = match self.disk.open(&self.dir.join(FILE), OpenMode::Read) {
            Ok(file) => file,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut text = [0; FILE_MAX_BYTES];
        let len = file.read_at(&mut text, 0)?;
        std::str::from_utf8(text.get(..len).unwrap_or_default())
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} holds no number")))
    }

    fn reserve(&self, end: i64) -> io::Result<()> {
        let tmp = self.dir.join(FILE_TMP);
        let file = self.disk.open(&tmp, OpenMode::CreateEmpty)?;
        file.write_all_at(format!("{end}\n").as_bytes(), 0)?;
        file.sync_data()?;
        self.disk.rename(&tmp, &self.dir.join(FILE))?;
        self.disk.sync_dir(&self.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::RealDisk;

    #[test]
    fn no_id_comes_twice_over_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _restart in 0..3 {
            let ids = ProducerIds::new(Arc::new(RealDisk), dir.path().into());
            for _ in 0..BLOCK_IDS + 7 {
                assert!(seen.insert(ids.next().unwrap()));
            }
        }
        assert_eq!(seen.len() as i64, 3 * (BLOCK_IDS + 7));
    }

    #[test]
    fn a_damaged_reservation_is_an_error_not_an_old_id() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "12x").unwrap();
        let ids = ProducerIds::new(Arc::new(RealDisk), dir.path().into());
        assert_eq!(ids.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
