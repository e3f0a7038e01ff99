//! What the producers were at an earlier offset: the newest snapshot before it, and the batches from there on.
use std::path::Path;

use super::PartitionLog;
use super::mark::{Mark, bound_of};
use super::view::View;
use crate::disk::Disk;
use crate::error::{Result, StorageError};
use crate::files::read_bytes;
use crate::names;
use crate::producers::Producers;
use pylog_record::control::EndTxn;
use pylog_record::header::BatchHeader;

/// Most bytes of batches that a start walks to learn which transactions ended behind the high watermark.
const MAX_WALK_BYTES: u64 = /* 64 MiB */ 64 << 20;

/// The newest good one of the snapshots in `dir` that stand at `offsets`, which grow.
pub(super) fn newest_snapshot(
    disk: &dyn Disk,
    dir: &Path,
    offsets: impl DoubleEndedIterator<Item = i64>,
    now_ms: i64,
) -> Option<(i64, Producers)> {
    offsets.rev().find_map(|offset| {
        let path = names::segment_file(dir, offset, names::SNAPSHOT_SUFFIX);
        let bytes = read_bytes(disk, &path).ok().flatten()?;
        Some((offset, Producers::from_snapshot(&bytes, now_ms)?))
    })
}

impl PartitionLog {
    /// The producers as they were at `at`, and where the snapshot stands that they were made of (-1: none was good).
    pub(super) fn producers_at(&self, view: &View, at: Mark) -> Result<(i64, Producers)> {
        let now_ms = self.shared.clock.now_ms();
        let first = view.segments.first().map_or(0, |segment| segment.base_offset);
        let known = self.snapshots()?.into_iter().filter(|offset| (first..=at.offset).contains(offset));
        let known: Vec<i64> = known.collect();
        let found = newest_snapshot(&*self.shared.disk, &self.dir, known.into_iter(), now_ms);
        let (snapshot, mut producers) = found.unwrap_or((-1, Producers::default()));
        let from = if snapshot < 0 { view.log_start_offset } else { snapshot };
        self.walk(view, from, at, |header, end| _ = producers.note(header, end, now_ms))?;
        Ok((snapshot, producers))
    }

    /// Where snapshots stand, in their order.
    pub(super) fn snapshots(&self) -> Result<Vec<i64>> {
        let entries = self.shared.disk.list(&self.dir);
        let entries = entries.map_err(|e| StorageError::io("list", &self.dir, &e))?;
        let files = entries.iter().filter_map(|entry| names::parse_segment_file(&entry.name));
        let snapshots = files.filter(|(_, suffix)| *suffix == names::SNAPSHOT_SUFFIX);
        let mut offsets: Vec<i64> = snapshots.map(|(offset, _)| offset).collect();
        offsets.sort_unstable();
        Ok(offsets)
    }

    /// First offset and offset of the marker of the transactions whose markers stand at `from` or behind. Where that is
    /// too much to walk, one that covers all of it.
    pub(super) fn ended_behind(&self, view: &View, from: Mark) -> Result<Vec<(i64, i64)>> {
        let behind = view.segments.iter().filter(|segment| segment.base_offset >= from.segment);
        if behind.map(|segment| segment.size()).sum::<u64>() > from.position + MAX_WALK_BYTES {
            return Ok(vec![(from.offset, view.end.offset - 1)]);
        }
        let mut any = false;
        self.walk(view, from.offset, view.end, |_, end| any |= end.is_some())?;
        if !any {
            return Ok(Vec::new());
        }
        let now_ms = self.shared.clock.now_ms();
        let (_, mut producers) = self.producers_at(view, from)?;
        let mut ended = Vec::new();
        self.walk(view, from.offset, view.end, |header, end| {
            let txn = producers.note(header, end, now_ms).map(|ended| ended.txn);
            ended.extend(txn.map(|txn| (txn.first_offset, txn.last_offset)));
        })?;
        Ok(ended)
    }

    /// Shows `visit` the batches before `to`, from the one that holds `from` on, and what markers say.
    fn walk(
        &self,
        view: &View,
        from: i64,
        to: Mark,
        mut visit: impl FnMut(&BatchHeader, Option<EndTxn>),
    ) -> Result<()> {
        let first = view.segments.partition_point(|s| s.base_offset <= from).saturating_sub(1);
        for (i, segment) in view.segments.iter().enumerate().skip(first) {
            if segment.base_offset > to.segment || from >= to.offset {
                break;
            }
            let bound = bound_of(segment, to, view.segments.get(i + 1));
            segment.walk(from, bound, &mut visit).map_err(|error| error.of(&self.at))?;
        }
        Ok(())
    }
}
