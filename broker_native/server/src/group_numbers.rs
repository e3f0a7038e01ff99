//! What monitoring shows of the consumer groups that this broker coordinates.
use serde::Serialize;

use crate::shared::Shared;
use crate::state::topics::MetadataImage;
use pylog_coordinator::group::offsets::GroupOffsets;
use pylog_wire::ErrorCode;

/// Offsets that are shown at most: who commits under ever new names does not make each look at the broker larger.
pub const GROUP_OFFSETS_MAX: usize = 100_000;

/// An offset that a group has committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupOffset {
    /// Id of the group.
    pub group: String,
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// The next offset that the group reads.
    pub offset: i64,
    /// Acknowledged records behind it; `None` where this broker has no replica of the partition.
    pub lag: Option<i64>,
}

/// The offsets of all groups, in no order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GroupNumbers {
    /// At most [`GROUP_OFFSETS_MAX`].
    pub offsets: Vec<GroupOffset>,
    /// How many more there are.
    pub left_out: usize,
    /// Groups that this broker coordinates.
    pub groups: usize,
    /// Whether the groups of a partition are still being read from the log, and therefore missing here.
    pub loading: bool,
}

/// Of all groups that this broker coordinates. Each number is right; two of them may be a moment apart.
pub fn group_numbers(shared: &Shared) -> GroupNumbers {
    let mut numbers = GroupNumbers::default();
    let looked = shared.coordinators.groups.for_each_loaded(|machine| {
        machine
            .groups()
            .for_each(|(group_id, group)| numbers.add(group_id, &group.offsets, GROUP_OFFSETS_MAX));
    });
    numbers.loading = looked == Err(ErrorCode::CoordinatorLoadInProgress);
    // Only now, since a coordinator waits while its groups are looked at.
    let topics = shared.topics.now();
    for found in &mut numbers.offsets {
        found.lag = lag(&topics, found);
    }
    numbers
}

impl GroupNumbers {
    /// Adds a group, of whose offsets only as many are shown as make `most` together.
    fn add(&mut self, group_id: &str, offsets: &GroupOffsets, most: usize) {
        self.groups += 1;
        for (topic, partitions) in offsets.committed() {
            let taken = partitions.len().min(most - self.offsets.len());
            self.left_out += partitions.len() - taken;
            self.offsets.extend(partitions.iter().take(taken).map(|(&partition, committed)| GroupOffset {
                group: group_id.to_owned(),
                topic: topic.clone(),
                partition,
                offset: committed.offset,
                lag: None,
            }));
        }
    }
}

/// A group that stands behind the end, since the log was cut, lags by none.
fn lag(topics: &MetadataImage, of: &GroupOffset) -> Option<i64> {
    let log = topics.named(&of.topic)?.partition(of.partition)?.log.as_ref().ok()?;
    Some((log.offsets().high_watermark - of.offset).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_coordinator::group::offsets::CommittedOffset;

    #[test]
    fn no_more_offsets_are_shown_than_allowed_and_the_others_are_counted() {
        let mut offsets = GroupOffsets::default();
        for (topic, partition) in [("a", 0), ("a", 1), ("b", 0)] {
            let committed = CommittedOffset {
                offset: 7,
                leader_epoch: -1,
                metadata: String::new(),
                commit_timestamp_ms: 0,
                expire_timestamp_ms: -1,
                order: 0,
            };
            offsets.put(topic, partition, committed, None);
        }
        let mut numbers = GroupNumbers::default();
        for group in ["first", "second", "third"] {
            numbers.add(group, &offsets, 4);
        }
        let shown: Vec<_> =
            numbers.offsets.iter().map(|each| (&*each.group, &*each.topic, each.partition)).collect();
        assert_eq!(shown, [("first", "a", 0), ("first", "a", 1), ("first", "b", 0), ("second", "a", 0)]);
        assert_eq!((numbers.left_out, numbers.groups), (5, 3));
    }
}
