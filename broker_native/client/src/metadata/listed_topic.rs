//! A topic as plans of reads need it: of ten thousand partitions no more than that they are there.

/// A topic, and no more of its partitions than their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTopic {
    /// Its name.
    pub name: String,
    /// Its id as a text; empty where there is none.
    pub topic_id: String,
    /// Whether it belongs to the brokers.
    pub is_internal: bool,
    /// Kafka's name of the error.
    pub error: Option<&'static str>,
    /// The numbers of its partitions, in order.
    pub partitions: Vec<i32>,
}
