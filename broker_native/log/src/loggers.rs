//! The names of the loggers, dotted and few: the target of each event. Python's loggers have the same names.

/// What is copied to the archive and deleted there; reads of it that fail.
pub const ARCHIVE: &str = "pylog.broker.archive";
/// Who was denied what (Kafka's `kafka.authorizer.logger`).
pub const AUTHORIZER: &str = "pylog.broker.authorizer";
/// Start and stop, topics and settings, panics, the log itself.
pub const BROKER: &str = "pylog.broker";
/// The other brokers, the controller and its decisions.
pub const CLUSTER: &str = "pylog.broker.cluster";
/// Consumer groups, share groups, transactions.
pub const COORDINATOR: &str = "pylog.broker.coordinator";
/// Connections: refused, closed, lost.
pub const NETWORK: &str = "pylog.broker.network";
/// Leaders, followers and replicas in sync.
pub const REPLICATION: &str = "pylog.broker.replication";
/// Requests that are refused, fail, or cost too much.
pub const REQUEST: &str = "pylog.broker.request";
/// Partition logs, disks, recovery, retention, compaction.
pub const STORAGE: &str = "pylog.broker.storage";

/// All loggers, each with what it is about.
pub const ALL: [(&str, &str); 9] = [
    (ARCHIVE, "What is copied to the archive and deleted there; reads of it that fail."),
    (AUTHORIZER, "Who was denied what, where an authorizer is configured."),
    (BROKER, "Start and stop, topics and settings, panics, the log itself."),
    (CLUSTER, "The other brokers, the controller and its decisions."),
    (COORDINATOR, "Consumer groups, share groups, transactions."),
    (NETWORK, "Connections: refused, closed, lost."),
    (REPLICATION, "Leaders, followers and replicas in sync."),
    (REQUEST, "Requests that are refused, fail, or cost too much."),
    (STORAGE, "Partition logs, disks, recovery, retention, compaction."),
];

/// The place of a logger in [`ALL`].
pub fn index(name: &str) -> Option<usize> {
    ALL.iter().position(|(known, _about)| *known == name)
}
