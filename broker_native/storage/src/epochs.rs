//! Which leader epoch began at which offset: `leader-epoch-checkpoint` of a partition.
//!
//! Kept in memory and written when an epoch gets its first record. Epochs and offsets grow.
use std::path::{Path, PathBuf};

use super::checkpoint::{read_epochs, write_epochs};
use super::disk::Disk;
use super::error::{Result, StorageError, TopicPartition};
use super::files::SyncWhen;
use super::names;
use pylog_record::header::BatchHeader;

/// The epochs of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeaderEpochs {
    entries: Vec<(i32, i64)>,
    /// Whether the file on the device may be older than the entries.
    unsynced: bool,
    /// Whether the file may be older than the entries.
    unwritten: bool,
}

impl LeaderEpochs {
    /// Reads the checkpoint. After an unclean stop a damaged one is made anew from the batches that are recovered: it
    /// is synced before any batch behind it counts as durable.
    ///
    /// # Errors
    /// [`StorageError::Malformed`] after a clean stop, [`StorageError::Io`].
    pub fn load(disk: &dyn Disk, dir: &Path, clean: bool, recovery_point: i64) -> Result<Self> {
        let entries = match read_epochs(disk, &path_in(dir)) {
            Err(StorageError::Malformed { .. }) if !clean => None,
            read => read?,
        };
        let entries = entries.unwrap_or_default();
        let unsynced = !clean && entries.last().is_none_or(|(_, start)| *start >= recovery_point);
        Ok(Self { entries, unsynced, unwritten: false })
    }

    /// The newest epoch that has a record or was given one's place.
    pub fn latest(&self) -> Option<i32> {
        self.entries.last().map(|(epoch, _)| *epoch)
    }

    /// Takes note that `epoch` begins at `offset`, when it is newer than all known.
    pub fn note(&mut self, epoch: i32, offset: i64) {
        if epoch >= 0 && self.latest().is_none_or(|latest| epoch > latest) {
            // An epoch without a record leaves no trace: the newer one begins where it did.
            self.entries.retain(|(_, start)| *start < offset);
            self.entries.push((epoch, offset));
            self.unwritten = true;
        }
    }

    /// Takes note of a batch that recovery finds; no record stands between `end` and it. What was forgotten may still be in
    /// the file: epochs without a record, in whose place others have written since (power cut, seeds 3253 and 5637).
    pub fn recover(&mut self, end: i64, header: &BatchHeader) {
        let (epoch, first, last) = (header.partition_leader_epoch, header.base_offset, header.last_offset());
        let goes_on = self.entries.last().is_some_and(|(latest, start)| *latest == epoch && *start < end);
        if epoch < 0 || goes_on {
            return;
        }
        let before = self.entries.clone();
        let has_none =
            |known: i32, start: i64| known < epoch && start >= end || known > epoch && start <= last;
        self.entries.retain(|(known, start)| !has_none(*known, *start));
        let at = self.entries.partition_point(|(known, _)| *known < epoch);
        match self.entries.get_mut(at).filter(|(known, _)| *known == epoch) {
            Some((_, start)) if *start >= end => *start = first,
            Some(_) => {}
            None => self.entries.insert(at, (epoch, first)),
        }
        self.unwritten |= self.entries != before;
    }

    /// Forgets epochs that begin at `end` or behind.
    pub fn truncate(&mut self, end: i64) {
        let count = self.entries.len();
        self.entries.retain(|(_, from)| *from < end);
        self.unwritten |= self.entries.len() < count;
    }

    /// Forgets what is not in `[start, end)`; the epoch of `start` begins there.
    pub fn clip(&mut self, start: i64, end: i64) {
        let before = self.entries.clone();
        self.entries.retain(|(_, from)| *from < end || end <= start);
        let keep_from = self.entries.iter().rposition(|(_, from)| *from <= start).unwrap_or(0);
        self.entries.drain(..keep_from);
        if let Some(first) = self.entries.first_mut() {
            first.1 = first.1.max(start);
        }
        self.unwritten |= self.entries != before;
    }

    /// The largest epoch up to `epoch`, and where the next one begins (`log_end_offset` for the newest). As in Kafka an
    /// epoch before all known ones ends where the first of them begins, and nothing can be said of one of the future.
    pub fn end_offset(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        let (first, start) = self.entries.first()?;
        if epoch < 0 || self.latest().is_some_and(|latest| epoch > latest) {
            return None;
        }
        if epoch < *first {
            return Some((epoch, *start));
        }
        let behind = self.entries.partition_point(|(known, _)| *known <= epoch);
        let (found, _) = self.entries.get(behind.checked_sub(1)?)?;
        Some((*found, self.entries.get(behind).map_or(log_end_offset, |(_, start)| *start)))
    }

    /// Writes the checkpoint when it is behind; with [`SyncWhen::Now`] it is on the device afterwards.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], [`StorageError::Io`]; it is tried again the next time.
    pub fn store(&mut self, disk: &dyn Disk, dir: &Path, when: SyncWhen, at: &TopicPartition) -> Result<()> {
        let behind = self.unwritten || (self.unsynced && when == SyncWhen::Now);
        if !behind {
            return Ok(());
        }
        write_epochs(disk, &path_in(dir), &self.entries, when, at)?;
        self.unwritten = false;
        self.unsynced = when == SyncWhen::Later;
        Ok(())
    }

    /// Whether [`LeaderEpochs::store`] would write.
    pub fn is_behind(&self) -> bool {
        self.unwritten || self.unsynced
    }
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(names::LEADER_EPOCH_CHECKPOINT)
}

#[cfg(test)]
mod tests {
    use pylog_record::{BatchBuilder, Codec};

    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs { entries: entries.to_vec(), ..LeaderEpochs::default() }
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let epochs = epochs(&[(1, 0), (3, 10), (5, 20)]);
        assert_eq!(epochs.end_offset(-1, 30), None);
        assert_eq!(epochs.end_offset(0, 30), Some((0, 0)));
        assert_eq!(epochs.end_offset(1, 30), Some((1, 10)));
        assert_eq!(epochs.end_offset(4, 30), Some((3, 20)));
        assert_eq!(epochs.end_offset(5, 30), Some((5, 30)));
        assert_eq!(epochs.end_offset(9, 30), None);
    }

    #[test]
    fn an_epoch_without_a_record_leaves_no_trace() {
        let mut epochs = epochs(&[(1, 0)]);
        epochs.note(2, 7);
        epochs.note(3, 7);
        epochs.note(2, 9);
        assert_eq!(epochs.entries, [(1, 0), (3, 7)]);
    }

    #[test]
    fn recovery_believes_the_batches_where_the_file_says_otherwise() {
        let mut builder = BatchBuilder::new();
        builder.append(0, None, None, &[]).unwrap();
        let any = BatchHeader::parse(&builder.finish(Codec::None).unwrap()).unwrap().unwrap();
        let batch = |partition_leader_epoch, base_offset, last_offset_delta| BatchHeader {
            partition_leader_epoch,
            base_offset,
            last_offset_delta,
            ..any
        };
        let recovered = |file: &[(i32, i64)], batches: &[(i64, BatchHeader)]| {
            let mut found = epochs(file);
            batches.iter().for_each(|(end, header)| found.recover(*end, header));
            assert_eq!(found.unwritten, found.entries != file);
            found.entries
        };
        let file = [(2, 6), (3, 24)];
        assert_eq!(recovered(&file, &[(20, batch(2, 20, 3)), (24, batch(3, 24, 0))]), file);
        assert_eq!(recovered(&file, &[(24, batch(4, 27, 0))]), [(2, 6), (4, 27)], "3 has none");
        assert_eq!(recovered(&file, &[(24, batch(4, 24, 0))]), [(2, 6), (4, 24)], "3 has none");
        assert_eq!(recovered(&file, &[(24, batch(3, 27, 0))]), [(2, 6), (3, 27)], "compaction left a gap");
        assert_eq!(recovered(&file, &[(24, batch(2, 24, 2))]), [(2, 6)], "an older leader's came");
        let later = [(2, 6), (3, 24), (5, 40)];
        assert_eq!(
            recovered(&later, &[(24, batch(3, 30, 9)), (40, batch(5, 40, 0))]),
            [(2, 6), (3, 30), (5, 40)]
        );
        assert_eq!(recovered(&[], &[(0, batch(-1, 0, 0)), (1, batch(1, 1, 0))]), [(1, 1)]);
    }

    #[test]
    fn clipping_keeps_the_epoch_that_covers_the_start() {
        let mut clipped = epochs(&[(1, 0), (3, 10), (5, 20)]);
        clipped.clip(15, 20);
        assert_eq!(clipped.entries, [(3, 15)]);
        let mut whole = epochs(&[(1, 0)]);
        whole.clip(0, 5);
        assert!(!whole.unwritten);
    }
}
