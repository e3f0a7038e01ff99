//! Who shall own what: the assignors of the coordinator.
//!
//! An assignor is a function of what each member is subscribed to and what it was to own before. Every partition of a topic
//! that somebody is subscribed to goes to exactly one of its subscribers.
mod range;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::ConsumerGroup;
use super::member::Partitions;
use super::subscription::TopicCounts;
use crate::group::context::TopicsView;

/// Equal numbers of partitions, as few moves as possible.
pub const UNIFORM: &str = "uniform";
/// The same numbers of partitions of topics of equal size to the same member.
pub const RANGE: &str = "range";
/// All assignors, the default first.
pub const NAMES: [&str; 2] = [UNIFORM, RANGE];

/// A member as an assignor sees it.
#[derive(Debug, Clone, Default)]
struct Subscriber {
    /// Its id.
    member_id: String,
    /// Name of a static member.
    instance_id: Option<String>,
    /// Topics that it is subscribed to, with their numbers of partitions.
    topics: TopicCounts,
    /// What it was to own before.
    before: Partitions,
}

/// The assignor that most members with a wish want.
pub fn preferred(group: &ConsumerGroup) -> &'static str {
    let votes = |name: &str| {
        group.members.values().filter(|member| member.server_assignor.as_deref() == Some(name)).count()
    };
    if votes(RANGE) > votes(UNIFORM) { RANGE } else { UNIFORM }
}

/// The targets of all members, also of those that get nothing.
pub fn assign(group: &ConsumerGroup, topics: &Arc<dyn TopicsView>) -> BTreeMap<String, Partitions> {
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

/// Topic -> (number of partitions, its subscribers in the order of the list).
fn by_topic(subscribers: &[Subscriber]) -> BTreeMap<uuid::Uuid, (i32, Vec<usize>)> {
    let mut topics: BTreeMap<_, (i32, Vec<usize>)> = BTreeMap::new();
    for (at, subscriber) in subscribers.iter().enumerate() {
        for (topic_id, partitions) in &subscriber.topics {
            let topic = topics.entry(*topic_id).or_default();
            topic.0 = *partitions;
            topic.1.push(at);
        }
    }
    topics
}
