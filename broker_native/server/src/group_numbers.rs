//! What monitoring shows of the consumer groups that this broker coordinates.
use serde::Serialize;

use crate::shared::Shared;
use crate::state::topics::MetadataImage;
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
    up_to(GROUP_OFFSETS_MAX, shared)
}

fn up_to(most: usize, shared: &Shared) -> GroupNumbers {
    let mut numbers = GroupNumbers::default();
    let looked = shared.coordinators.groups.for_each_loaded(|machine| {
        for (group_id, group) in machine.groups() {
            numbers.groups += 1;
            for (topic, partitions) in group.offsets.committed() {
                let taken = partitions.len().min(most - numbers.offsets.len());
                numbers.left_out += partitions.len() - taken;
                numbers.offsets.extend(partitions.iter().take(taken).map(|(&partition, committed)| {
                    GroupOffset {
                        group: group_id.to_owned(),
                        topic: topic.clone(),
                        partition,
                        offset: committed.offset,
                        lag: None,
                    }
                }));
            }
        }
    });
    numbers.loading = looked == Err(ErrorCode::CoordinatorLoadInProgress);
    // Not while a coordinator waits: the logs are asked when its groups are looked at.
    let topics = shared.topics.now();
    for found in &mut numbers.offsets {
        found.lag = lag(&topics, found);
    }
    numbers
}

/// A group that stands behind the end, since the log was cut, lags by none.
fn lag(topics: &MetadataImage, of: &GroupOffset) -> Option<i64> {
    let topic = topics.named(&of.topic)?;
    let partition = topic.partitions.iter().find(|each| each.spec.partition == of.partition)?;
    let log = partition.log.as_ref().ok()?;
    Some((log.offsets().high_watermark - of.offset).max(0))
}
