//! Settings of a log and of a data directory. Topics' own, which are those of logs, are declared in `pylog_settings::topic`; what a
//! data directory needs of the broker's is taken from them here.
pub use pylog_settings::topic::{CleanupPolicy, Durability, LogConfig, TimestampType};

use pylog_settings::server;

/// Settings of a data directory.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagerConfig {
    /// This broker.
    pub node_id: i32,
    /// Empty: what `meta.properties` says, or a new one.
    pub cluster_id: String,
    /// Written into the clean-stop marker.
    pub broker_epoch: i64,
    /// Threads that run fdatasync for `durability=flushed`, started when the first is needed.
    /// 0: whoever waits runs it (for simulations).
    pub flush_threads: usize,
    /// Most files of segments kept open; more are opened again when used.
    pub max_open_files: usize,
    /// A producer that wrote nothing for so long is forgotten.
    pub producer_id_expiration_ms: i64,
    /// Most producers that a partition remembers.
    pub producer_id_max_count: usize,
    /// How long written bytes may stay unflushed in page-cache logs; bounds what a restart scans.
    pub checkpoint_interval_ms: i64,
    /// How often retention is applied at most; 0: whenever maintenance runs.
    pub retention_check_interval_ms: i64,
    /// How often the high watermarks of logs with other replicas are written down.
    pub replica_high_watermark_checkpoint_interval_ms: i64,
    /// Most bytes of each partition that are kept beside its log when recovery cuts them from it.
    pub recovery_kept_bytes: u64,
}

impl From<&server::Settings> for ManagerConfig {
    fn from(broker: &server::Settings) -> Self {
        Self {
            node_id: broker.node_id,
            cluster_id: broker.cluster_id.clone(),
            broker_epoch: -1,
            flush_threads: 4,
            max_open_files: 512,
            producer_id_expiration_ms: broker.producer_id_expiration_ms,
            producer_id_max_count: broker.producer_id_max_count,
            checkpoint_interval_ms: broker.log_flush_offset_checkpoint_interval_ms,
            retention_check_interval_ms: i64::try_from(broker.log_retention_check_interval_ms)
                .unwrap_or(i64::MAX),
            replica_high_watermark_checkpoint_interval_ms: broker
                .replica_high_watermark_checkpoint_interval_ms,
            recovery_kept_bytes: broker.log_recovery_kept_bytes,
        }
    }
}

/// As of a broker that sets nothing, but that retention is applied whenever maintenance runs.
impl Default for ManagerConfig {
    fn default() -> Self {
        Self { retention_check_interval_ms: 0, ..Self::from(&server::Settings::default()) }
    }
}
