//! As whom a writer writes.

/// Producer id and epoch.
pub type ProducerId = (i64, i16);

/// As whom a writer writes: what stands in its batches and requests.
#[derive(Debug, Clone, Default)]
pub struct ProducerIdentity {
    /// Of an idempotent or transactional writer.
    pub producer: Option<ProducerId>,
    /// Of a transactional writer.
    pub transactional_id: Option<String>,
    /// Whether its batches add their partitions to the transaction.
    pub adds_partitions: bool,
}
