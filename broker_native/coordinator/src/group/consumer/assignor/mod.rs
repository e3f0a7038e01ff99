//! Which member is to own which partitions: the assignors of the coordinator.
//!
//! An assignor is a function of what each member is subscribed to and what it was to own before. Every partition of a topic
//! that somebody is subscribed to goes to exactly one of its subscribers.
mod range;
mod subscriber;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::ConsumerGroup;
use super::member::AssignedPartitions;
use crate::group::context::TopicsView;
use subscriber::Subscriber;

/// Equal numbers of partitions, as few moves as possible.
pub const UNIFORM: &str = "uniform";
/// The same numbers of partitions of topics of equal size to the same member.
pub const RANGE: &str = "range";
/// All assignors, the default first.
pub const NAMES: [&str; 2] = [UNIFORM, RANGE];

/// The assignor that most members with a wish want.
pub fn preferred(group: &ConsumerGroup) -> &'static str {
    let votes = |name: &str| {
        group.members.values().filter(|member| member.server_assignor.as_deref() == Some(name)).count()
    };
    if votes(RANGE) > votes(UNIFORM) { RANGE } else { UNIFORM }
}

/// The targets of all members, also of those that get nothing.
pub fn assign(group: &ConsumerGroup, topics: &Arc<dyn TopicsView>) -> BTreeMap<String, AssignedPartitions> {
    let subscribers: Vec<Subscriber> = group
        .members
        .values()
        .map(|member| Subscriber {
            member_id: member.member_id.clone(),
            instance_id: member.instance_id.clone(),
            topics: group.topics_of(member, topics),
            before: group.targets.get(&member.member_id).cloned().unwrap_or_default(),
        })
        .collect();
    if preferred(group) == RANGE { range::assign(&subscribers) } else { uniform::assign(&subscribers) }
}
