//! Settings of one broker that its native server reads: connections, threads, memory, replication, the cleaner, the data directory.
use crate::declare::settings;
use crate::inter_broker::ClientTexts;
use crate::{groups, sasl, share, transactions};

settings! {
    /// Settings of one broker. Fields ending in `_ms` are milliseconds, in `_bytes` bytes.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        // This broker.
        /// Create a topic when a client that allows it asks for one that does not exist.
        "auto.create.topics.enable" BOOLEAN auto_create_topics_enable: bool = true, high();
        /// The rack that this broker is in. The replicas of a partition are spread over racks, and consumers with the
        /// same client.rack may read from this broker.
        "broker.rack" STRING rack: Option<String> = None;
        /// Number of this broker; each broker of a cluster has another one.
        "node.id" INT node_id: i32 = 1, at_least(0), high(), aliases(&["broker.id"]);

        // Authorization.
        /// Whether every client may do everything with a resource for which there is no ACL. If false, only super users
        /// may.
        "allow.everyone.if.no.acl.found" BOOLEAN allow_everyone_if_no_acl_found: bool = false;
        /// The authorizer. Kafka's two class names select pylog's own, which follows the same rules. Not set: every
        /// client may do everything.
        "authorizer.class.name" STRING authorizer_class_name: Option<String> = None,
            one_of(
                &[
                    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "kafka.security.authorizer.AclAuthorizer",
                ],
                ""
            );
        /// Principals that may do everything, separated by semicolons: User:admin;User:CN=broker. In a cluster with an
        /// authorizer (authorizer.class.name) they must include the brokers' principal.
        "super.users" STRING super_users: String = String::new();

        // Connections, requests and the memory for them.
        /// A connection without a request for this long is closed. -1: never.
        "connections.max.idle.ms" LONG connections_max_idle_ms: i64 = /* 10 minutes */ 600_000, at_least(-1);
        /// Most bytes of one response to a fetch.
        "fetch.max.bytes" INT fetch_max_bytes: i32 = /* 55 MiB */ 55 << 20, at_least(1024);
        /// Most partitions, over all clients, for which fetches of consumers wait for new records. One client address
        /// has at most half of them. A fetch beyond is answered at once, and the broker asks its client to wait before
        /// the next one. Only pylog has this setting.
        "fetch.wait.max.partitions" INT fetch_wait_max_partitions: u32 = 500_000, at_least(2);
        /// Most connections that are accepted in a second, over all listeners; more wait until they are accepted.
        "max.connection.creation.rate" INT max_connection_creation_rate: u32 = i32::MAX as u32, at_least(1);
        /// Most open connections. A connection beyond is closed at once. Those of other brokers are not refused when
        /// they have a listener of their own (inter.broker.listener.name).
        "max.connections" INT max_connections: usize = i32::MAX as usize, at_least(0);
        /// Most open connections of one client address. A connection beyond is closed at once.
        "max.connections.per.ip" INT max_connections_per_ip: usize = i32::MAX as usize, at_least(0);
        /// Other values of max.connections.per.ip for single addresses or host names: `127.0.0.1:200,some.host:10`.
        "max.connections.per.ip.overrides" STRING max_connections_per_ip_overrides: String = String::new();
        /// Most fetch sessions (KIP-227) that this broker keeps. A consumer without a session names all its partitions
        /// in every fetch.
        "max.incremental.fetch.session.cache.slots" INT max_incremental_fetch_session_cache_slots: usize = 1000,
            at_least(0);
        /// Threads for requests that take long: those that look up offsets by time, carry compressed batches that
        /// decompress to a large size, name thousands of partitions or topics, or sync files. One client address uses at
        /// most half of them. All other requests need none.
        "num.io.threads" INT num_io_threads: usize = 8, at_least(1), high();
        /// Threads that read requests, serve them and send responses.
        "num.network.threads" INT num_network_threads: usize = 2, between(1, 256), high();
        /// Most bytes, over all connections, of requests that are being received or answered. The bytes of a request
        /// count from their arrival until its response is ready; those of a produced batch, until it is in the log. One
        /// client address has at most half of them. One request at a time may go beyond both limits, so that requests
        /// do not wait for each other for ever.
        "queued.max.request.bytes" LONG queued_max_request_bytes: usize = /* 256 MiB */ 256 << 20, at_least(1);
        /// Most bytes, over all connections, of memory for large requests (with thousands of partitions or topics) and
        /// for requests about topics and settings while they are answered, and for large responses until clients have
        /// read them. Records that are sent straight from files do not count. One client address has at most half of
        /// them. One request also has at most half: a larger one closes its connection, or is refused with
        /// POLICY_VIOLATION. Responses that wait because all is taken may use a quarter as much in addition. Only pylog
        /// has this setting.
        "queued.max.response.bytes" LONG queued_max_response_bytes: usize = /* 512 MiB */ 512 << 20, at_least(1);
        /// Number of windows over which the rates of clients with quotas are measured.
        "quota.window.num" INT quota_window_num: u32 = 11, at_least(1), low();
        /// Length in seconds of each window (quota.window.num) over which the rates of clients with quotas are measured.
        "quota.window.size.seconds" INT quota_window_size_seconds: u32 = 1, at_least(1), low();
        /// File descriptors that are kept free for logs, other brokers and ZooKeeper. A connection that would take one
        /// of them is closed at once. Never more than half of those that the process may have (ulimit -n). Only pylog
        /// has this setting.
        "reserved.file.descriptors" INT reserved_file_descriptors: u64 = 128, at_least(0);
        /// Largest request in bytes that is accepted.
        "socket.request.max.bytes" INT socket_request_max_bytes: usize = /* 100 MiB */ 100 << 20, at_least(1), high();
        /// How long a request may take to arrive, from its first bytes to its last. Then its connection is closed. The
        /// default is as long as Kafka's clients wait for a response (request.timeout.ms). Only pylog has this setting.
        "socket.request.receive.timeout.ms" INT socket_request_receive_timeout_ms: u64 = /* 30 s */ 30_000,
            at_least(1);

        // Replication.
        /// Most bytes a second that this broker, as a leader, sends to throttled replicas
        /// (leader.replication.throttled.replicas).
        "leader.replication.throttled.rate" LONG leader_replication_throttled_rate: i64 = i64::MAX,
            at_least(0),
            dynamic();
        /// Threads that fetch from each leader.
        "num.replica.fetchers" INT num_replica_fetchers: usize = 1, between(1, 256), high();
        /// How long a fetcher waits after a failed fetch before it asks the leader again.
        "replica.fetch.backoff.ms" INT replica_fetch_backoff_ms: u64 = /* 1 s */ 1_000, at_least(0);
        /// Most bytes of one partition that a follower asks for in a fetch.
        "replica.fetch.max.bytes" INT replica_fetch_max_bytes: i32 = /* 1 MiB */ 1 << 20, at_least(0);
        /// Most bytes of all partitions together that a follower asks for in a fetch.
        "replica.fetch.response.max.bytes" INT replica_fetch_response_max_bytes: i32 = /* 10 MiB */ 10 << 20,
            at_least(0);
        /// How long a leader may hold a follower's fetch while there are no new records.
        "replica.fetch.wait.max.ms" INT replica_fetch_wait_max_ms: i32 = 500, at_least(0), high();
        /// How often the high watermarks are written to disk.
        "replica.high.watermark.checkpoint.interval.ms" LONG replica_high_watermark_checkpoint_interval_ms: i64 =
            /* 5 s */ 5_000,
            at_least(1),
            high();
        /// A follower that has not reached the end of its leader's log for this long leaves the ISR.
        "replica.lag.time.max.ms" LONG replica_lag_time_max_ms: i64 = /* 30 s */ 30_000, at_least(1), high();
        /// How the leader chooses the replica that a consumer reads from. Not set: always the leader. The only other
        /// value is Kafka's selector, which prefers a replica in the consumer's rack.
        "replica.selector.class" STRING replica_selector_class: Option<String> = None,
            one_of(&["org.apache.kafka.common.replica.RackAwareReplicaSelector"], "");
        /// How long a broker waits for another broker's response to a request.
        "replica.socket.timeout.ms" INT replica_socket_timeout_ms: u64 = /* 30 s */ 30_000, at_least(1), high();

        // Archives.
        /// How long a fetch waits for old records from the archive. Then it is answered without records; the next one gets
        /// what has been read meanwhile.
        "remote.fetch.max.wait.ms" INT remote_fetch_max_wait_ms: u64 = 500, at_least(1);
        /// How long a request for an offset by time, or to delete records, waits for the archive.
        "remote.list.offsets.request.timeout.ms" LONG remote_list_offsets_request_timeout_ms: u64 = /* 30 s */ 30_000,
            at_least(1);
        /// Most requests that wait for the archive. One client address has at most half of them. A request beyond is refused,
        /// and may be sent again.
        "remote.log.reader.max.pending.tasks" INT remote_log_reader_max_pending_tasks: u32 = 100, at_least(2);

        // The cleaner.
        /// How long the cleaner waits when no log needed compaction, before it looks again.
        "log.cleaner.backoff.ms" LONG log_cleaner_backoff_ms: u64 = /* 15 s */ 15_000, at_least(0), dynamic();
        /// Most memory for the keys of the logs that are being compacted, all threads together; a key takes 24 bytes.
        /// It is allocated only as far as it is needed, and freed afterwards.
        "log.cleaner.dedupe.buffer.size" LONG log_cleaner_dedupe_buffer_size: usize = /* 128 MiB */ 128 << 20,
            at_least(0);
        /// Whether logs with cleanup.policy=compact are compacted. When not, they only grow.
        "log.cleaner.enable" BOOLEAN log_cleaner_enable: bool = true;
        /// How full the memory for keys may get. A higher value compacts more at once, but hashes of keys collide more
        /// often.
        "log.cleaner.io.buffer.load.factor" DOUBLE log_cleaner_io_buffer_load_factor: f64 = 0.9, between(0, 1);
        /// Memory to read and write what is being compacted, all threads together. Only a batch that is larger gets
        /// more.
        "log.cleaner.io.buffer.size" INT log_cleaner_io_buffer_size: usize = /* 512 KiB */ 512 << 10, at_least(0);
        /// Most bytes that compaction reads and writes in a second, all threads together.
        "log.cleaner.io.max.bytes.per.second" DOUBLE log_cleaner_io_max_bytes_per_second: f64 = f64::MAX, at_least(1);
        /// Threads that compact; each works on one log.
        "log.cleaner.threads" INT log_cleaner_threads: usize = 1, between(0, 256);

        // The data directory.
        /// Whether a reader on a machine that sees the data directory may read records from its files, as far as their
        /// permissions allow it (docs/security.md, "Local reads"). Spark's executors do so with `localReads=auto`.
        /// Only pylog has this setting.
        "local.reads.enable" BOOLEAN local_reads_enable: bool = true;
        /// How often the recovery points are written to disk. Recovery after a kill begins at them.
        "log.flush.offset.checkpoint.interval.ms" INT log_flush_offset_checkpoint_interval_ms: i64 =
            /* 1 minute */ 60_000,
            at_least(0),
            high();
        /// Recovery after a kill or a loss of power cuts damaged or incomplete batches from the end of a log. At most
        /// this many of the cut bytes of each partition are kept, as .cut files beside its log. 0 keeps nothing.
        "log.recovery.kept.bytes" LONG log_recovery_kept_bytes: u64 = /* 1 GiB */ 1 << 30, at_least(0);
        /// How often the broker looks for segments to delete (retention.ms, retention.bytes).
        "log.retention.check.interval.ms" LONG log_retention_check_interval_ms: u64 = /* 5 minutes */ 300_000,
            at_least(1);
        /// Threads that open and recover logs at the start.
        "num.recovery.threads.per.data.dir" INT num_recovery_threads_per_data_dir: usize = 2, between(1, 256), high();
        /// An idempotent producer that has written nothing for this long is forgotten. One of which only the new epoch
        /// is remembered that the end of its transaction gave it is forgotten after 10 minutes already.
        "producer.id.expiration.ms" INT producer_id_expiration_ms: i64 = /* 1 day */ 86_400_000, at_least(1), low();
        /// Most idempotent producers that a partition remembers. When there are more, those whose last write is longest
        /// ago are forgotten as after producer.id.expiration.ms, but none with an open transaction. Only pylog has this
        /// setting.
        "producer.id.max.count" INT producer_id_max_count: usize = 100_000, at_least(100);
    }
    beside {
        /// Sent to clients; empty when unknown.
        cluster_id: String = String::new();
        /// Whether there may be other brokers.
        clustered: bool = false;
        /// Name of the listener over which brokers reach each other.
        inter_broker: String = "PLAINTEXT".to_owned();
        /// How they are reached there.
        inter_broker_client: ClientTexts = ClientTexts::default();
    }
    parts {
        /// Settings of groups and their offsets.
        groups: groups::Settings;
        /// Settings of logins.
        sasl: sasl::Settings;
        /// Settings of share groups' records.
        shares: share::Settings;
        /// Settings of transactions.
        transactions: transactions::Settings;
    }
}
