//! Settings of brokers about transactions.
use crate::declare::settings;

/// Transactional ids that begin so are used for one transaction and never again: each attempt of a Spark task has its own.
pub const SINGLE_USE: &str = "pylog-once.";

settings! {
    /// What the coordinator of transactions reads.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// How long a produced batch that begins a transaction waits for the end of the producer's transaction before
        /// it.
        "add.partitions.to.txn.retry.backoff.max.ms" INT add_partitions_to_txn_retry_backoff_max_ms: i64 = 100,
            at_least(0);
        /// Transactions are aborted exactly at their timeout. Only after a start of the coordinator, one that is
        /// overdue may still be ended by its producer for this long.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms" INT transaction_abort_timed_out_transaction_cleanup_interval_ms: i64 =
            10_000,
            at_least(1),
            low();
        /// Roughly the most memory for the transactional ids that this broker coordinates. When it is used up, new ids
        /// are refused with POLICY_VIOLATION; known ones go on, and may use as much again for the partitions of their
        /// transactions. Only pylog has this setting.
        "transaction.coordinator.max.bytes" LONG transaction_coordinator_max_bytes: usize = /* 256 MiB */ 256 << 20,
            at_least(1);
        /// Longest transaction timeout that a producer may ask for. A prepared transaction has no timeout; the broker's
        /// log names it when it is open for longer than this.
        "transaction.max.timeout.ms" INT transaction_max_timeout_ms: i32 = /* 15 minutes */ 900_000,
            at_least(1),
            high();
        /// Whether producers may prepare transactions (KIP-939): they never time out, and a restarted producer can end
        /// them. Off by default in Kafka, where every producer would need a permission for it; on here, because a Spark
        /// write is exactly once only when no transaction of its tasks can time out between the driver's decision and its
        /// commit.
        "transaction.two.phase.commit.enable" BOOLEAN transaction_two_phase_commit_enable: bool = true, low();
        /// A transactional id that has no open transaction and has not been used for this long is forgotten.
        "transactional.id.expiration.ms" INT transactional_id_expiration_ms: i64 = /* 7 days */ 604_800_000,
            at_least(1),
            high();
        /// As transactional.id.expiration.ms, and never longer, for ids that begin with `pylog-once.`: each belongs to
        /// one attempt of one Spark task and is never used again. Only pylog has this setting.
        "transactional.id.single.use.expiration.ms" INT transactional_id_single_use_expiration_ms: i64 =
            /* 10 minutes */ 600_000,
            at_least(1),
            low();
    }
    without_field {
        /// Changes nothing: transactional ids are forgotten on time (transactional.id.expiration.ms). Shown for Kafka's
        /// tools.
        "transaction.remove.expired.transaction.cleanup.interval.ms" INT = 3_600_000, at_least(1), low();
    }
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
