//! The broker's settings about transactions.

/// Transactional ids that begin so are used for one transaction and never again: each attempt of a Spark task has its own.
pub const SINGLE_USE: &str = "pylog-once.";

/// Names are Kafka's, in snake_case.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Most bytes of all transactional ids of a broker in memory.
    pub transaction_coordinator_max_bytes: usize,
    /// Longest time-out that a producer may ask for.
    pub transaction_max_timeout_ms: i32,
    /// How long a transactional id without a transaction is remembered.
    pub transactional_id_expiration_ms: i64,
    /// The same for ids that begin with [`SINGLE_USE`].
    pub transactional_id_single_use_expiration_ms: i64,
    /// Time-outs are exact; but after a start an overdue transaction can be ended by its producer for so long.
    pub transaction_abort_timed_out_transaction_cleanup_interval_ms: i64,
    /// Whether producers may prepare transactions, which never time out (KIP-939).
    pub transaction_two_phase_commit_enable: bool,
    /// A produced batch that begins a transaction waits so long for the end of the one before.
    pub add_partitions_to_txn_retry_backoff_max_ms: i64,
}

impl Settings {
    /// How long `transactional_id` is remembered without a transaction.
    pub fn expiration_ms(&self, transactional_id: &str) -> i64 {
        let once = self.transactional_id_single_use_expiration_ms;
        match transactional_id.starts_with(SINGLE_USE) {
            true => once.min(self.transactional_id_expiration_ms),
            false => self.transactional_id_expiration_ms,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transaction_coordinator_max_bytes: /* 256 MiB */ 256 << 20,
            transaction_max_timeout_ms: /* 15 minutes */ 900_000,
            transactional_id_expiration_ms: /* 7 days */ 604_800_000,
            transactional_id_single_use_expiration_ms: /* 10 minutes */ 600_000,
            transaction_abort_timed_out_transaction_cleanup_interval_ms: 10_000,
            transaction_two_phase_commit_enable: true,
            add_partitions_to_txn_retry_backoff_max_ms: 100,
        }
    }
}
