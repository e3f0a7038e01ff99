//! The broker's settings as the native side reads them. Names are Kafka's with underscores; each is declared for users,
//! with its documentation, in `pylog_spark/broker/config.py`, which also makes the JSON.
use serde::Deserialize;

use pylog_coordinator::{group, share, transaction};
use pylog_storage::{CleanerConfig, ManagerConfig};

/// Settings of one broker. Fields ending in `_ms` are milliseconds, in `_bytes` bytes. Unknown fields are ignored, so
/// that both halves can grow one after the other.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Number of this broker.
    pub node_id: i32,
    /// Told to clients; empty when unknown.
    pub cluster_id: String,
    /// Whether there may be other brokers.
    pub clustered: bool,
    /// Where this broker stands, for placement and for reading from near.
    pub rack: Option<String>,
    /// A follower that was not at its leader's end for so long leaves the ISR.
    pub replica_lag_time_max_ms: i64,
    /// Threads that fetch from each leader.
    pub num_replica_fetchers: usize,
    /// A follower's fetch waits so long for data.
    pub replica_fetch_wait_max_ms: i32,
    /// Most bytes of one partition in a follower's fetch.
    pub replica_fetch_max_bytes: i32,
    /// Most bytes of a follower's fetch.
    pub replica_fetch_response_max_bytes: i32,
    /// A fetcher whose leader did not answer waits so long.
    pub replica_fetch_backoff_ms: u64,
    /// A request between brokers is given up after so long.
    pub replica_socket_timeout_ms: u64,
    /// Most bytes a second for followers that their topic throttles.
    pub leader_replication_throttled_rate: i64,
    /// Which replica a consumer is told to read from; only Kafka's rack-aware selector is known.
    pub replica_selector_class: Option<String>,
    /// High watermarks are written down so often.
    pub replica_high_watermark_checkpoint_interval_ms: i64,
    /// Address told to clients; `None`: the one that the client dialled.
    pub advertised_host: Option<String>,
    /// As `advertised_host`.
    pub advertised_port: Option<i32>,
    /// Whether a Metadata request may create topics.
    pub auto_create_topics_enable: bool,
    /// A connection without a request for so long is closed; -1 never.
    pub connections_max_idle_ms: i64,
    /// Most bytes of records in one fetch answer.
    pub fetch_max_bytes: i32,
    /// Most partitions of fetches that wait for records, all together.
    pub fetch_wait_max_partitions: u32,
    /// Most fetch sessions.
    pub max_incremental_fetch_session_cache_slots: usize,
    /// Most open connections; more are closed at once.
    pub max_connections: usize,
    /// Threads for requests that take long.
    pub num_io_threads: usize,
    /// Threads that serve requests.
    pub num_network_threads: usize,
    /// Threads that open and recover logs in `apply_topics`.
    pub num_recovery_threads_per_data_dir: usize,
    /// How long the cleaner waits when nothing was to be compacted.
    pub log_cleaner_backoff_ms: u64,
    /// Most bytes for keys while compacting, all threads together.
    pub log_cleaner_dedupe_buffer_size: usize,
    /// Whether logs are compacted.
    pub log_cleaner_enable: bool,
    /// How full the table of keys may get, 0 to 1.
    pub log_cleaner_io_buffer_load_factor: f64,
    /// Bytes to read and write while compacting, all threads together.
    pub log_cleaner_io_buffer_size: usize,
    /// Most bytes that compaction moves in a second, all threads together.
    pub log_cleaner_io_max_bytes_per_second: f64,
    /// Threads that compact.
    pub log_cleaner_threads: usize,
    /// How often retention is applied.
    pub log_retention_check_interval_ms: u64,
    /// How often recovery points are written down.
    pub log_flush_offset_checkpoint_interval_ms: i64,
    /// Most bytes of each partition that are kept beside its log when recovery cuts them from it.
    pub log_recovery_kept_bytes: u64,
    /// An idempotent producer that wrote nothing for so long is forgotten.
    pub producer_id_expiration_ms: i64,
    /// Most producers that a partition remembers.
    pub producer_id_max_count: usize,
    /// So many of the file descriptors are not for connections.
    pub reserved_file_descriptors: u64,
    /// Largest request.
    pub socket_request_max_bytes: usize,
    /// Most bytes of requests that are being received or answered, all connections together.
    pub queued_max_request_bytes: usize,
    /// Most bytes that large requests take while they are answered, and large answers until they are sent.
    pub queued_max_response_bytes: usize,
    /// A request must arrive within so long.
    pub socket_request_receive_timeout_ms: u64,
    /// Settings of groups and their offsets.
    #[serde(flatten)]
    pub groups: group::Settings,
    /// Settings of share groups' records.
    #[serde(flatten)]
    pub shares: share::Settings,
    /// Settings of transactions.
    #[serde(flatten)]
    pub transactions: transaction::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            node_id: 1,
            cluster_id: String::new(),
            clustered: false,
            rack: None,
            replica_lag_time_max_ms: /* 30 s */ 30_000,
            num_replica_fetchers: 1,
            replica_fetch_wait_max_ms: 500,
            replica_fetch_max_bytes: /* 1 MiB */ 1 << 20,
            replica_fetch_response_max_bytes: /* 10 MiB */ 10 << 20,
            replica_fetch_backoff_ms: /* 1 s */ 1_000,
            replica_socket_timeout_ms: /* 30 s */ 30_000,
            leader_replication_throttled_rate: i64::MAX,
            replica_selector_class: None,
            replica_high_watermark_checkpoint_interval_ms: /* 5 s */ 5_000,
            advertised_host: None,
            advertised_port: None,
            auto_create_topics_enable: true,
            connections_max_idle_ms: /* 10 minutes */ 600_000,
            fetch_max_bytes: /* 55 MiB */ 55 << 20,
            fetch_wait_max_partitions: 500_000,
            max_incremental_fetch_session_cache_slots: 1000,
            max_connections: i32::MAX as usize,
            num_io_threads: 8,
            num_network_threads: 2,
            num_recovery_threads_per_data_dir: 2,
            log_cleaner_backoff_ms: /* 15 s */ 15_000,
            log_cleaner_dedupe_buffer_size: /* 128 MiB */ 128 << 20,
            log_cleaner_enable: true,
            log_cleaner_io_buffer_load_factor: 0.9,
            log_cleaner_io_buffer_size: /* 512 KiB */ 512 << 10,
            log_cleaner_io_max_bytes_per_second: f64::MAX,
            log_cleaner_threads: 1,
            log_retention_check_interval_ms: /* 5 minutes */ 300_000,
            log_flush_offset_checkpoint_interval_ms: /* 1 minute */ 60_000,
            log_recovery_kept_bytes: /* 1 GiB */ 1 << 30,
            producer_id_expiration_ms: /* 1 day */ 86_400_000,
            producer_id_max_count: 100_000,
            reserved_file_descriptors: 128,
            socket_request_max_bytes: /* 100 MiB */ 100 << 20,
            queued_max_request_bytes: /* 256 MiB */ 256 << 20,
            queued_max_response_bytes: /* 512 MiB */ 512 << 20,
            socket_request_receive_timeout_ms: /* 30 s */ 30_000,
            groups: group::Settings::default(),
            shares: share::Settings::default(),
            transactions: transaction::Settings::default(),
        }
    }
}

impl Settings {
    /// The memory of one of the threads that compact.
    pub fn cleaner_config(&self) -> CleanerConfig {
        let threads = self.log_cleaner_threads.max(1);
        CleanerConfig {
            dedupe_bytes: self.log_cleaner_dedupe_buffer_size / threads,
            load_factor: self.log_cleaner_io_buffer_load_factor,
            // One half to read, one to write.
            io_bytes: self.log_cleaner_io_buffer_size / threads / 2,
        }
    }

    /// What the storage room needs of them.
    pub fn manager_config(&self) -> ManagerConfig {
        ManagerConfig {
            node_id: self.node_id,
            cluster_id: self.cluster_id.clone(),
            producer_id_expiration_ms: self.producer_id_expiration_ms,
            producer_id_max_count: self.producer_id_max_count,
            checkpoint_interval_ms: self.log_flush_offset_checkpoint_interval_ms,
            recovery_kept_bytes: self.log_recovery_kept_bytes,
            retention_check_interval_ms: i64::try_from(self.log_retention_check_interval_ms)
                .unwrap_or(i64::MAX),
            replica_high_watermark_checkpoint_interval_ms: self.replica_high_watermark_checkpoint_interval_ms,
            ..ManagerConfig::default()
        }
    }
}
