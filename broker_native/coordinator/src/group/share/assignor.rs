//! Which member reads which partitions: Kafka's `simple` assignor in its result. Each partition is read by at least one of its topic's subscribers, and
//! each subscriber reads at least one partition; no more is doubled than that takes.
use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::member::ShareMember;
use crate::group::consumer::member::AssignedPartitions;
use crate::group::context::TopicsView;

/// Its name.
pub const SIMPLE: &str = "simple";

/// The targets of all members, also of those that get nothing.
pub fn assign(
    members: &BTreeMap<String, ShareMember>,
    topics: &Arc<dyn TopicsView>,
) -> BTreeMap<String, AssignedPartitions> {
    let mut targets: BTreeMap<String, AssignedPartitions> =
        members.keys().map(|member_id| (member_id.clone(), AssignedPartitions::new())).collect();
    for (subscribers, partitions) in by_subscribers(members, topics) {
        for (reader, partition) in dealt(subscribers.len(), partitions.len()) {
            let (Some(member_id), Some((topic_id, number))) =
                (subscribers.get(reader), partitions.get(partition))
            else {
                continue;
            };
            if let Some(target) = targets.get_mut(*member_id) {
                target.entry(*topic_id).or_default().insert(*number);
            }
        }
    }
    targets
}

/// Which of `members` reads which of `partitions`: the larger of both is dealt out over the smaller.
fn dealt(members: usize, partitions: usize) -> impl Iterator<Item = (usize, usize)> {
    let pairs = if members == 0 || partitions == 0 { 0 } else { members.max(partitions) };
    (0..pairs).map(move |at| (at % members, at % partitions))
}

/// The partitions of topics that have the same subscribers.
type BySubscribers<'a> = BTreeMap<Vec<&'a str>, Vec<(Uuid, i32)>>;

fn by_subscribers<'a>(
    members: &'a BTreeMap<String, ShareMember>,
    topics: &Arc<dyn TopicsView>,
) -> BySubscribers<'a> {
    let mut of_topic: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (member_id, member) in members {
        for name in &member.subscribed_topic_names {
            of_topic.entry(name).or_default().push(member_id);
        }
    }
    let mut together = BySubscribers::new();
    for (name, subscribers) in of_topic {
        if let Some((topic_id, count)) = topics.topic(name) {
            let partitions = together.entry(subscribers).or_default();
            partitions.extend((0..count).map(|number| (topic_id, number)));
        }
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_a_reader_and_every_reader_a_partition() {
        for (members, partitions) in [(1, 1), (1, 7), (3, 7), (7, 3), (4, 4), (200, 1)] {
            let pairs: Vec<_> = dealt(members, partitions).collect();
            assert!((0..members).all(|one| pairs.iter().any(|(member, _)| *member == one)));
            assert!((0..partitions).all(|one| pairs.iter().any(|(_, partition)| *partition == one)));
        }
        assert_eq!(dealt(0, 3).count() + dealt(3, 0).count(), 0);
    }
}
