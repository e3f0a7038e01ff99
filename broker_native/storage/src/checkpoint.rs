//! Kafka's checkpoint files: a version, a count, one entry a line. Replaced as a whole, never changed in place.
//!
//! ```text
//! 0              version
//! 2              entries
//! flights 0 17   topic partition offset      (recovery-point-, log-start-offset-checkpoint)
//! flights 1 5
//! ```
//! `leader-epoch-checkpoint` has `epoch start_offset` lines instead.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use super::disk::Disk;
use super::error::{Result, TopicPartition};
use super::files::{SyncWhen, malformed, read_text, replace};

const VERSION: &str = "0";

/// An offset for each partition.
pub(super) type PartitionOffsets = BTreeMap<TopicPartition, i64>;

/// The offsets of a checkpoint of the data directory; empty when the file is missing.
///
/// # Errors
/// [`super::StorageError::Malformed`], [`super::StorageError::Io`].
pub(super) fn read_offsets(disk: &dyn Disk, path: &Path) -> Result<PartitionOffsets> {
    let Some(text) = read_text(disk, path)? else { return Ok(PartitionOffsets::new()) };
    let parsed = parse(&text, |words| match words {
        [topic, partition, offset] => Some((TopicPartition::new(topic, number(partition)?), number(offset)?)),
        _ => None,
    });
    Ok(parsed.map_err(|reason| malformed(path, reason))?.into_iter().collect())
}

/// Replaces a checkpoint of the data directory, synced.
///
/// # Errors
/// [`super::StorageError::DiskFull`], [`super::StorageError::Io`].
pub(super) fn write_offsets(disk: &dyn Disk, path: &Path, offsets: &PartitionOffsets) -> Result<()> {
    let mut text = format!("{VERSION}\n{}\n", offsets.len());
    for (at, offset) in offsets {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {} {offset}", at.topic, at.partition);
    }
    let at = TopicPartition::new("data directory", 0);
    replace(disk, path, text.as_bytes(), SyncWhen::Now, &at)
}

/// `(epoch, start_offset)` pairs of a leader epoch checkpoint; `None` when the file is missing.
///
/// # Errors
/// As [`read_offsets`]; also when epochs or offsets do not grow.
pub(super) fn read_epochs(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<(i32, i64)>>> {
    let Some(text) = read_text(disk, path)? else { return Ok(None) };
    let parsed = parse(&text, |words| match words {
        [epoch, start] => Some((number::<i32>(epoch)?, number::<i64>(start)?)),
        _ => None,
    });
    let entries = parsed.map_err(|reason| malformed(path, reason))?;
    let grows = entries.iter().zip(entries.iter().skip(1)).all(|(a, b)| a.0 < b.0 && a.1 <= b.1);
    if grows { Ok(Some(entries)) } else { Err(malformed(path, "its epochs do not grow")) }
}

/// Replaces a leader epoch checkpoint.
///
/// # Errors
/// [`super::StorageError::DiskFull`], [`super::StorageError::Io`].
pub(super) fn write_epochs(
    disk: &dyn Disk,
    path: &Path,
    entries: &[(i32, i64)],
    when: SyncWhen,
    at: &TopicPartition,
) -> Result<()> {
    let mut text = format!("{VERSION}\n{}\n", entries.len());
    for (epoch, start) in entries {
        let _ = writeln!(text, "{epoch} {start}");
    }
    replace(disk, path, text.as_bytes(), when, at)
}

/// A number that is not negative; `None` for anything else.
fn number<T: FromStr + PartialOrd + Default>(word: &str) -> Option<T> {
    word.parse().ok().filter(|n| *n >= T::default())
}

/// The entries of a checkpoint, each made of the words of one line.
fn parse<T>(text: &str, entry: impl Fn(&[&str]) -> Option<T>) -> Result<Vec<T>, String> {
    let mut lines = text.lines();
    match lines.next().map(str::trim) {
        Some(VERSION) => {}
        other => {
            return Err(format!("line 1 must be version {VERSION}, not {:?}", other.unwrap_or_default()));
        }
    }
    let count: usize = lines
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| "line 2 must be the number of entries".to_owned())?;
    let mut entries = Vec::new();
    for (number, line) in (3..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        entries.push(entry(&words).ok_or_else(|| format!("line {number} is {line:?}"))?);
    }
    if entries.len() == count {
        Ok(entries)
    } else {
        Err(format!("it promises {count} entries and holds {}", entries.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(text: &str) -> Result<Vec<i64>, String> {
        parse(text, |words| number(words.first()?))
    }

    #[test]
    fn a_checkpoint_is_version_count_and_lines() {
        assert_eq!(offsets("0\n2\n7\n8\n"), Ok(vec![7, 8]));
        assert_eq!(offsets("0\n0\n"), Ok(vec![]));
    }

    #[test]
    fn a_checkpoint_that_is_cut_or_changed_is_refused() {
        for text in
            ["", "1\n0\n", "0\n", "0\nx\n", "0\n2\n7\n", "0\n1\n7\n8\n", "0\n1\n-7\n", "0\n1\nseven\n"]
        {
            assert!(offsets(text).is_err(), "{text:?} was accepted");
        }
    }
}
