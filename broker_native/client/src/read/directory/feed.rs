//! The batches of a directory for a reader.
use std::sync::Arc;

use super::answers::Directory;
use crate::error::Result;
use crate::read::feed::{Aborted, Feed};
use crate::read::plan::OffsetRange;
use pylog_storage::directory::cursor::Cursor;

/// See the module.
#[derive(Debug)]
pub struct DirectoryFeed {
    directory: Arc<Directory>,
    cursor: Option<Cursor>,
}

impl DirectoryFeed {
    /// What a directory has.
    pub fn new(directory: Arc<Directory>) -> Self {
        Self { directory, cursor: None }
    }
}

impl Feed for DirectoryFeed {
    fn turn_to(&mut self, range: &OffsetRange) -> Result<Vec<Aborted>> {
        let offsets = range.start..range.end.unwrap_or(range.start);
        let (files, aborted) = self.directory.range(&range.topic_partition, &offsets)?;
        self.cursor = Some(Cursor::new(files, &offsets));
        Ok(aborted)
    }

    fn next_piece(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        self.cursor.as_mut().map_or(Ok(false), |cursor| self.directory.next_piece(cursor, piece))
    }
}
