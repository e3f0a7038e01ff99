//! A partition of a topic, as the client names it everywhere.
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// Which partition of which topic. Shown as `topic-partition`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition number.
    pub partition: i32,
    /// The topic's id; nil where none is known or the brokers have none.
    pub topic_id: Uuid,
}

/// A partition by the id of its topic, which a topic made anew with the same name does not share.
pub type PartitionById = (Uuid, i32);

impl TopicPartition {
    /// A partition of which only the name is known.
    pub fn by_name(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition, topic_id: Uuid::nil() }
    }

    /// Whether both are the same partition, as far as its name says.
    pub fn has_name_of(&self, other: &Self) -> bool {
        self.partition == other.partition && self.topic == other.topic
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.topic, self.partition)
    }
}
