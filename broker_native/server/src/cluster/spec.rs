//! Topics and partitions as Python applies them: who leads, who has a copy, and the settings of the logs.
use serde::Deserialize;
use uuid::Uuid;

use pylog_storage::LogConfig;

/// A topic as Python applies it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Whether clients should hide it.
    pub internal: bool,
    /// Settings of its logs.
    pub config: LogConfig,
    /// All of its partitions.
    pub partitions: Vec<PartitionSpec>,
}

/// A partition as Python applies it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    /// Its number.
    pub partition: i32,
    /// Broker that leads it, -1 for none.
    pub leader: i32,
    /// Epoch of that leader.
    pub leader_epoch: i32,
    /// Brokers that have it.
    pub replicas: Vec<i32>,
    /// Those that are in sync.
    pub isr: Vec<i32>,
    /// Grows with each change of the partition's document.
    pub partition_epoch: i32,
    /// Replicas that are being added, among `replicas`.
    pub adding: Vec<i32>,
    /// Replicas that are being removed, among `replicas`.
    pub removing: Vec<i32>,
    /// Replicas outside the ISR that may still be elected (KIP-966).
    pub elr: Vec<i32>,
}
