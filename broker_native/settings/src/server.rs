//! Settings of one broker that its native server reads: connections, threads, memory, replication, the cleaner, the data directory.
use crate::declare::settings;
use crate::{groups, share, transactions};

settings! {
    /// Settings of one broker. Fields ending in `_ms` are milliseconds, in `_bytes` bytes.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        // This broker.
        /// Create a topic when a client that allows it asks for one that does not exist.
        "auto.create.topics.enable" BOOLEAN auto_create_topics_enable: bool = true, high();
        /// Where this broker stands. The replicas of a partition are spread over racks, and consumers with the same
        /// client.rack may read from it.
        "broker.rack" STRING rack: Option<String> = None;
        /// Number of this broker, its own in the cluster.
        "node.id" INT node_id: i32 = 1, at_least(0), high(), aliases(&["broker.id"]);

        // Connections, requests and the memory for them.
        /// A connection without a request for this long is closed. -1: never.
        "connections.max.idle.ms" LONG connections_max_idle_ms: i64 = /* 10 minutes */ 600_000, at_least(-1);
        /// Most bytes one fetch answer carries.
        "fetch.max.bytes" INT fetch_max_bytes: i32 = /* 55 MiB */ 55 << 20, at_least(1024);
        /// Most partitions of consumers' fetches that wait for records, all together; one client address has at most
        /// half. A fetch that finds no room is answered at once, and its client asked to wait by itself. Only pylog has
        /// this setting.
        "fetch.wait.max.partitions" INT fetch_wait_max_partitions: u32 = 500_000, at_least(2);
        /// Most open connections; more are closed at once.
        "max.connections" INT max_connections: usize = i32::MAX as usize, at_least(0);
        /// Most fetch sessions. Consumers without one name all their partitions in every fetch.
        "max.incremental.fetch.session.cache.slots" INT max_incremental_fetch_session_cache_slots: usize = 1000,
            at_least(0);
        /// Threads for requests that take long: that look up offsets by time, bring compressed batches that open to much,
        /// or sync files. One client address has at most half of them; all other requests need none.
        "num.io.threads" INT num_io_threads: usize = 8, at_least(1), high();
        /// Threads that serve requests.
        "num.network.threads" INT num_network_threads: usize = 2, between(1, 256), high();
        /// Most bytes of requests that are being received or answered at once, all connections together; a request counts
        /// as it arrives, and until its answer is there; of a produced batch, until it is in the log. One client address
        /// has at most half of them, but for one request.
        "queued.max.request.bytes" LONG queued_max_request_bytes: usize = /* 256 MiB */ 256 << 20, at_least(1);
        /// Most bytes that large requests (of thousands of partitions or topics) and those about topics and settings take
        /// while they are answered, and large answers until clients have read them, all connections together; records
        /// that lie in files do not count. One client address has at most half of them, and one request: a larger one
        /// closes its connection, or is refused with POLICY_VIOLATION. Answers that wait because all are taken may have a
        /// quarter as much in addition. Only pylog has this setting.
        "queued.max.response.bytes" LONG queued_max_response_bytes: usize = /* 512 MiB */ 512 << 20, at_least(1);
        /// So many file descriptors are left to logs, other brokers and ZooKeeper: a connection that would take one of
        /// them is closed at once. Never more than half of those that the process may have (ulimit -n). Only pylog has
        /// this setting.
        "reserved.file.descriptors" INT reserved_file_descriptors: u64 = 128, at_least(0);
        /// Largest request accepted.
        "socket.request.max.bytes" INT socket_request_max_bytes: usize = /* 100 MiB */ 100 << 20, at_least(1), high();
        /// A connection whose request is not there so long after its first bytes is closed; as long as Kafka's clients
        /// wait for an answer (request.timeout.ms). Only pylog has this setting.
        "socket.request.receive.timeout.ms" INT socket_request_receive_timeout_ms: u64 = /* 30 s */ 30_000,
            at_least(1);

        // Replication.
        /// Most bytes a second that this broker sends to throttled replicas (leader.replication.throttled.replicas).
        "leader.replication.throttled.rate" LONG leader_replication_throttled_rate: i64 = i64::MAX,
            at_least(0),
            dynamic();
        /// Threads that fetch from each leader.
        "num.replica.fetchers" INT num_replica_fetchers: usize = 1, between(1, 256), high();
        /// A fetcher whose leader did not answer waits so long.
        "replica.fetch.backoff.ms" INT replica_fetch_backoff_ms: u64 = /* 1 s */ 1_000, at_least(0);
        /// Most bytes of one partition in a follower's fetch.
        "replica.fetch.max.bytes" INT replica_fetch_max_bytes: i32 = /* 1 MiB */ 1 << 20, at_least(0);
        /// Most bytes of a follower's fetch.
        "replica.fetch.response.max.bytes" INT replica_fetch_response_max_bytes: i32 = /* 10 MiB */ 10 << 20,
            at_least(0);
        /// A follower's fetch waits so long for records.
        "replica.fetch.wait.max.ms" INT replica_fetch_wait_max_ms: i32 = 500, at_least(0), high();
        /// How often high watermarks are written down.
        "replica.high.watermark.checkpoint.interval.ms" LONG replica_high_watermark_checkpoint_interval_ms: i64 =
            /* 5 s */ 5_000,
            at_least(1),
            high();
        /// A follower that was not at the end of its leader's log for so long leaves the ISR.
        "replica.lag.time.max.ms" LONG replica_lag_time_max_ms: i64 = /* 30 s */ 30_000, at_least(1), high();
        /// Which replica a consumer is sent to. Not set: the leader. The other value is Kafka's selector that prefers a
        /// replica in the consumer's rack.
        "replica.selector.class" STRING replica_selector_class: Option<String> = None,
            one_of(&["org.apache.kafka.common.replica.RackAwareReplicaSelector"], "");
        /// A request between brokers is given up after so long.
        "replica.socket.timeout.ms" INT replica_socket_timeout_ms: u64 = /* 30 s */ 30_000, at_least(1), high();

        // The cleaner.
        /// How long the cleaner waits before it looks again when no log was to be compacted.
        "log.cleaner.backoff.ms" LONG log_cleaner_backoff_ms: u64 = /* 15 s */ 15_000, at_least(0), dynamic();
        /// Most memory for the keys of the logs that are being compacted, all threads together; 24 bytes a key. It is
        /// taken only as far as needed, and given back.
        "log.cleaner.dedupe.buffer.size" LONG log_cleaner_dedupe_buffer_size: usize = /* 128 MiB */ 128 << 20,
            at_least(0);
        /// Whether logs with cleanup.policy=compact are compacted. Without it they only grow.
        "log.cleaner.enable" BOOLEAN log_cleaner_enable: bool = true;
        /// How full the memory for keys may get; the fuller, the more often two keys meet.
        "log.cleaner.io.buffer.load.factor" DOUBLE log_cleaner_io_buffer_load_factor: f64 = 0.9, between(0, 1);
        /// Memory to read and write what is being compacted, all threads together; more only for a larger batch.
        "log.cleaner.io.buffer.size" INT log_cleaner_io_buffer_size: usize = /* 512 KiB */ 512 << 10, at_least(0);
        /// Most bytes that compaction reads and writes in a second, all threads together.
        "log.cleaner.io.max.bytes.per.second" DOUBLE log_cleaner_io_max_bytes_per_second: f64 = f64::MAX, at_least(1);
        /// Threads that compact; each works on one log.
        "log.cleaner.threads" INT log_cleaner_threads: usize = 1, between(0, 256);

        // The data directory.
        /// How often the recovery points are written down; recovery after a kill starts there.
        "log.flush.offset.checkpoint.interval.ms" INT log_flush_offset_checkpoint_interval_ms: i64 =
            /* 1 minute */ 60_000,
            at_least(0),
            high();
        /// Most bytes of each partition that are kept, as .cut files beside its log, when recovery after a kill or a loss
        /// of power cuts them from it. 0 keeps nothing.
        "log.recovery.kept.bytes" LONG log_recovery_kept_bytes: u64 = /* 1 GiB */ 1 << 30, at_least(0);
        /// How often segments are checked against retention.
        "log.retention.check.interval.ms" LONG log_retention_check_interval_ms: u64 = /* 5 minutes */ 300_000,
            at_least(1);
        /// Threads that open and recover logs at the start.
        "num.recovery.threads.per.data.dir" INT num_recovery_threads_per_data_dir: usize = 2, between(1, 256), high();
        /// An idempotent producer that wrote nothing for this long is forgotten; after 10 minutes already, when the end
        /// of a transaction raised its epoch: nothing but that is remembered of it.
        "producer.id.expiration.ms" INT producer_id_expiration_ms: i64 = /* 1 day */ 86_400_000, at_least(1), low();
        /// Most idempotent producers that a partition remembers. Of more, those that wrote longest ago are forgotten as
        /// if producer.id.expiration.ms were over, but none with an open transaction. Only pylog has this setting.
        "producer.id.max.count" INT producer_id_max_count: usize = 100_000, at_least(100);
    }
    beside {
        /// Told to clients; empty when unknown.
        cluster_id: String = String::new();
        /// Whether there may be other brokers.
        clustered: bool = false;
        /// Address told to clients; `None`: the one that the client dialled.
        advertised_host: Option<String> = None;
        /// As `advertised_host`.
        advertised_port: Option<i32> = None;
    }
    parts {
        /// Settings of groups and their offsets.
        groups: groups::Settings;
        /// Settings of share groups' records.
        shares: share::Settings;
        /// Settings of transactions.
        transactions: transactions::Settings;
    }
}
