//! Records out of the broker's own files, where this process sees its data directory.
//!
//! | file | what it does |
//! |---|---|
//! | here | what a fetch says about it, what becomes of the answer, when the wire is taken again |
//! | `known` | which brokers' directories this process sees, as far as it found out |
//! | `directory` | the proof, and the files below: opened by name, checked by id and by number |
//! | `doubt` | why not |
//! | `run` | the bytes of one answer, piece by piece, each batch checked |
//! | `counters` | how often which way was taken |
//!
//! # Why a reader sees nothing that the wire would not have given
//! Each answer names the part of a file that a fetch by the wire would have sent: whoever answers has decided by rights, leadership, the
//! high watermark or the last stable offset, and the log's start. What happens to the files afterwards cannot change these bytes: no byte
//! of a segment is ever written anew (`storage/partition_log/truncate`), so that they are there, or cut off, or the name is another
//! file's. Another file has another number, or was made at another time. A cut file ends too early. Each batch is checked: its CRC, its
//! offsets, and its epoch, which must not be newer than that of the leader who answered. Whatever is not so is a [`Doubt`]: the wire is asked from
//! there on, to the end of the range.
//!
//! Files are read by `pread`, never mapped: one that is cut meanwhile ends, and raises no signal. What the broker names is no path but
//! the directory's: files below it are opened by names that are made here, no link is followed and nothing but a regular file read.
mod counters;
mod directory;
mod doubt;
mod known;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

pub use self::counters::LocalCounters;
use self::directory::DataDirectory;
pub(crate) use self::doubt::Doubt;
use self::known::Sight;
pub(crate) use self::run::{LocalRun, Piece};
use super::sources::Source;
use crate::metadata::address::Address;
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::messages::fetch::{InDirectory, local_reads};

/// How many bytes one answer may name, unless `max.partition.fetch.bytes` is set. Nothing of that size is held: see [`Piece`].
pub(crate) const CHUNK_BYTES: i64 = /* 16 MiB */ 16 << 20;

/// What a fetcher knows about the files of the brokers it reads from.
#[derive(Debug, Default)]
pub(crate) struct LocalReads {
    /// `None`: never.
    counters: Option<Arc<LocalCounters>>,
    /// The rest of the range comes by the wire.
    off: bool,
    /// What the fetch under way says.
    said: i8,
    directory: Option<DataDirectory>,
}

impl LocalReads {
    /// Lets files be read, and counts it there.
    pub fn allow(&mut self, counters: Arc<LocalCounters>) {
        self.counters = Some(counters);
    }

    /// A range begins: what was doubtful before may be good for this one.
    pub fn begin_range(&mut self) {
        self.off = false;
    }

    /// What a fetch is to say now.
    pub fn may_say(&self, source: &Source, topic_partition: &TopicPartition) -> i8 {
        let fits = source.leader_epoch >= 0 && !topic_partition.topic_id.is_nil();
        if self.counters.is_none() || self.off || !fits {
            return local_reads::NO;
        }
        match known::of(&source.address, Instant::now()) {
            Sight::Unknown => local_reads::ASK,
            Sight::Seen => local_reads::SEES,
            Sight::Unseen => local_reads::NO,
        }
    }

    /// Notes what the fetch said that was just sent.
    pub fn said(&mut self, said: i8) {
        self.said = said;
    }

    /// Takes what an answer to a fetch from `position` on says; the bytes that it names instead of having them.
    pub fn take(
        &mut self,
        source: &Source,
        topic_partition: &TopicPartition,
        position: i64,
        place: &InDirectory,
    ) -> Result<Option<LocalRun>, Doubt> {
        match self.said {
            local_reads::ASK => {
                self.look_at(&source.address, place);
                Ok(None)
            }
            local_reads::SEES if place.segment >= 0 => {
                let found = self.find(source, topic_partition, position, place);
                if found.as_ref().is_err_and(|doubt| doubt.lasts) {
                    known::note(&source.address, Sight::Unseen);
                }
                found.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Takes the wire to the end of the range.
    pub fn doubt(&mut self, doubt: Doubt) {
        (self.off, self.directory) = (true, None);
        if let Some(counters) = &self.counters {
            counters.fell_back(doubt.reason);
        }
    }

    /// Bytes were read from a file.
    pub fn count(&self, bytes: usize) {
        if let Some(counters) = &self.counters {
            counters.read(bytes);
        }
    }

    /// Finds out whether the directory is seen that a broker names.
    fn look_at(&mut self, address: &Address, place: &InDirectory) {
        let seen = DataDirectory::prove(place);
        known::note(address, if seen.is_ok() { Sight::Seen } else { Sight::Unseen });
        match (seen, &self.counters) {
            (Ok(directory), _) => self.directory = Some(directory),
            (Err(doubt), Some(counters)) => counters.unseen(doubt.reason),
            (Err(_), None) => {}
        }
    }

    fn find(
        &mut self,
        source: &Source,
        topic_partition: &TopicPartition,
        position: i64,
        place: &InDirectory,
    ) -> Result<LocalRun, Doubt> {
        let directory = match self.directory.take().filter(|directory| directory.is(place)) {
            Some(directory) => self.directory.insert(directory),
            // Another broker's, or that of one that was started anew.
            None => self.directory.insert(DataDirectory::prove(place)?),
        };
        let file = directory.segment(topic_partition, place)?;
        LocalRun::new(file, place, position, source.leader_epoch)
    }
}
