//! A member as an assignor sees it.
use std::collections::BTreeMap;

use uuid::Uuid;

use crate::group::consumer::member::AssignedPartitions;
use crate::group::consumer::subscription::TopicCounts;

/// A member as an assignor sees it.
#[derive(Debug, Clone, Default)]
pub struct Subscriber {
    /// Its id.
    pub member_id: String,
    /// Name of a static member.
    pub instance_id: Option<String>,
    /// Topics that it is subscribed to, with their numbers of partitions.
    pub topics: TopicCounts,
    /// What it was to own before.
    pub before: AssignedPartitions,
}

/// Topic -> (number of partitions, its subscribers in the order of the list).
pub fn by_topic(subscribers: &[Subscriber]) -> BTreeMap<Uuid, (i32, Vec<usize>)> {
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
