//! Broker settings that stand in for those of a topic, where name, unit or default differ from the topic's; the others are declared with
//! the topic's own (`of_broker` in [`crate::topic`]). Those in a larger unit are fixed at the broker's start, as in Kafka.
use crate::declare::settings;
use crate::topic::LogConfig;

const HOUR_MS: i64 = 3_600_000;

fn topic() -> LogConfig {
    LogConfig::default()
}

settings! { rows
    /// Default of flush.ms for topics that do not set it. Not set: log.flush.scheduler.interval.ms.
    "log.flush.interval.ms" LONG = None::<&str>, at_least(0), high(), dynamic();
    /// Default of flush.ms for topics that do not set it.
    "log.flush.scheduler.interval.ms" LONG = topic().flush_ms, at_least(1), high();
    /// Default of retention.ms for topics that do not set it, in hours.
    "log.retention.hours" INT = topic().retention_ms / HOUR_MS, high();
    /// Default of retention.ms for topics that do not set it, in minutes; wins over log.retention.hours.
    "log.retention.minutes" INT = None::<&str>, high();
    /// Default of retention.ms for topics that do not set it; wins over log.retention.minutes.
    "log.retention.ms" LONG = None::<&str>, at_least(-1), high(), dynamic();
    /// Default of segment.ms for topics that do not set it, in hours.
    "log.roll.hours" INT = topic().segment_ms / HOUR_MS, at_least(1), high();
    /// Default of segment.jitter.ms for topics that do not set it, in hours.
    "log.roll.jitter.hours" INT = topic().segment_jitter_ms / HOUR_MS, at_least(0), high();
    /// Default of segment.jitter.ms for topics that do not set it; wins over log.roll.jitter.hours.
    "log.roll.jitter.ms" LONG = None::<&str>, at_least(0), high(), dynamic();
    /// Default of segment.ms for topics that do not set it; wins over log.roll.hours.
    "log.roll.ms" LONG = None::<&str>, at_least(1), high(), dynamic();
    /// Default of min.insync.replicas for topics that do not set it. It must be the same at all brokers of a cluster.
    "min.insync.replicas" INT = topic().min_insync_replicas, at_least(1), high(), dynamic();
}
