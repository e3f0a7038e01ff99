//! Settings of brokers that Python alone reads: addresses, ZooKeeper, what the controller does, how topics are made.
use crate::declare::settings;

settings! { rows
    /// Addresses that clients are sent, one for each listener: NAME://HOST:PORT, separated by commas. A client gets the
    /// address of the listener that it connected to. Not set: the host in listeners, if that is a name; else the name in
    /// the client's TLS handshake, or the address that the client connected to.
    "advertised.listeners" STRING = None::<&str>, high();
    /// Whether listeners without encryption may be on addresses that other machines can reach. Everybody on the network
    /// can read, and change, what passes there. On the command line: --allow-plaintext. Only pylog has this setting.
    "allow.plaintext.listeners" BOOLEAN = false, high();
    /// Whether the controller gives leadership back to the first replica of each partition (the preferred leader).
    "auto.leader.rebalance.enable" BOOLEAN = true, high();
    /// Whether a broker that is stopped moves its leadership to other brokers first.
    "controlled.shutdown.enable" BOOLEAN = true;
    /// Replication factor of topics that are created without one.
    "default.replication.factor" INT = 1, between(1, 32767);
    /// Whether clients may delete topics.
    "delete.topic.enable" BOOLEAN = true, high();
    /// Most topics and brokers that one DescribeConfigs request describes. Those beyond are refused with
    /// POLICY_VIOLATION. Only pylog has this setting.
    "describe.configs.max.resources" INT = 2_000, at_least(1);
    /// Most bytes a second that this broker, as a follower, fetches for throttled replicas
    /// (follower.replication.throttled.replicas).
    "follower.replication.throttled.rate" LONG = i64::MAX, at_least(0), dynamic();
    /// Name of the listener over which the brokers of a cluster reach each other; it must be among the advertised
    /// ones. Not set: the one whose name equals security.inter.broker.protocol, or the only one.
    "inter.broker.listener.name" STRING = None::<&str>;
    /// Fixed, and changes nothing. User interfaces read it to find out whether settings can be changed.
    "inter.broker.protocol.version" STRING = "3.9-IV0", one_of(&["3.9-IV0"], "");
    /// How often the controller checks whether leadership must be given back (auto.leader.rebalance.enable).
    "leader.imbalance.check.interval.seconds" LONG = 300, at_least(1), high();
    /// Leadership is given back to a broker when other brokers lead more than this percentage of the partitions whose
    /// first replica it is.
    "leader.imbalance.per.broker.percentage" INT = 10, at_least(0), high();
    /// The protocol of each listener, as NAME:PROTOCOL separated by commas. Protocols: PLAINTEXT, SSL (TLS),
    /// SASL_PLAINTEXT (login), SASL_SSL (login over TLS).
    "listener.security.protocol.map" STRING =
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL";
    /// Addresses to listen on, as NAME://HOST:PORT separated by commas; with port 0 the system chooses a free port.
    /// The command line's --listen wins.
    "listeners" STRING = "PLAINTEXT://127.0.0.1:9092", high();
    /// Begins a new segment of a compacted internal topic when the current one has this many bytes and is larger than
    /// all before it, instead of at segment.bytes, so that the records in it can be compacted earlier. Only pylog has
    /// this setting.
    "log.cleaner.internal.roll.bytes" LONG = /* 1 MiB */ 1 << 20, at_least(1);
    /// The data directory; exactly one. The command line's --data-dir wins.
    "log.dirs" STRING = None::<&str>, high(), aliases(&["log.dir"]);
    /// Partitions of a topic that is created without a number of them.
    "num.partitions" INT = 1, at_least(1);
    /// How this broker logs in to other brokers, as in Kafka: `ScramLoginModule required username="..." password="...";`.
    /// For one listener and mechanism: `listener.name.<name>.<mechanism>.sasl.jaas.config`, both in lower case.
    "sasl.jaas.config" PASSWORD = None::<&str>, per_listener();
    /// The mechanism by which this broker logs in to other brokers, where the listener between them has SASL.
    "sasl.mechanism.inter.broker.protocol" STRING = "SCRAM-SHA-512",
        one_of(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], "brokers have no source of tokens for each other");
    /// Most ACLs that may be stored. More are refused with POLICY_VIOLATION. Only pylog has this setting.
    "security.acls.max" INT = 20_000, at_least(1);
    /// Protocol of the listener over which the brokers of a cluster reach each other, whose name must equal the protocol.
    /// Give either this or inter.broker.listener.name. Not set: PLAINTEXT, or the protocol of the only listener.
    "security.inter.broker.protocol" STRING = None::<&str>,
        one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], "");
    /// Most bytes of a name in an ACL, a quota or a SCRAM credential (of a user, resource, principal or host). Only pylog
    /// has this setting.
    "security.name.max.bytes" INT = 4_096, between(256, 32767);
    /// Most users, client ids, addresses and pairs of them that have quotas. More are refused with POLICY_VIOLATION. Only
    /// pylog has this setting.
    "security.quota.entities.max" INT = 10_000, at_least(1);
    /// Most users that can log in by SCRAM. More are refused with POLICY_VIOLATION. Only pylog has this setting.
    "security.users.max" INT = 10_000, at_least(1);
    /// `https`: brokers compare each other's host names with their certificates. Empty: they do not.
    "ssl.endpoint.identification.algorithm" STRING = "https", per_listener();
    /// The ZooKeeper servers of the cluster, as HOST:PORT,HOST:PORT/chroot. Not set: this broker is a cluster of its
    /// own and keeps its metadata in its data directory.
    "zookeeper.connect" STRING = None::<&str>, high();
    /// How long to wait for ZooKeeper at the start. Not set: as long as zookeeper.session.timeout.ms.
    "zookeeper.connection.timeout.ms" INT = None::<&str>, at_least(1), high();
    /// A file whose first line is USER:PASSWORD, with which this broker logs in to ZooKeeper (digest). Only pylog has this
    /// setting; Kafka reads user and password from a JAAS file.
    "zookeeper.digest.file" STRING = None::<&str>;
    /// A broker whose ZooKeeper session is without contact for this long counts as dead. It stops leading partitions a
    /// little earlier.
    "zookeeper.session.timeout.ms" INT = 18_000, at_least(1), high();
    /// Whether only brokers that log in to ZooKeeper as the same user (zookeeper.digest.file) may change what this broker
    /// stores there, and read the credentials of SCRAM users. All brokers of a cluster need the same value.
    "zookeeper.set.acl" BOOLEAN = false, high();
    /// Whether the connection to ZooKeeper is encrypted by TLS.
    "zookeeper.ssl.client.enable" BOOLEAN = false;
    /// HTTPS: ZooKeeper's certificate must have the host name of zookeeper.connect. Empty: any name.
    "zookeeper.ssl.endpoint.identification.algorithm" STRING = "HTTPS", one_of(&["HTTPS", ""], "");
    /// A PEM file with the private key and the certificates that this broker shows to ZooKeeper.
    "zookeeper.ssl.keystore.location" STRING = None::<&str>;
    /// A PEM file with the CA certificates that must have signed ZooKeeper's certificate. Not set: those of the operating
    /// system.
    "zookeeper.ssl.truststore.location" STRING = None::<&str>;
}
