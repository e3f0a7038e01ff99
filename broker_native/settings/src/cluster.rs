//! Settings of brokers that Python alone reads: addresses, ZooKeeper, what the controller does, how topics are made.
use crate::declare::settings;

settings! { rows
    /// Address that clients are given, as PLAINTEXT://HOST:PORT. Not set: the address the client itself dialled.
    "advertised.listeners" STRING = None::<&str>, high();
    /// Whether the controller gives leadership back to the first replica of each partition.
    "auto.leader.rebalance.enable" BOOLEAN = true, high();
    /// Whether a broker that is stopped moves its leadership to others first.
    "controlled.shutdown.enable" BOOLEAN = true;
    /// Replication factor of topics created without one.
    "default.replication.factor" INT = 1, between(1, 32767);
    /// Whether clients may delete topics.
    "delete.topic.enable" BOOLEAN = true, high();
    /// Most topics and brokers that one DescribeConfigs request describes; the others of it are refused with
    /// POLICY_VIOLATION. Only pylog has this setting.
    "describe.configs.max.resources" INT = 2_000, at_least(1);
    /// Most bytes a second that this broker fetches of throttled replicas (follower.replication.throttled.replicas).
    "follower.replication.throttled.rate" LONG = i64::MAX, at_least(0), dynamic();
    /// Fixed. Changes nothing; user interfaces read it to know that configurations can be edited.
    "inter.broker.protocol.version" STRING = "3.9-IV0", one_of(&["3.9-IV0"], "");
    /// How often the controller looks whether leadership is to be given back.
    "leader.imbalance.check.interval.seconds" LONG = 300, at_least(1), high();
    /// Leadership is given back to a broker that does not lead more than this part of the partitions it is the first
    /// replica of.
    "leader.imbalance.per.broker.percentage" INT = 10, at_least(0), high();
    /// Address to listen on, as PLAINTEXT://HOST:PORT; port 0 takes a free one. The command line's --listen wins.
    "listeners" STRING = "PLAINTEXT://127.0.0.1:9092", high();
    /// A new segment of an internal topic is begun, so that the one before can be compacted, when it is as large as
    /// this and larger than all before it: what is written again and again does not grow to segment.bytes first. Only
    /// pylog has this setting.
    "log.cleaner.internal.roll.bytes" LONG = /* 1 MiB */ 1 << 20, at_least(1);
    /// The data directory (one). The command line's --data-dir wins.
    "log.dirs" STRING = None::<&str>, high(), aliases(&["log.dir"]);
    /// Partitions of a topic created without a number.
    "num.partitions" INT = 1, at_least(1);
    /// The ZooKeeper of the cluster, as HOST:PORT,HOST:PORT/chroot. Not set: this broker is alone and keeps its own
    /// documents.
    "zookeeper.connect" STRING = None::<&str>, high();
    /// How long to wait for ZooKeeper at the start. Not set: as long as zookeeper.session.timeout.ms.
    "zookeeper.connection.timeout.ms" INT = None::<&str>, at_least(1), high();
    /// A broker that ZooKeeper did not hear of for so long is dead for the cluster, and leads nothing from a little
    /// earlier on.
    "zookeeper.session.timeout.ms" INT = 18_000, at_least(1), high();
}
