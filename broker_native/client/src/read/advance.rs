//! How far a reader gets with a limit of rows or bytes: batches are fetched and looked at by their headers.
//!
//! Records are opened only where a limit or the range cuts a batch that compaction has made holes in. What counts is what a
//! reader of the client's `isolation.level` sees: no markers, no aborted transactions. Bytes are those of the stored
//! batches, which are taken whole; of one that rows cut, its share.
use super::feed::Feed;
use super::fetcher::Fetcher;
use super::plan::OffsetRange;
use super::standstill::Standstill;
use crate::error::{ClientError, Result, kind};
use crate::metadata::cluster::Cluster;
use crate::metadata::topic_partition::TopicPartition;
use pylog_columnar::DecodeOptions;
use pylog_record::batches::{BatchView, body};
use pylog_record::compression::decompress_into;
use pylog_record::control::AbortedFilter;
use pylog_record::{BatchError, BatchHeader, Codec, batches, records};

/// A range of offsets, and how much of it may be taken.
#[derive(Debug, Clone)]
pub struct LimitedRange {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// First offset.
    pub start: i64,
    /// Offset to stop before.
    pub end: i64,
    /// Most rows.
    pub max_records: Option<i64>,
    /// Most bytes of stored batches.
    pub max_bytes: Option<i64>,
    /// Whether a first batch is taken that alone has more than `max_bytes`.
    pub at_least_one: bool,
}

/// How far a range was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The offset reached: that of the next row, or the end of the range.
    pub offset: i64,
    /// Rows before it.
    pub records: i64,
    /// Stored bytes before it.
    pub bytes: i64,
}

/// Takes the ranges, one after the other, over the connections of `cluster`.
///
/// # Errors
/// Those of [`Fetcher::fetch`]; `CORRUPT_BATCH`; `TIMED_OUT` when a log does not reach the end of a range.
pub fn advance(mut cluster: Cluster, ranges: &[LimitedRange]) -> (Cluster, Result<Vec<Reached>>) {
    let mut taken = Vec::with_capacity(ranges.len());
    for range in ranges {
        let mut fetcher = Fetcher::new(cluster, range.topic_partition.clone(), range.start);
        let done = Scan::new(range, fetcher.max_decompressed_bytes()).run(&mut fetcher);
        cluster = fetcher.into_cluster();
        match done {
            Ok(reached) => taken.push(reached),
            Err(error) => return (cluster, Err(error)),
        }
    }
    (cluster, Ok(taken))
}

/// Takes one range of what a feed brings.
///
/// # Errors
/// Those of the feed; `CORRUPT_BATCH`.
pub fn advance_fed(feed: &mut dyn Feed, range: &LimitedRange) -> Result<Reached> {
    let topic_partition = range.topic_partition.clone();
    let aborted = feed.turn_to(&OffsetRange { topic_partition, start: range.start, end: Some(range.end) })?;
    let most = DecodeOptions::default().max_decompressed_bytes;
    advance_over(range, most, aborted, |piece| feed.next_piece(piece))
}

/// Takes one range of the batches that `next_piece` puts into a buffer, until it has no more; `aborted`: (producer_id, first_offset,
/// last_offset).
///
/// # Errors
/// Those of `next_piece`; `CORRUPT_BATCH`.
fn advance_over(
    range: &LimitedRange,
    max_decompressed: usize,
    aborted: impl IntoIterator<Item = (i64, i64, i64)>,
    mut next_piece: impl FnMut(&mut Vec<u8>) -> Result<bool>,
) -> Result<Reached> {
    let mut scan = Scan::new(range, max_decompressed);
    scan.aborted.extend_whole(aborted);
    let mut piece = Vec::new();
    while next_piece(&mut piece)? {
        for view in batches(&piece) {
            let stopped = view.and_then(|view| scan.pass(&view)).map_err(|error| {
                let message =
                    format!("partition {}, offset {}: {error}", range.topic_partition, scan.taken.offset);
                ClientError::fatal(kind::CORRUPT_BATCH, message)
            })?;
            if stopped {
                return Ok(scan.taken);
            }
        }
    }
    scan.taken.offset = range.end;
    Ok(scan.taken)
}

/// The scan of one range.
struct Scan<'a> {
    range: &'a LimitedRange,
    aborted: AbortedFilter,
    taken: Reached,
    /// Whether a limit is reached; offsets without rows that follow are still passed.
    full: bool,
    max_decompressed: usize,
}

impl<'a> Scan<'a> {
    fn new(range: &'a LimitedRange, max_decompressed: usize) -> Self {
        let taken = Reached { offset: range.start, records: 0, bytes: 0 };
        Self { range, aborted: AbortedFilter::default(), taken, full: false, max_decompressed }
    }

    fn run(mut self, fetcher: &mut Fetcher) -> Result<Reached> {
        let mut standstill = Standstill::new();
        while self.taken.offset < self.range.end && !self.full {
            fetcher.advance(self.taken.offset, None);
            let fetched = fetcher.fetch()?;
            self.aborted.extend(fetched.aborted.iter().copied());
            let before = self.taken.offset;
            for view in batches(&fetched.records) {
                let stopped = view.and_then(|view| self.pass(&view)).map_err(|error| {
                    let message =
                        format!("partition {}, offset {}: {error}", fetcher.name(), self.taken.offset);
                    ClientError::fatal(kind::CORRUPT_BATCH, message)
                })?;
                if stopped {
                    return Ok(self.taken);
                }
            }
            if self.taken.offset > before {
                standstill.end();
            } else if let Some(behind) = standstill.look(fetcher, &fetched, Some(self.range.end))? {
                self.taken.offset = behind;
            }
        }
        Ok(self.taken)
    }

    /// Passes one batch; true when it or what follows is not to be taken any more.
    fn pass(&mut self, view: &BatchView<'_>) -> std::result::Result<bool, BatchError> {
        let (header, end) = (&view.0, self.range.end);
        if header.last_offset_delta < 0 {
            return Err(BatchError::Malformed("the last offset is before the first"));
        }
        let hidden = self.aborted.hides(view)?;
        if header.last_offset() < self.taken.offset {
            return Ok(false);
        }
        if header.base_offset >= end {
            self.taken.offset = end;
            return Ok(true);
        }
        let after = header.last_offset().saturating_add(1).min(end);
        if hidden {
            self.taken.offset = after;
            return Ok(false);
        }
        if self.full {
            return Ok(true);
        }
        let left = self.range.max_records.map_or(i64::MAX, |most| most - self.taken.records);
        let rows = rows(view, self.taken.offset..end, left, self.max_decompressed)?;
        let bytes = share(header, rows.taken);
        let most = self.range.max_bytes.unwrap_or(i64::MAX);
        let first = self.range.at_least_one && self.taken.records == 0;
        if self.taken.bytes.saturating_add(bytes) > most && !first {
            return Ok(true);
        }
        self.taken.records += rows.taken;
        self.taken.bytes += bytes;
        self.taken.offset = rows.next.unwrap_or(after);
        self.full =
            self.range.max_records.is_some_and(|most| self.taken.records >= most) || self.taken.bytes >= most;
        Ok(rows.next.is_some())
    }
}

/// Rows of a batch.
struct Rows {
    taken: i64,
    /// The next row of the batch within the range, when not all were taken.
    next: Option<i64>,
}

/// The rows of a batch within `range`, `most` of them.
fn rows(
    view: &BatchView<'_>,
    range: std::ops::Range<i64>,
    most: i64,
    max_decompressed: usize,
) -> std::result::Result<Rows, BatchError> {
    let header = &view.0;
    let offsets = i64::from(header.last_offset_delta) + 1;
    let whole = range.start <= header.base_offset && header.last_offset() < range.end;
    if whole && i64::from(header.records_count) <= most {
        return Ok(Rows { taken: header.records_count.into(), next: None });
    }
    if i64::from(header.records_count) == offsets {
        let first = range.start.max(header.base_offset);
        let count = range.end.min(header.last_offset().saturating_add(1)).saturating_sub(first).max(0);
        let taken = count.min(most);
        return Ok(Rows { taken, next: (taken < count).then_some(first + taken) });
    }
    let codec = Codec::from_attributes(header.attributes)?;
    let mut plain = Vec::new();
    let mut bytes = body(view.1);
    if codec != Codec::None {
        decompress_into(codec, bytes, max_decompressed, &mut plain)?;
        bytes = &plain;
    }
    let mut taken = 0;
    for record in records(bytes, header) {
        let offset = record?.offset;
        if !range.contains(&offset) {
            continue;
        }
        if taken == most {
            return Ok(Rows { taken, next: Some(offset) });
        }
        taken += 1;
    }
    Ok(Rows { taken, next: None })
}

/// The part of a batch's size that belongs to `taken` of its rows.
fn share(header: &BatchHeader, taken: i64) -> i64 {
    let size = i64::try_from(header.size()).unwrap_or(i64::MAX);
    let all = i64::from(header.records_count).max(1);
    if taken >= all { size } else { size.saturating_mul(taken) / all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_record::BatchBuilder;

    /// Ten records from offset 100 on.
    fn batch() -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.set_base_offset(100);
        for _ in 0..10 {
            builder.append(1, None, Some(&[0; 10]), &[]).unwrap();
        }
        builder.finish(Codec::None).unwrap()
    }

    #[test]
    fn rows_of_a_batch_without_holes_are_counted_by_its_header() {
        let bytes = batch();
        // Nothing but the header: whoever opened the records would fail.
        let view = (BatchHeader::parse(&bytes).unwrap().unwrap(), &bytes[..61]);
        for (range, most, taken, next) in [
            (0..200, i64::MAX, 10, None),
            (0..200, 10, 10, None),
            (0..200, 4, 4, Some(104)),
            (103..200, 4, 4, Some(107)),
            (103..107, 9, 4, None),
            (std::ops::Range { start: 108, end: 105 }, 9, 0, None),
        ] {
            let found = rows(&view, range.clone(), most, 1000).unwrap();
            assert_eq!((found.taken, found.next), (taken, next), "{range:?} {most}");
        }
    }

    #[test]
    fn a_part_of_a_batch_costs_its_part_of_the_bytes() {
        let bytes = batch();
        let header = BatchHeader::parse(&bytes).unwrap().unwrap();
        assert_eq!(share(&header, 10), bytes.len() as i64);
        assert_eq!(share(&header, 3), bytes.len() as i64 * 3 / 10);
    }
}
