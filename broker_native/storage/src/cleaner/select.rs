//! Which part of a log is to be cleaned, how urgent that is, and which segments become one. Pure.
//!
//! A log is: what was cleaned before, the dirty part, and what may not be cleaned yet (the active segment, records
//! younger than `min.compaction.lag.ms`, all from the first open transaction or unacknowledged record on).
use std::ops::Range;

use crate::config::LogConfig;

/// What the choice needs to know of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// First offset that can be in it.
    pub base_offset: i64,
    /// Bytes of `.log`.
    pub size: u64,
    /// Timestamp of its newest record, milliseconds since the epoch.
    pub newest_ms: i64,
    /// Timestamp of its first batch, milliseconds since the epoch; -1 for none.
    pub first_ms: i64,
    /// Bytes of the offset index and of the time index.
    pub index_bytes: (u64, u64),
}

/// What a cleaning would do to a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dirt {
    /// First offset that was not cleaned yet.
    pub first_dirty: i64,
    /// Base offset of the first segment that may not be cleaned.
    pub first_uncleanable: i64,
    /// The dirty part of the bytes that a cleaning would rewrite, 0 to 1.
    pub ratio: f64,
    /// Whether the dirty part must be cleaned now, whatever the ratio (`max.compaction.lag.ms`).
    pub overdue: bool,
}

impl Dirt {
    /// Whether the log is to be cleaned.
    pub fn is_due(&self, config: &LogConfig) -> bool {
        self.first_dirty < self.first_uncleanable
            && (self.overdue || self.ratio > config.min_cleanable_dirty_ratio)
    }
}

/// The dirt of a log whose last segment in `segments` is appended to. `cleaned`: up to where it was cleaned before;
/// `readable`: first readable offset and last stable offset.
pub(super) fn dirt(
    segments: &[Candidate],
    cleaned: Option<i64>,
    readable: Range<i64>,
    config: &LogConfig,
    now_ms: i64,
) -> Option<Dirt> {
    let (active, closed) = segments.split_last()?;
    // An offset that is not in the log says nothing about it.
    let first_dirty =
        cleaned.filter(|offset| (readable.start..=readable.end).contains(offset)).unwrap_or(readable.start);
    let dirty_from = closed.partition_point(|s| s.base_offset <= first_dirty).saturating_sub(1);
    let dirty = closed.get(dirty_from..).unwrap_or_default();
    let too_young = |s: &&Candidate| s.newest_ms > now_ms.saturating_sub(config.min_compaction_lag_ms.max(0));
    let young = dirty.iter().find(too_young).filter(|_| config.min_compaction_lag_ms > 0);
    let bound = readable.end.min(active.base_offset).min(young.map_or(i64::MAX, |s| s.base_offset));
    // Whole segments only: the one that holds the bound stays.
    let ends = segments.iter().skip(1).map(|s| s.base_offset);
    let cleanable = ends.take_while(|end| *end <= bound).count();
    let first_uncleanable = segments.get(cleanable)?.base_offset;
    let bytes = |s: &[Candidate]| s.iter().map(|s| s.size).sum::<u64>();
    let cleanable = segments.get(..cleanable).unwrap_or_default();
    let clean_bytes = bytes(cleanable.get(..dirty_from).unwrap_or(cleanable));
    let dirty_bytes = bytes(cleanable.get(dirty_from..).unwrap_or_default());
    let total = clean_bytes + dirty_bytes;
    let due_ms = now_ms.saturating_sub(config.max_compaction_lag_ms.max(0));
    let overdue = dirty.iter().any(|s| s.first_ms > 0 && s.first_ms < due_ms);
    Some(Dirt {
        first_dirty,
        first_uncleanable,
        ratio: if total == 0 { 0.0 } else { dirty_bytes as f64 / total as f64 },
        overdue: overdue && dirty_bytes > 0,
    })
}

/// Cuts `segments`, all of which are to be cleaned and end before `end`, into runs that each become one segment: as
/// long as bytes, indexes and offsets of a run are sure to fit.
pub(super) fn groups(segments: &[Candidate], end: i64, config: &LogConfig) -> Vec<Range<usize>> {
    let log_limit = config.segment_bytes.clamp(1, i64::from(i32::MAX)) as u64;
    let index_limit = config.segment_index_bytes.max(0) as u64;
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut bytes, mut index, mut times, mut base) = (0, 0, 0, 0);
    for (i, segment) in segments.iter().enumerate() {
        let segment_end = segments.get(i + 1).map_or(end, |next| next.base_offset);
        bytes += segment.size;
        index += segment.index_bytes.0;
        times += segment.index_bytes.1;
        let fits = bytes <= log_limit
            && index <= index_limit
            && times <= index_limit
            && segment_end - 1 - base <= i64::from(i32::MAX);
        match groups.last_mut().filter(|_| fits) {
            Some(group) => group.end = i + 1,
            None => {
                groups.push(i..i + 1);
                bytes = segment.size;
                (index, times) = segment.index_bytes;
                base = segment.base_offset;
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_000_000;

    /// Segments of 10 offsets and 100 bytes with these timestamps; the last is appended to.
    fn log(times: &[i64]) -> Vec<Candidate> {
        let candidate = |(i, ms): (usize, &i64)| Candidate {
            base_offset: i as i64 * 10,
            size: 100,
            newest_ms: *ms,
            first_ms: *ms,
            index_bytes: (8, 12),
        };
        times.iter().enumerate().map(candidate).collect()
    }

    fn dirt_of(times: &[i64], cleaned: Option<i64>, stable: i64, config: &LogConfig) -> Dirt {
        dirt(&log(times), cleaned, 0..stable, config, NOW_MS).unwrap()
    }

    #[test]
    fn the_dirty_part_lies_behind_the_last_cleaning_and_before_the_active_segment() {
        let config = LogConfig::default();
        let found = dirt_of(&[1, 1, 1, 1], Some(20), 40, &config);
        assert_eq!((found.first_dirty, found.first_uncleanable), (20, 30));
        assert!((found.ratio - 1.0 / 3.0).abs() < 1e-9 && !found.is_due(&config), "{found:?}");
        assert!(dirt_of(&[1, 1, 1, 1], Some(10), 40, &config).is_due(&config));
        assert!(!dirt_of(&[1, 1, 1, 1], Some(30), 40, &config).is_due(&config), "nothing is dirty");
        assert!(!dirt_of(&[1], None, 10, &config).is_due(&config), "the active segment is never cleaned");
    }

    #[test]
    fn nothing_from_the_last_stable_offset_on_is_cleaned() {
        let config = LogConfig::default();
        assert_eq!(dirt_of(&[1, 1, 1, 1], None, 20, &config).first_uncleanable, 20);
        assert_eq!(dirt_of(&[1, 1, 1, 1], None, 19, &config).first_uncleanable, 10);
        assert_eq!(dirt_of(&[1, 1, 1, 1], None, 5, &config).first_uncleanable, 0);
    }

    #[test]
    fn records_younger_than_the_lag_wait() {
        let config = LogConfig { min_compaction_lag_ms: 1_000, ..LogConfig::default() };
        let young = NOW_MS - 500;
        assert_eq!(dirt_of(&[1, 1, young, 1, 1], None, 50, &config).first_uncleanable, 20);
        assert_eq!(dirt_of(&[young, 1, 1], None, 30, &config).first_uncleanable, 0);
        assert_eq!(dirt_of(&[1, 1, young], None, 30, &config).first_uncleanable, 20);
    }

    #[test]
    fn records_older_than_the_largest_lag_are_cleaned_whatever_the_ratio() {
        let config = LogConfig {
            max_compaction_lag_ms: 1_000,
            min_cleanable_dirty_ratio: 1.0,
            ..LogConfig::default()
        };
        assert!(dirt_of(&[1, NOW_MS - 2_000, NOW_MS], Some(10), 30, &config).is_due(&config));
        assert!(!dirt_of(&[1, NOW_MS - 500, NOW_MS], Some(10), 30, &config).is_due(&config));
    }

    #[test]
    fn an_offset_that_the_log_does_not_hold_begins_anew() {
        let config = LogConfig::default();
        let segments = log(&[1, 1, 1]);
        for cleaned in [Some(4), Some(31), None] {
            let found = dirt(&segments, cleaned, 5..30, &config, NOW_MS).unwrap();
            assert_eq!(found.first_dirty, 5, "{cleaned:?}");
        }
    }

    #[test]
    fn segments_are_merged_while_bytes_indexes_and_offsets_fit() {
        let runs = |segments: &[Candidate], config: &LogConfig| groups(segments, 10_000_000_000, config);
        let sized = |segment_bytes, segment_index_bytes| LogConfig {
            segment_bytes,
            segment_index_bytes,
            ..LogConfig::default()
        };
        let mut small = log(&[1, 1, 1, 1]);
        small.push(Candidate { base_offset: 9_999_999_999, ..small[3] });
        small[3].base_offset = 30;
        assert_eq!(runs(&small[..3], &sized(250, 1_000)), [0..2, 2..3]);
        assert_eq!(groups(&small[..3], 30, &sized(100, 1_000)), [0..1, 1..2, 2..3]);
        assert_eq!(groups(&small[..3], 30, &sized(1, 1_000)), [0..1, 1..2, 2..3], "each alone at least");
        assert_eq!(groups(&small[..3], 30, &sized(1_000, 12)), [0..1, 1..2, 2..3]);
        assert_eq!(groups(&small[..3], 30, &sized(1_000, 24)), [0..2, 2..3]);
        assert_eq!(groups(&small, 10_000_000_000, &sized(1_000, 1_000)), [0..3, 3..4, 4..5]);
        assert!(runs(&[], &sized(1, 1)).is_empty());
    }
}
