//! How the topics are made in which brokers keep groups, transactions and the like.
use crate::declare::settings;

settings! { rows
    /// Partitions of __consumer_offsets. Used when the topic is created, and not later.
    "offsets.topic.num.partitions" INT = 50, at_least(1), high();
    /// Replication factor of __consumer_offsets and of __pylog_sink. Used when they are created, which needs this many
    /// registered brokers. A broker without a cluster creates one replica.
    "offsets.topic.replication.factor" INT = 3, between(1, 32767), high();
    /// segment.bytes of __consumer_offsets. Used when the topic is created, and not later.
    "offsets.topic.segment.bytes" INT = /* 100 MiB */ 100 << 20, at_least(14), high();
    /// min.insync.replicas of __share_group_state, at most its replication factor. Used when the topic is created, and
    /// not later.
    "share.coordinator.state.topic.min.isr" INT = 2, at_least(1), high();
    /// Partitions of __share_group_state. Used when the topic is created, and not later.
    "share.coordinator.state.topic.num.partitions" INT = 50, at_least(1), high();
    /// Replication factor of __share_group_state. Used when it is created, which needs this many registered brokers. A
    /// broker without a cluster creates one replica.
    "share.coordinator.state.topic.replication.factor" INT = 3, between(1, 32767), high();
    /// segment.bytes of __share_group_state. Used when the topic is created, and not later.
    "share.coordinator.state.topic.segment.bytes" INT = /* 100 MiB */ 100 << 20, at_least(14), high();
    /// min.insync.replicas of __transaction_state, at most its replication factor. Used when the topic is created, and
    /// not later.
    "transaction.state.log.min.isr" INT = 2, at_least(1), high();
    /// Partitions of __transaction_state. Used when the topic is created, and not later.
    "transaction.state.log.num.partitions" INT = 50, at_least(1), high();
    /// Replication factor of __transaction_state. Used when it is created, which needs this many registered brokers. A
    /// broker without a cluster creates one replica.
    "transaction.state.log.replication.factor" INT = 3, between(1, 32767), high();
    /// segment.bytes of __transaction_state. Used when the topic is created, and not later.
    "transaction.state.log.segment.bytes" INT = /* 100 MiB */ 100 << 20, at_least(14), high();
}
